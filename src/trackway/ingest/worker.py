"""One file read to its end into a spool, in a process of its own: what it is, what it says, and its bytes.

It stores nothing and knows no store. A file that changes while it is read is read again; one that will not stand still
is taken as it was up to the size it had.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from pathlib import Path
from typing import IO, Final, NamedTuple

import msgspec
from blake3 import blake3

from trackway.errors import FileRefused
from trackway.ingest.original import Original
from trackway.ingest.parse import Found, parsed
from trackway.ingest.source import Source, Trouble
from trackway.ingest.sources import all_sources, detect, source_of
from trackway.ingest.spool import Mentioned, ReadFile, SpooledEntry, Spooling, Told
from trackway.schema.codec import decode
from trackway.store.frames import Packer
from trackway.store.originals import Hashing, OriginalFile, Part, cut

_TOLD: Final = 1000
_TIMES: Final = 3
_BEGUN: Final = frozenset({"assistant_text", "assistant_thinking", "assistant_tool_call", "tool_result", "episode_end"})
"""What makes a session without a name one that can be told from others, as a second prompt does."""
_LENGTH: Final = struct.Struct("<Q")
NOTHING_KNOWN: Final = "is nothing known"


class Job(NamedTuple):
    """A file to be read: where it is, what it is called, where to, and what was known of it the last time."""

    path: bytes
    name: str
    spool: bytes
    earlier: tuple[int, str] | None = None
    source: str | None = None


def serve() -> None:
    """Read what is asked for on stdin, tell of it on stdout, until there is no more; the body of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asked; this ends when its stdin does
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may write where the answers go
    while True:
        try:
            job = Job(*msgspec.msgpack.decode(receive(stdin)))
        except EOFError:
            return
        send(stdout, msgspec.msgpack.encode(read_file(job)))


def send(stream: IO[bytes], body: bytes) -> None:
    """A message, with its length before it."""
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """The next message; raises ``EOFError`` where there is none, or half of one."""
    start = stream.read(_LENGTH.size)
    if len(start) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(start)
    body = stream.read(length)
    if len(body) < length:
        raise EOFError
    return body


class _Session:
    """How much a file says of one session."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.start: int | None = None
        self.stop = 0
        self.is_anywhere = False
        self.entries = self.events = 0
        self.says = False
        self.beginning = ""
        self._begun = blake3()
        self._prompts = 0

    def begin(self, found: Found) -> None:
        """Take an entry for the beginning, as long as nothing has come of it."""
        if not self.beginning:
            self._begun.update(found.key.to_bytes(8, "little"))
            kinds = [decode(each).kind for each in found.events]
            self._prompts += kinds.count("user")
            if self._prompts > 1 or not _BEGUN.isdisjoint(kinds):
                self.beginning = self._begun.hexdigest(16)


def read_file(job: Job) -> ReadFile:
    """Read a file into its spool; what is wrong with it is said in what this returns, never raised."""
    spool = Path(os.fsdecode(job.spool))
    try:
        return _read(job, spool)
    except FileRefused as error:
        found = ReadFile(name=job.name, refused=error.message, hint=error.hint or "")
    except OSError as error:
        found = ReadFile(name=job.name, refused=f"{job.name}: {error.strerror or error}")
    except Exception as error:  # noqa: BLE001  a source may be anybody's: one that trips over a file stops no other
        said = f"{job.name}: its reader failed: {type(error).__name__}: {error}"
        found = ReadFile(name=job.name, refused=said, hint="please report it; nothing of the file was imported")
    spool.unlink(missing_ok=True)
    return found


def _read(job: Job, spool: Path) -> ReadFile:
    """What the file says; it is read again where it changed meanwhile, and what is kept of it might be another."""
    path = Path(os.fsdecode(job.path))
    for again in range(_TIMES):
        with path.open("rb"):  # as long as it is open, no other file gets its number
            original = Original(path, job.name)
            before = Hashing.of(original.raw_blocks()) if again else None
            source = _source(original, job.source)
            if isinstance(source, ReadFile):
                return source
            found = _Reading(job, original, source, spool).read()
            has_grown = original.is_the_same() and found.files[0].hash == before
            if all(each.is_as_it_was() or (each is original and has_grown) for each in original.opened()):
                return found
        spool.unlink()
    raise FileRefused(f"{job.name} changes while it is read", hint="import it when it stands still", path=job.name)


def _source(original: Original, given: str | None) -> Source | ReadFile:
    """The source a file is of, or why there is none."""
    if given is not None:
        source = source_of(given)
        if source is None:
            raise FileRefused(f"no source {given!r}", hint=f"one of {', '.join(each.name for each in all_sources())}")
        return source
    head = original.head()
    found = detect(head)
    if not found:
        said = f"{original.name} {NOTHING_KNOWN}" if original.size else f"{original.name} is empty"
        looked = "; ".join(each.looked_for for each in all_sources())
        if head.body.startswith(b"SQLite format 3"):
            looked = f"files, not databases (opencode: `opencode export` writes one); {looked}"
        raise FileRefused(said, hint=f"looked for {looked}", path=original.name)
    if found[0].sign.is_part:
        return ReadFile(name=original.name, part_of=found[0].source.name)
    return found[0].source


class _Reading:
    """One file on its way into its spool."""

    def __init__(self, job: Job, original: Original, source: Source, spool: Path) -> None:
        self._job = job
        self._original = original
        self._source = source
        self._spool = Spooling(spool)
        self._sessions: dict[str, _Session] = {}
        self._troubles: list[Told] = []
        self._n_troubles = 0
        self._packer = Packer()
        self._open: list[_Session] = []
        self._at = 0

    def read(self) -> ReadFile:
        try:
            if self._source.name == "pack":  # its events are numbered already: see `packs`
                self._spool.end()
                return self._told(*self._files())
            for each in parsed(self._source, self._original):
                if isinstance(each, Trouble):
                    self._trouble(each)
                else:
                    self._entry(each)
            if not self._sessions:
                raise self._original.refused(self._nothing())
            self._spool.end()
            return self._told(*self._files())
        finally:
            self._spool.close()

    def _nothing(self) -> str:
        why = f": {self._troubles[0].reason}" if self._troubles else ""
        return f"it looks like {self._source.title}, and holds no episode{why}"

    def _trouble(self, trouble: Trouble) -> None:
        self._n_troubles += 1
        if len(self._troubles) < _TOLD:
            self._troubles.append(Told(line=trouble.place.line, offset=trouble.place.offset, reason=trouble.reason))

    def _entry(self, found: Found) -> None:
        session = self._sessions.get(found.session)
        if session is None:
            session = self._sessions[found.session] = _Session(len(self._sessions))
        if not found.session:
            session.begin(found)
        self._stands(session, found.place.offset)
        session.entries += 1
        session.says = session.says or found.says
        session.events += len(found.events)
        events = [(each.body, each.flags, each.schema) for each in found.events]
        self._spool.entry(SpooledEntry(session.number, found.key, events, list(found.contents)))

    def _stands(self, session: _Session, offset: int | None) -> None:
        """An entry goes from its offset to where the next one begins; of one that stands elsewhere nobody knows."""
        if offset is None:
            session.is_anywhere = True
            return
        session.start = offset if session.start is None else min(session.start, offset)
        if offset != self._at:
            self._end(offset)
        self._at = offset
        self._open.append(session)

    def _end(self, offset: int) -> None:
        """What stands where the last entries were ends here."""
        for each in self._open:
            each.stop = max(each.stop, offset)
            each.is_anywhere = each.is_anywhere or offset < self._at
        self._open = []

    def _files(self) -> tuple[list[OriginalFile], str | None]:
        """The bytes of the file, and of what lies beside it, into the spool."""
        earlier = self._job.earlier
        main, instead = self._file(self._original, None, earlier)
        return [main, *(self._file(each, main.hash, None)[0] for each in self._original.companions.values())], instead

    def _file(
        self, original: Original, beside: str | None, earlier: tuple[int, str] | None
    ) -> tuple[OriginalFile, str | None]:
        hashing = Hashing(-1 if earlier is None else earlier[0])
        for piece in cut(hashing.passing(original.raw_blocks())):
            self._spool.part(Part(blake3(piece).digest(), len(piece), self._packer.deflate(piece)))
        self._spool.end()
        file = OriginalFile(
            name=original.name, source=self._source.name, size=hashing.size, hash=hashing.name,
            modified=original.modified, beside=beside, warnings=0 if beside else self._n_troubles,
        )  # fmt: skip
        grown = earlier is not None and hashing.size > earlier[0] and hashing.earlier == earlier[1]
        return file, earlier[1] if grown and earlier is not None else None

    def _beside(self) -> list[bytes]:
        return sorted({os.fsencode(path) for each in self._original.opened() for path in each.looked_at})

    def _told(self, files: list[OriginalFile], instead: str | None) -> ReadFile:
        size = files[0].size
        self._end(size)
        return ReadFile(
            name=self._original.name, size=size, modified=files[0].modified, source=self._source.name,
            sessions=[self._mentioned(name, each, size) for name, each in self._sessions.items()],
            troubles=self._troubles, n_troubles=self._n_troubles, files=files, instead=instead,
            spool=os.fsencode(self._spool.path), beside=self._beside(),
        )  # fmt: skip

    def _mentioned(self, name: str, session: _Session, size: int) -> Mentioned:
        """The bytes of a session are all of them where that is not to be told more closely."""
        is_all = len(self._sessions) == 1 or session.is_anywhere or not self._original.is_plain
        is_empty = not session.says or not (name or session.beginning)
        return Mentioned(
            session=name, start=0 if is_all else session.start or 0, stop=size if is_all else session.stop,
            entries=session.entries, events=session.events, is_empty=is_empty, beginning=session.beginning,
        )  # fmt: skip
