"""Where the samples of an Inspect log stand: in one JSON document, or in a zip, each as one member or as many.

    samples/<id>_epoch_<n>.json                                  one member
    samples/<id>_epoch_<n>/sample.json, messages|events|calls|attachments/<start>.json     a shell and its sequences

Members are read in memory, bounded by what the archive may become at most, never written anywhere. A sample too large
to be held at once is read twice: for all but its events, then event by event.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from trackway.ingest.archives import RATIO, SMALL
from trackway.ingest.decoding import value_of
from trackway.ingest.formats._inspect_zip import blocks_of
from trackway.ingest.formats._rows import elements
from trackway.ingest.json_parts import parts
from trackway.ingest.original import LONGEST, Original
from trackway.ingest.source import Place, Trouble
from trackway.ingest.values import listing, part_of
from trackway.ingest.zips import opened

_ONE: Final = re.compile(r"samples/.*_epoch_\d+\.json", re.DOTALL)
_SHELL: Final = re.compile(r"(samples/.*_epoch_\d+)/sample\.json", re.DOTALL)
_POOLS: Final = 256 << 20
"""Bytes of a sample's messages, calls and attachments that are held at once."""
_SPLIT: Final = frozenset(("events", "messages"))
BROKEN: Final = (
    ValueError, OSError, EOFError, RecursionError, NotImplementedError, RuntimeError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class Sample(NamedTuple):
    """A sample: its fields but for the long ones, and these, each to be gone through once."""

    fields: dict[str, Any]
    messages: Callable[[], Iterator[Any]]
    events: Callable[[], Iterator[Any]]
    attachments: Mapping[str, Any]
    pool: Sequence[Any] = ()
    calls: Sequence[Any] = ()


class Log(NamedTuple):
    """A log: what it says of itself (its ``eval``, its ``plan``), and its samples."""

    fields: dict[str, Any]
    samples: Iterator[Sample | Trouble]


def log_of(original: Original) -> Iterator[Log]:
    """The log in a file, while it is open."""
    head = original.head()
    if not head.body.startswith(b"PK"):
        yield Log(_json_fields(original), _json_samples(original))
        return
    try:
        with opened(original.path) as archive:
            names = {each.filename: each for each in archive.infolist()}
            most = max(SMALL, RATIO * original.size)
            if sum(each.file_size for each in names.values()) > most:
                raise original.refused(f"its {original.size:,} bytes become more than {most:,}")
            zipped = _Zipped(original, archive, names)
            yield Log(zipped.fields(), zipped.samples())
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise original.refused(f"no zip that can be read: {error}") from error


# --- one document -------------------------------------------------------------------------------------------------


def _json_fields(original: Original) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in original.members("samples"):
        if part.key == "samples" and "eval" in found:
            break
        if part.key != "samples":
            found[part.key] = part.value
    return found


def _json_samples(original: Original) -> Iterator[Sample | Trouble]:
    for part in elements(original, "samples"):
        if isinstance(part, Trouble):
            yield part
        elif part.key == "samples" and part.number is not None:
            yield whole_sample(part.value) if isinstance(part.value, dict) else _no_sample(part.value)


def _no_sample(value: Any) -> Trouble:  # noqa: ANN401
    return Trouble(Place(), f"no sample: {value!r:.40}")


def whole_sample(value: dict[str, Any]) -> Sample:
    """A sample that stands in one value."""
    old = part_of(value, "transcript")
    pools = part_of(value, "events_data")
    fields = {key: each for key, each in value.items() if key not in _LONG}
    return Sample(
        fields, _each(value.get("messages")), _each(value.get("events") or old.get("events")),
        part_of(value, "attachments") or part_of(old, "content"),
        listing(pools.get("messages")) or listing(value.get("message_pool")),
        listing(pools.get("calls")) or listing(value.get("call_pool")),
    )  # fmt: skip


_LONG: Final = frozenset((
    "messages", "events", "transcript", "attachments", "events_data", "message_pool", "call_pool",
))  # fmt: skip


def _each(value: Any) -> Callable[[], Iterator[Any]]:  # noqa: ANN401
    return lambda: iter(value if isinstance(value, list) else ())


# --- a zip --------------------------------------------------------------------------------------------------------


class _Zipped:
    """A log in a zip that is open."""

    def __init__(self, original: Original, archive: zipfile.ZipFile, names: dict[str, zipfile.ZipInfo]) -> None:
        self._original = original
        self._archive = archive
        self._names = names

    def fields(self) -> dict[str, Any]:
        """What the log says of itself: at its end where it has ended, else what was written at its start."""
        for name in ("header.json", "_journal/start.json"):
            if name in self._names:
                try:
                    found = self._value(name)
                except BROKEN:
                    continue
                if isinstance(found, dict):
                    return found
        return {}

    def samples(self) -> Iterator[Sample | Trouble]:
        """In the order in which they were written: that is how they ended."""
        for name, member in self._names.items():
            try:
                if (shell := _SHELL.fullmatch(name)) is not None:
                    yield self._chunked(shell[1])
                elif _ONE.fullmatch(name) is not None:
                    yield self._one(name, member)
            except BROKEN as error:
                yield Trouble(Place(), f"{name} cannot be read: {error}")

    def _blocks(self, name: str) -> Iterator[bytes]:
        return blocks_of(self._original.path, self._archive, self._names[name])

    def _value(self, name: str) -> Any:  # noqa: ANN401  a JSON value is anything
        if self._names[name].file_size > LONGEST:
            raise ValueError(f"{name} is of more than {LONGEST >> 20} MB")
        return value_of(b"".join(self._blocks(name)))

    def _one(self, name: str, member: zipfile.ZipInfo) -> Sample | Trouble:
        if member.file_size <= LONGEST:
            value = self._value(name)
            return whole_sample(value) if isinstance(value, dict) else _no_sample(value)
        fields: dict[str, Any] = {}
        for key, number, raw in parts(self._blocks(name), _SPLIT, LONGEST):
            if number is None:
                fields[key] = value_of(raw)
        sample = whole_sample(fields)
        return sample._replace(messages=self._streamed(name, "messages"), events=self._streamed(name, "events"))

    def _streamed(self, name: str, key: str) -> Callable[[], Iterator[Any]]:
        def each() -> Iterator[Any]:
            for found, number, raw in parts(self._blocks(name), _SPLIT, LONGEST):
                if found == key and number is not None:
                    yield value_of(raw)

        return each

    def _chunked(self, prefix: str) -> Sample | Trouble:
        fields = self._value(f"{prefix}/sample.json")
        if not isinstance(fields, dict):
            return _no_sample(fields)
        if f"{prefix}/metadata.json" in self._names:
            fields["metadata"] = self._value(f"{prefix}/metadata.json")
        held = [self._chunks(prefix, key) for key in ("messages", "calls", "attachments")]
        if sum(self._names[name].file_size for names in held for name in names) > _POOLS:
            raise ValueError(f"its messages are of more than {_POOLS >> 20} MB")
        pool, calls, attachments = ([one for name in names for one in listing(self._value(name))] for names in held)
        refs = fields.pop("message_refs", None)
        return Sample(
            fields, _each(expanded(refs, pool)), self._events(prefix),
            {str(i): each for i, each in enumerate(attachments)}, pool, calls,
        )  # fmt: skip

    def _events(self, prefix: str) -> Callable[[], Iterator[Any]]:
        names = self._chunks(prefix, "events")
        return lambda: (one for name in names for one in listing(self._value(name)))

    def _chunks(self, prefix: str, key: str) -> list[str]:
        """The members of a sequence, by the number of their first item."""
        start = f"{prefix}/{key}/"
        found = [name for name in self._names if name.startswith(start) and name[len(start) : -5].isdigit()]
        return sorted(found, key=lambda name: int(name[len(start) : -5]))


def expanded(refs: Any, pool: Sequence[Any]) -> list[Any]:  # noqa: ANN401  whatever stands where ranges should
    """The items that ranges ``[start, end)`` mean; what is no range, or beyond the end, means nothing."""
    found: list[Any] = []
    for each in refs if isinstance(refs, list) else ():
        if isinstance(each, list) and len(each) == 2 and all(type(one) is int and one >= 0 for one in each):
            found += pool[each[0] : each[1]]
            if len(found) > _MOST_ITEMS:
                break
    return found


_MOST_ITEMS: Final = 1_000_000
