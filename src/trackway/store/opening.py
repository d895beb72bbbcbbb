"""From what a user names to a store: a path, a URL, an object, or nothing (the one in the home)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

from trackway import plugins
from trackway.errors import BadSetting
from trackway.store.base import Store
from trackway.store.home import Home
from trackway.store.sqlite import SqliteStore

_memory: dict[str, Store] = {}
"""This process's memory stores by name: whoever says the same name means the same store."""

_URL = re.compile(r"([a-z][a-z0-9+.-]+):(.*)", re.DOTALL)


def store_at(where: str | Path | Store | None, home: Home) -> Store:
    """The store a user names; ``memory:`` is one of this process's own, other schemes are plug-ins."""
    if where is None or where == "":
        return SqliteStore(home.store)
    if isinstance(where, Path):
        return SqliteStore(where.expanduser().absolute())
    if not isinstance(where, str):
        return where
    found = _URL.fullmatch(where)
    if found is None:
        return SqliteStore(Path(where).expanduser().absolute())
    scheme, rest = found.groups()
    if scheme == "sqlite":
        if not rest.strip("/"):
            raise BadSetting(f"{where!r} names no file", hint="sqlite:/path/to/store.db")
        return SqliteStore(Path(rest.removeprefix("//")).expanduser().absolute())
    if scheme == "memory":
        from trackway.store.memory import MemoryStore

        return _memory.setdefault(rest, MemoryStore())
    return cast("Store", plugins.load("stores", scheme)(where))
