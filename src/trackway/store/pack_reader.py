"""A pack, read line by line and believed only as far as it is checked: form, blobs, counts, and the hash at its end.

Every pass over the file makes every check, so what is read a second time is what was checked the first time. A line is
bounded, and so is what a compressed file unfolds into at once.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple

from blake3 import blake3

from trackway.errors import EventRefused, PackRefused
from trackway.schema import ids
from trackway.schema.canonical import name_of
from trackway.schema.codec import BLOB_TEXT, LOCAL_BYTES, Encoded, decode, exact_hook
from trackway.schema.events import Event, Unknown
from trackway.schema.exact_json import RAW, UNKNOWN, agrees, encoded_of, event_of
from trackway.schema.marks import bytes_of, object_of
from trackway.schema.version import SCHEMA
from trackway.store.inflated import ZSTD, Inflated
from trackway.store.pack import END, HEADER, LONGEST_LINE, VERSION, Done, Packed, blobs_of, end_line

_BLOB: Final = re.compile(r"blake3:[0-9a-f]{64}")
_OTHER_FILES: Final = (
    (b"\xef\xbb\xbf", "begins with a byte order mark", "save it as UTF-8 without one"),
    (b"\xff\xfe", "is UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16", "save it as UTF-8"),
    (b"\x1f\x8b", "is compressed with gzip", "gunzip it first; zstd is read as it is"),
    (b"SQLite format 3", "is a SQLite file", "a whole store is read with --store FILE"),
)


class BlobPart(NamedTuple):
    """Some bytes of a blob; ``last`` where no more follow."""

    name: str
    body: bytes
    last: bool


class PackedEvent(NamedTuple):
    """An event, the bytes it is stored in, and the line it stands in, without its end."""

    number: int
    line: bytes
    event: Event
    encoded: Encoded


class PackFile:
    """A pack in a file that can be read again from its beginning."""

    def __init__(self, file: BinaryIO, name: str, done: Done) -> None:
        self.name = name
        self.episode = ""
        self._file = file
        self._done = done
        self._start = file.tell()
        self._digest: bytes | None = None

    def check(self) -> Packed:
        """Read all of it; raises ``PackRefused`` where anything is not as it must be."""
        reading = _Reading(self._opened(), self.name, self._done)
        for _ in reading.entries():
            pass
        self.episode, self._digest = reading.episode, reading.digest
        return Packed(reading.episode, reading.events, sum(reading.named.values()), reading.missing)

    def entries(self) -> Iterator[BlobPart | PackedEvent]:
        """What it holds, in order; checked again, to be the same file still."""
        reading = _Reading(self._opened(), self.name, self._done)
        yield from reading.entries()
        if reading.digest != self._digest:
            raise PackRefused(f"{self.name} was changed while it was read", hint="try again")

    def _opened(self) -> BinaryIO:
        self._file.seek(self._start)
        head = self._file.read(16)
        self._file.seek(self._start)
        for magic, what, hint in _OTHER_FILES:
            if head.startswith(magic):
                raise PackRefused(f"{self.name} {what}: no pack", hint=hint, path=self.name)
        return io.BufferedReader(Inflated(self._file, self.name)) if head.startswith(ZSTD) else self._file


class _Reading:
    """One pass: what was met so far."""

    def __init__(self, stream: BinaryIO, name: str, done: Done) -> None:
        self._stream = stream
        self._name = name
        self._done = done
        self._line = 0
        self._hash = blake3()
        self._growing: tuple[str, blake3] | None = None
        self._fresh: set[str] = set()
        self.named: dict[str, bool] = {}
        self.episode = ""
        self.schema = 0
        self.events = self.missing = 0
        self.digest = b""

    def entries(self) -> Iterator[BlobPart | PackedEvent]:
        """Every blob's parts and every event; returns once the end was there and held."""
        line = self._next()
        self._header(line)
        self._hash.update(line)
        while True:
            line = self._next()
            tree = self._object(line)
            if "kind" in tree:
                yield self._event(tree, line)
            elif "blob" in tree:
                part = self._part(tree)
                if part is not None:
                    yield part
            elif END in tree:
                self._end(line)
                return
            else:
                raise self._refused("it is neither an event, a blob nor the end")
            self._hash.update(line)

    def _next(self) -> bytes:
        line = self._stream.readline(LONGEST_LINE + 1)
        self._line += 1
        if line.endswith(b"\r\n"):
            raise self._refused(
                "its end was converted (CRLF)", "get the file again, as binary: not one byte may change"
            )
        if len(line) > LONGEST_LINE:
            raise self._refused(f"it is longer than {LONGEST_LINE:,} bytes")
        if not line and self._line == 1:
            raise PackRefused(f"{self._name} is empty: no pack", path=self._name)
        if not line.endswith(b"\n"):
            where = f"in the middle of line {self._line}" if line else f"after line {self._line - 1}"
            raise PackRefused(f"{self._name} ends {where}: it is not whole", hint="get it again", path=self._name)
        self._done(len(line))
        return line

    def _object(self, line: bytes) -> dict[str, Any]:
        try:
            return object_of(line)
        except EventRefused as error:
            raise self._refused(error.message) from error

    def _header(self, line: bytes) -> None:
        try:
            tree = object_of(line)
        except EventRefused:
            tree = {}
        version, episode, schema = tree.get(HEADER), tree.get("episode"), tree.get("schema")
        if type(version) is not int or version < 1:
            wanted = f'a first line such as {{"{HEADER}":{VERSION},"episode":…}}'
            raise PackRefused(
                f"{self._name} is no pack: looked for {wanted}, found {line[:40]!r}",
                hint="trackway pack writes one",
                path=self._name,
            )
        if version > VERSION:
            raise PackRefused(
                f"{self._name} is a pack of format {version}, this trackway reads up to {VERSION}",
                hint="update trackway: pip install -U trackway",
                path=self._name,
            )
        if type(episode) is not str or not ids.is_id(episode):
            raise self._refused(f"{str(episode)[:60]!r} is no id of an episode")
        if type(schema) is not int or schema < 1:
            raise self._refused(f"{str(schema)[:60]!r} is no schema number")
        self.episode, self.schema = episode, schema

    # --- events ---------------------------------------------------------------------------------------------------

    def _event(self, tree: dict[str, Any], line: bytes) -> PackedEvent:
        if self._growing is not None:
            raise self._refused(f"blob {self._growing[0]} has not ended")
        try:
            encoded = encoded_of(tree)
            event = _read_back(encoded)
            self._check_event(event, tree, line)
        except EventRefused as error:
            raise self._refused(error.message) from error
        except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
            raise self._refused(f"no event: {error}") from error
        self._check_blobs(event)
        self.events += 1
        return PackedEvent(self._line, line[:-1], event, encoded)

    def _check_event(self, event: Event, tree: dict[str, Any], line: bytes) -> None:
        if (UNKNOWN in tree or RAW in tree) and not agrees(tree, event):
            raise ValueError("its bytes are not those of the event it says it is")
        if type(event) is Unknown and UNKNOWN not in tree and self.schema <= SCHEMA:
            event_of(line)  # says which field of a known kind does not fit
            raise ValueError(f"schema {self.schema} has no kind {event.kind[:60]!r}")

    def _check_blobs(self, event: Event) -> None:
        needed = blobs_of(event)
        for name in needed:
            if name not in self.named:
                raise self._refused(f"it needs the blob {name[:80]}, which does not stand before it")
        if not self._fresh.issubset(needed):
            raise self._refused(f"it is not the event that needs the blob {min(self._fresh.difference(needed))}")
        self._fresh.clear()

    # --- blobs ----------------------------------------------------------------------------------------------------

    def _part(self, tree: dict[str, Any]) -> BlobPart | None:
        name, more = tree["blob"], tree.get("more") is True
        if type(name) is not str or _BLOB.fullmatch(name) is None:
            raise self._refused(f"{str(name)[:80]!r} is no name of a blob")
        if self._growing is None:
            self._begin(name, is_there=tree.get("missing") is not True)
            if self._growing is None:
                return None
        if self._growing[0] != name:
            raise self._refused(f"blob {self._growing[0]} has not ended")
        body = self._body(tree)
        digest = self._growing[1]
        digest.update(body)
        if not more:
            if name_of(digest.digest()) != name:
                raise self._refused(f"the content of blob {name} is not what its name says")
            self._growing = None
        return BlobPart(name, body, not more)

    def _begin(self, name: str, *, is_there: bool) -> None:
        if name in self.named:
            raise self._refused(f"blob {name} is there twice")
        self.named[name] = is_there
        self._fresh.add(name)
        if is_there:
            self._growing = name, blake3()
        else:
            self.missing += 1

    def _body(self, tree: dict[str, Any]) -> bytes:
        content = tree.get("text")
        try:
            if type(content) is str and "base64" not in tree:
                return content.encode()
            return bytes_of(tree.get("base64"))
        except ValueError as error:
            raise self._refused(f"no content of a blob: {error}") from error

    # --- the end --------------------------------------------------------------------------------------------------

    def _end(self, line: bytes) -> None:
        if self._growing is not None or self._fresh:
            raise self._refused("the last blob is needed by no event")
        if not self.events:
            raise self._refused("the pack holds no event")
        self.digest = self._hash.digest()
        found = Packed(self.episode, self.events, sum(self.named.values()), self.missing)
        if line != end_line(found, self.digest) + b"\n":
            raise PackRefused(
                f"{self._name} is not what was packed: its last line does not fit what stands before it",
                hint="get it again",
                path=self._name,
            )
        following = self._stream.readline(1024)
        if following:
            what = "another pack follows" if HEADER.encode() in following else "something follows"
            raise PackRefused(
                f"{self._name}: {what} after line {self._line}, where the pack ends",
                hint="a file holds one episode; unpack takes several files",
                path=self._name,
            )

    def _refused(self, why: str, hint: str = "") -> PackRefused:
        return PackRefused(f"{self._name}, line {self._line}: {why}", hint=hint, path=self._name, line=self._line)


def _read_back(encoded: Encoded) -> Event:
    """The event as a store will read it; a reference into a store is nothing a pack may bring."""

    def hook(code: int, raw: memoryview) -> Any:  # noqa: ANN401
        if BLOB_TEXT <= code <= LOCAL_BYTES:
            raise ValueError("it refers into a store")
        return exact_hook(code, raw, hook)

    return decode(encoded, hook)
