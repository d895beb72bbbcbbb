"""Large values on their way into the journal: taken out of their event before it is encoded, written part by part.

So a value of 300 MB costs its own memory and a part's, and a file's content a part's alone. What is left in its place
is a reference that only this journal understands; the sealer makes it one that the store does.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol

from blake3 import blake3

from trackway.schema.canonical import name_of
from trackway.schema.events import FileState

BIG: Final = 1 << 20
PART: Final = (4 << 20) - 256  # two fit into a segment with their headers
_TEXT_PART: Final = 1 << 20

MAY_BE_LARGE: Final = (
    "content", "args", "text", "detail", "returned", "messages", "system", "response", "token_ids", "logprobs",
    "state", "evidence", "parameters", "system_prompt",
)  # fmt: skip
"""Fields that no summary is made from, so that whoever folds one need not read them."""

Part = tuple[bytes, bool]
"""Some bytes, and whether they are the last."""


class Streamed(Protocol):
    """Content that is not in memory."""

    def parts(self) -> Iterator[Part]:
        """Its bytes, at least one part."""
        ...

    def stands_for(self) -> Any:  # noqa: ANN401
        """What the event says of it, once all parts were read."""
        ...


class Payload(NamedTuple):
    """Something large that goes before its event, in parts; ``field`` is where the event refers to it.

    A mapping or a list is gone through for what is large inside it.
    """

    content: str | bytes | dict[Any, Any] | list[Any] | Streamed
    field: str | None = None


class FileContent:
    """A regular file, as long as it is when it is opened; hashed as it is read, so what is named is what was kept."""

    def __init__(self, path: str | os.PathLike[str], *, mode: int | None = None) -> None:
        self._path = Path(path)
        self._mode = mode
        self._hash = blake3()
        self._size = 0

    def parts(self) -> Iterator[Part]:
        """Its bytes, from the start each time; a file cut meanwhile ends where it ends."""
        self._hash, self._size = blake3(), 0
        with _opened(self._path) as file:
            left = os.fstat(file.fileno()).st_size or sys.maxsize  # 0: empty, or of /proc, where no size is known
            while True:
                part = file.read(min(PART, left))
                if part is None:  # it would block: what came so far is not known to be all
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(self._path))
                left = left - len(part) if part else 0
                self._hash.update(part)
                self._size += len(part)
                yield part, not left
                if not left:
                    return

    def stands_for(self) -> FileState:
        """Its name, size and mode."""
        return FileState(hash=name_of(self._hash.digest()), size=self._size, mode=self._mode)


def _opened(path: Path) -> IO[bytes]:
    """A regular file, open to be read; never waited for, as a pipe that nobody writes to would be."""
    try:
        file = open(path, "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115  the caller closes it
    except ValueError as error:  # a NUL in it, or what no name of a file can hold
        raise OSError(errno.EINVAL, str(error), repr(str(path))) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def parts_of(content: str | bytes) -> Iterator[Part]:
    """A value's bytes, part by part."""
    step = _TEXT_PART if isinstance(content, str) else PART
    total = max(len(content), 1)
    for start in range(0, total, step):
        part = content[start : start + step]
        body = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else bytes(part)
        yield body, start + step >= total


def has_large(value: Any) -> bool:  # noqa: ANN401
    """Whether a plain value is large, or holds a text or bytes that are."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value) >= BIG
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        return False
    return any(map(has_large, value))


def large_of(fields: dict[str, Any], names: tuple[str, ...] = MAY_BE_LARGE) -> tuple[Payload, ...]:
    """The fields that hold something large."""
    return tuple(Payload(fields[name], name) for name in names if name in fields and has_large(fields[name]))


def without_large(value: Any, put: Callable[[str | bytes], Any]) -> Any:  # noqa: ANN401
    """The value with what is large inside it replaced by what ``put`` returns; what holds none is not copied."""
    if type(value) in (str, bytes):
        return put(value) if len(value) >= BIG else value
    if not has_large(value):
        return value
    if type(value) is dict:
        return {key: without_large(each, put) for key, each in value.items()}
    return [without_large(each, put) for each in value]
