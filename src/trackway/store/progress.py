"""How long work tells whoever waits for it how far it has come: a callable, and one that says nothing."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is (0 where nobody knows)."""


def silent(_what: str, _done: int, _total: int) -> None:
    """For whoever does not want to know."""
