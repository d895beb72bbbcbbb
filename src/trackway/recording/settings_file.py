"""``trackway.toml``: the project's, found in the working folder or the nearest one above it, over the home's.

Strict on purpose: a misspelt table would be a rule that hides nothing or a limit that keeps everything, so an unknown
name is an error wherever the file is read. Rules of ``[redact]`` add up over both files: a project adds to what its
user hides and cannot take away from it. Everything else is the project's word first.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from trackway.errors import BadSetting
from trackway.recording.losses import say
from trackway.recording.rules import NONE, Rules, literal, pattern, rules_of
from trackway.store.home import Home
from trackway.store.retention import Retention

if TYPE_CHECKING:
    from trackway.read.price import Price

NAME: Final = "trackway.toml"
_LARGEST: Final = 1 << 20


class RedactTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[redact]``: what is hidden before it is recorded."""

    known: bool = False
    patterns: dict[str, str] = {}
    fields: tuple[str, ...] = ()
    env: tuple[str, ...] = ()

    def rules(self, environ: Mapping[str, str]) -> Rules:
        """As rules; an environment variable's value is hidden wherever it stands."""
        whole = rules_of(self.known)
        for name, expression in self.patterns.items():
            whole = whole.plus(pattern(name, expression))
        for name in self.env:
            whole = whole.plus(literal(name, environ.get(name, "")))
        return whole.plus(Rules(fields=frozenset(self.fields)))


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file says, or both together."""

    home: str | None = None
    store: str | None = None
    journal: Literal["mmap", "append"] | None = None
    disabled: bool | None = None
    redact: RedactTable | None = None
    retention: Retention | None = None
    prices: dict[str, dict[str, Any]] = {}
    guard: dict[str, Any] = {}


EMPTY: Final = Settings()


class Both(msgspec.Struct, frozen=True, kw_only=True):
    """The project's settings over the home's, and the files they came from."""

    project: Settings = EMPTY
    home: Settings = EMPTY
    places: tuple[Path | None, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that were read."""
        return tuple(dict.fromkeys(each for each in self.places if each is not None and each.exists()))

    def first(self, name: str) -> Any:  # noqa: ANN401  each name has a type of its own
        """The project's value, else the home's, else None."""
        mine = getattr(self.project, name)
        return getattr(self.home, name) if mine is None else mine

    def rules(self, environ: Mapping[str, str]) -> Rules:
        """All rules of redaction."""
        tables = [each.redact.rules(environ) for each in (self.home, self.project) if each.redact is not None]
        return NONE.plus(tables[0]).plus(tables[-1]) if tables else NONE

    @property
    def retention(self) -> Retention:
        """How long episodes are kept."""
        return self.first("retention") or Retention()

    def prices(self) -> dict[str, Price]:
        """What models cost, by name; looked at only when somebody asks, since recording does not."""
        from trackway.read.price import Price

        try:
            return msgspec.convert({**self.home.prices, **self.project.prices}, dict[str, Price])
        except (msgspec.ValidationError, ValueError) as error:
            where = " or ".join(map(str, self.files))
            hint = "[prices.MODEL] has input, output, cache_read, cache_write (dollars a million) and as_of (a date)"
            raise BadSetting(f"{where}: [prices]: {error}", hint=hint) from error


_NOTHING: Final = Both()


def load(home: Home, environ: Mapping[str, str] | None = None) -> Both:
    """What the files say now; a file that cannot be understood raises ``BadSetting``, one that is missing is empty."""
    found = project_file(environ)
    mine = _read(home.settings)
    if mine.home is not None:
        hint = "remove `home` from it; a project's file or TRACKWAY_HOME may say it"
        raise BadSetting(f"{home.settings}: the home's own file cannot say where the home is", hint=hint)
    if found is None and mine is EMPTY:
        return _NOTHING
    theirs = EMPTY if found is None else _read(found)
    return Both(project=theirs, home=mine, places=(found, home.settings))


def project(environ: Mapping[str, str] | None = None) -> Settings:
    """What the project's file says."""
    found = project_file(environ)
    return EMPTY if found is None else _read(found)


def say_what_surprises(environ: Mapping[str, str] | None = None) -> None:
    """One line where a project's file decides that nothing is recorded, or that it goes out of the project."""
    path = project_file(environ)
    said = EMPTY if path is None else _read(path)
    if path is None or said is EMPTY:
        return
    if said.disabled:
        _say_once(f"{path} says that nothing is recorded (TRACKWAY_DISABLED=0 records)")
    for name in ("home", "store"):
        value = getattr(said, name)
        if value is not None and not Path(value).resolve().is_relative_to(path.parent.resolve()):
            _say_once(f"{path} says where episodes go: {name} is {value}")


def project_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """The project's file: the one ``TRACKWAY_SETTINGS`` names, else the nearest from the working folder upwards."""
    environ = os.environ if environ is None else environ
    named = environ.get("TRACKWAY_SETTINGS")
    if named is not None:
        return _named(named)
    try:
        folder = os.getcwd()  # noqa: PTH109  text, not paths: this is done for every episode
    except OSError:  # the folder was removed under us
        return None
    while True:
        found = f"{folder.rstrip('/')}/{NAME}"
        try:
            there = os.stat(found)  # noqa: PTH116  as above
        except OSError:
            there = None
        if there is not None and stat.S_ISREG(there.st_mode):
            break
        if folder in ("/", ""):
            return None
        folder = folder.rpartition("/")[0] or "/"
    if there.st_uid in (os.getuid(), 0) or not os.getuid():
        return Path(found)
    _say_once(f"{found} belongs to somebody else and is not read (to trust it: TRACKWAY_SETTINGS={found})")
    return None


def _named(named: str) -> Path | None:
    if not named:
        return None
    path = Path(named).expanduser().absolute()
    if not path.is_file():
        raise BadSetting(f"TRACKWAY_SETTINGS names {path}, which is no file", hint="unset it, or make the file")
    return path


@lru_cache(maxsize=32)
def _say_once(message: str) -> None:
    say(message)


def _read(path: Path) -> Settings:
    try:
        there = os.stat(path)  # noqa: PTH116  called for every episode, and half as long as the method
    except (FileNotFoundError, NotADirectoryError):
        return EMPTY
    except OSError as error:
        if not os.access(path.parent, os.X_OK):  # the folder is closed to us: whoever needs what is in it says so
            return EMPTY
        raise BadSetting(f"{path} cannot be read: {error.strerror}", hint="see its owner and mode") from error
    if not stat.S_ISREG(there.st_mode) or there.st_size > _LARGEST:
        raise BadSetting(f"{path} is no settings file: no plain file, or over 1 MB", hint="move it away")
    return _parsed(path, (there.st_mtime_ns, there.st_size, there.st_ino))


@lru_cache(maxsize=8)
def _parsed(path: Path, _stamp: tuple[int, int, int]) -> Settings:
    """The file's settings, parsed anew when its stamp changes."""
    import tomllib

    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        found = msgspec.convert(_absolute(tree, path.parent), Settings)
        _ = found.redact and found.redact.rules({})  # a pattern that is none is said here, where its file is known
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror}", hint="see its owner and mode") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError, BadSetting) as error:
        raise BadSetting(f"{path}: {_said(error)}", hint="docs/settings.md lists what may stand there") from error
    return found


def _said(error: Exception) -> str:
    return error.message if isinstance(error, BadSetting) else str(error)


def _absolute(tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Paths in a file are meant from where the file is."""
    home = tree.get("home")
    if isinstance(home, str):
        tree["home"] = str(folder / Path(home).expanduser())
    store = tree.get("store")
    if isinstance(store, str) and ":" not in store:
        tree["store"] = str(folder / Path(store).expanduser())
    return tree
