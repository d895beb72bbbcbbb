"""The plug-in points, by entry point: ``trackway.stores``, ``.sources``, ``.exporters``, ``.feeds``.

Nothing is looked up before it is needed, and a broken plug-in is named, not swallowed.
"""

from __future__ import annotations

from typing import Any

from trackway.errors import BadSetting


def names(group: str) -> list[str]:
    """The plug-ins installed for a group such as ``stores``."""
    from importlib import metadata

    return sorted(each.name for each in metadata.entry_points(group=f"trackway.{group}"))


def load(group: str, name: str) -> Any:  # noqa: ANN401  what an entry point names is its own business
    """The object a plug-in names; raises ``BadSetting`` where there is none or it does not load."""
    from importlib import metadata

    for each in metadata.entry_points(group=f"trackway.{group}", name=name):
        try:
            return each.load()
        except Exception as error:
            raise BadSetting(
                f"plug-in {name!r} of {group} does not load: {error}", hint=f"reinstall {each.value}"
            ) from error
    known = ", ".join(names(group)) or "none"
    raise BadSetting(
        f"no plug-in {name!r} for {group} (installed: {known})", hint="pip install the package that has it"
    )
