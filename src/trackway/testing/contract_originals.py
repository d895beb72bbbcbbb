"""What every store does that keeps imported files. Subclass it beside ``StoreContract``.

class TestMyStore(OriginalsContract):
    def make(self, tmp_path):
        return MyStore(tmp_path)
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import pytest
from blake3 import blake3

from trackway.errors import BlobNotFound, EventRefused
from trackway.schema import ids
from trackway.schema.canonical import hash_bytes
from trackway.store.base import Batch, Store
from trackway.store.frames import Packer
from trackway.store.originals import Incoming, KeepsOriginals, OriginalFile, Part, cut
from trackway.testing.events import records, small_episode

_FIRST, _SECOND = (ids.uuid7(1_800_000_000_000_000_000 + i, bytes(range(i, 10 + i))) for i in range(2))


class ImportStore(Store, KeepsOriginals, Protocol):
    """A store that files can be imported into."""


def incoming(body: bytes, *episodes: str, name: str = "a.jsonl", **more: Any) -> Incoming:  # noqa: ANN401
    """A file on its way in, about these episodes: the first has its first half, the second the other."""
    packer = Packer()
    parts = [Part(blake3(each).digest(), len(each), packer.deflate(each)) for each in cut([body])]
    half = len(body) // max(1, len(episodes))
    spans = {each: (i * half, (i + 1) * half) for i, each in enumerate(episodes)}
    file = OriginalFile(name=name, source="claude_code", size=len(body), hash=hash_bytes(body))
    return Incoming(file, parts, spans, **more)


def lines(count: int, said: str = "line") -> bytes:
    """Some lines of text."""
    return b"".join(f"{said} {i} {'x' * (i % 89)}\n".encode() for i in range(count))


class OriginalsContract:
    """Behaviours every store that keeps imported files shares."""

    def make(self, tmp_path: Path) -> ImportStore:
        """A fresh, empty store."""
        raise NotImplementedError

    @pytest.fixture
    def keeper(self, tmp_path: Path) -> Any:  # noqa: ANN401  a generator of stores
        """The store under test."""
        made = self.make(tmp_path)
        yield made
        made.close()

    def add(self, keeper: ImportStore, files: Iterable[Incoming], *episodes: str) -> None:
        """Store small episodes together with files."""
        events = [each for episode in episodes for each in records(episode, small_episode())]
        keeper.seal(Batch(events, originals=files, is_whole=True))

    def test_gives_the_file_back(self, keeper: ImportStore) -> None:
        """A file of many parts comes back byte for byte, named by the hash of all of it."""
        body = lines(60_000)
        self.add(keeper, [incoming(body, _FIRST)], _FIRST)

        (found,) = keeper.originals(_FIRST)

        assert (found.name, found.size, found.hash) == ("a.jsonl", len(body), hash_bytes(body))
        assert b"".join(keeper.original(found.hash)) == body
        assert keeper.has_original(found.hash)
        assert keeper.episodes_from(found.hash) == [_FIRST]

    def test_an_empty_file_is_a_file(self, keeper: ImportStore) -> None:
        """Nothing comes back of nothing."""
        self.add(keeper, [incoming(b"", _FIRST)], _FIRST)

        (found,) = keeper.originals(_FIRST)

        assert b"".join(keeper.original(found.hash)) == b""

    def test_the_largest_stands_first_and_what_lies_beside_last(self, keeper: ImportStore) -> None:
        """An episode may come from several files."""
        small, large = incoming(lines(3), _FIRST, name="small"), incoming(lines(9), _FIRST, name="large")
        beside = incoming(lines(99, "beside"), _FIRST, name="beside")
        beside = beside._replace(file=_beside(beside.file, large.file.hash))

        self.add(keeper, [small, beside, large], _FIRST)

        assert [each.name for each in keeper.originals(_FIRST)] == ["large", "small", "beside"]

    def test_what_it_has_grown_from_goes(self, keeper: ImportStore) -> None:
        """Of a file that has grown, only the longer one is kept, about all that the shorter one was about."""
        short, long = lines(20_000), lines(40_000)
        self.add(keeper, [incoming(short, _FIRST)], _FIRST)
        grown = incoming(long, _SECOND, instead=hash_bytes(short))
        self.add(keeper, [grown], _SECOND)

        assert [each.hash for each in keeper.originals(_FIRST)] == [hash_bytes(long)]
        assert [each.hash for each in keeper.originals(_SECOND)] == [hash_bytes(long)]
        with pytest.raises(BlobNotFound):
            list(keeper.original(hash_bytes(short)))

    def test_a_file_goes_with_its_last_episode(self, keeper: ImportStore) -> None:
        """Nothing of it can be read after."""
        body = lines(20_000)
        self.add(keeper, [incoming(body, _FIRST)], _FIRST)

        keeper.drop([_FIRST])

        assert keeper.originals(_FIRST) == []
        assert not keeper.has_original(hash_bytes(body))
        assert keeper.episodes_from(hash_bytes(body)) == []
        with pytest.raises(BlobNotFound):
            list(keeper.original(hash_bytes(body)))

    def test_what_is_refused_leaves_no_file(self, keeper: ImportStore) -> None:
        """Events and file are kept together or not at all."""
        self.add(keeper, [], _FIRST)
        keeper.drop([_FIRST])
        late = list(records(_FIRST, small_episode()[1:]))

        with pytest.raises(EventRefused):
            keeper.seal(Batch(late, originals=[incoming(lines(5), _FIRST)], is_whole=True))

        with pytest.raises(BlobNotFound):
            list(keeper.original(hash_bytes(lines(5))))

    def test_no_file_of_a_recorded_episode(self, keeper: ImportStore) -> None:
        """An episode that came from no file has none."""
        self.add(keeper, [], _FIRST)

        assert keeper.originals(_FIRST) == []


def _beside(file: OriginalFile, name: str) -> OriginalFile:
    import msgspec

    return msgspec.structs.replace(file, beside=name)
