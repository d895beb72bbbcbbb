"""What holds: the argument, then the environment, then the project's file, then the home's, then the default.

``TRACKWAY_HOME`` the home folder · ``TRACKWAY_STORE`` the store · ``TRACKWAY_DISABLED`` record nothing ·
``TRACKWAY_REDACT`` hide known secrets · ``TRACKWAY_SETTINGS`` the project's file, empty for none ·
``TRACKWAY_JOURNAL`` mmap or append, for file systems that want the plain one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from trackway.errors import BadSetting
from trackway.recording import settings_file
from trackway.recording.rules import NONE, Rules, rules_of
from trackway.recording.secrets import KNOWN
from trackway.recording.settings_file import Both
from trackway.store import system
from trackway.store.base import Store
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.opening import store_at

N = TypeVar("N", int, float)

ACKS: Final = ("process", "disk", "store")
CAPTURES: Final = ("full", "steps", "off")
_JOURNALS: Final = ("mmap", "append")
_NO: Final = ("", "0", "false", "no", "off")


def home_at(home: str | os.PathLike[str] | None, environ: Mapping[str, str] | None = None) -> Home:
    """The home folder: the argument, else ``TRACKWAY_HOME``, else what the project's file says, else ``~/.trackway``.

    A user without a home of their own (a container, a service account) gets a private folder among the temporary ones:
    a recording that may be cleaned away some day is better than none.
    """
    environ = os.environ if environ is None else environ
    named = home or environ.get("TRACKWAY_HOME") or settings_file.project(environ).home
    if named:
        return Home(Path(named).expanduser().absolute())
    usual = _user_folder(environ) / ".trackway"
    if usual.is_dir() or os.access(usual.parent, os.W_OK):
        return Home(usual)
    import tempfile

    spare = Path(tempfile.gettempdir()) / f"trackway-{os.getuid()}"
    # A name anybody can guess: one that another user made first is not ours to use.
    taken = spare.is_symlink() or (spare.exists() and spare.stat().st_uid != os.getuid())
    return Home(usual if taken else spare)


def _user_folder(environ: Mapping[str, str]) -> Path:
    named = environ.get("HOME")
    if named:
        return Path(named).absolute()
    import pwd

    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a number without a name, as containers have
        return Path("/nonexistent")


def store_for(
    store: str | os.PathLike[str] | Store | None, home: Home, environ: Mapping[str, str] | None = None
) -> Store:
    """The store: the argument (URL, path or a store), else ``TRACKWAY_STORE``, else the files', else the home's."""
    environ = os.environ if environ is None else environ
    named = store or environ.get("TRACKWAY_STORE") or settings_file.load(home, environ).first("store")
    return store_at(Path(named) if isinstance(named, os.PathLike) else named, home)


def is_disabled(home: Home, environ: Mapping[str, str] | None = None, files: Both | None = None) -> bool:
    """Whether ``TRACKWAY_DISABLED``, or else a file, says to record nothing."""
    environ = os.environ if environ is None else environ
    said = environ.get("TRACKWAY_DISABLED")
    if said is not None:
        return _is_yes(said)
    return bool((files or settings_file.load(home, environ)).first("disabled"))


def _is_yes(said: str) -> bool:
    return said.strip().lower() not in _NO


def maps(journal: str | None, home: Home, environ: Mapping[str, str] | None = None) -> bool:
    """Whether the journal is mapped: as asked, else wherever the platform can."""
    environ = os.environ if environ is None else environ
    wanted = journal or environ.get("TRACKWAY_JOURNAL") or settings_file.load(home, environ).first("journal")
    if wanted is None:
        return system.can_map()
    return one_of("journal", wanted, _JOURNALS) == "mmap"


def rules_for(
    redact: Any,  # noqa: ANN401  a caller's value is anything
    home: Home,
    environ: Mapping[str, str] | None = None,
    files: Both | None = None,
) -> Rules:
    """What is hidden: the caller's rules and the files', or with ``TRACKWAY_REDACT=0`` the caller's. False: nothing."""
    if redact is False:
        return NONE
    environ = os.environ if environ is None else environ
    said = environ.get("TRACKWAY_REDACT")
    if said is not None and not _is_yes(said):
        return rules_of(redact)
    known = Rules(KNOWN) if said is not None else NONE
    return (files or settings_file.load(home, environ)).rules(environ).plus(known).plus(rules_of(redact))


def number(what: str, value: Any, kind: type[N]) -> N:  # noqa: ANN401  a caller's value is anything
    """The value as a number of that kind; one that is none is misuse."""
    try:
        return kind(value)
    except (TypeError, ValueError, OverflowError) as error:
        # The value itself stays out of it: this may be recorded as the reason of a failure, cut where no rule sees it.
        raise BadSetting(f"{what} is a {type(value).__name__}", hint="a number", value=value) from error


def one_of(what: str, value: str, known: tuple[str, ...]) -> str:
    """The value, if it is a known one."""
    if value not in known:
        raise BadSetting(f"{what} is {value!r}", hint=f"one of {', '.join(known)}", value=value)
    return value


def open_store(
    store: str | os.PathLike[str] | Store | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
    lift: bool = False,
) -> LiveStore:
    """Open a store to read: what is sealed and what running processes have in their journals.

    With ``lift``, what was redacted stands in the clear again: that takes the key, which is in the home.

    >>> import trackway
    >>> store = trackway.open_store()
    >>> [each.task for each in store.episodes()]
    []
    """
    place = home_at(home)
    if not lift:
        return LiveStore(place, store_for(store, place))
    from trackway.recording.key import tokens_to_lift
    from trackway.recording.lifting import LiftingStore

    return LiftingStore(place, store_for(store, place), tokens_to_lift(place))
