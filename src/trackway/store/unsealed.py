"""Large values that are still in journals: read where they are, part by part, when somebody wants them.

A part may be sealed and gone at any moment. It leaves the journal only once it is in the store, so whoever misses one
here asks there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from blake3 import blake3

from trackway.errors import EventRefused
from trackway.schema import codec
from trackway.schema.canonical import name_of
from trackway.schema.codec import exact_hook
from trackway.store.base import Store
from trackway.store.payloads import bytes_of_pieces, text_of_pieces
from trackway.store.record import Record
from trackway.store.tail import Part, is_whole


def with_parts(parts: dict[int, list[Part]]) -> codec.ExtHook:
    """The hook that reads a journal's references as what they stand for, from where it is."""

    def hook(code: int, raw: memoryview) -> Any:  # noqa: ANN401
        if code in (codec.LOCAL_TEXT, codec.LOCAL_BYTES):
            mine = parts.get(int.from_bytes(raw, "little"), [])
            if not is_whole(mine):
                raise EventRefused("a part of its payload is missing or damaged")
            pieces = (each.read() for each in mine)
            return text_of_pieces(pieces) if code == codec.LOCAL_TEXT else bytes_of_pieces(pieces)
        return exact_hook(code, raw, hook)

    return hook


def blobs_in(found: Iterable[Record | Part]) -> dict[str, list[Part]]:
    """The blobs that are whole in one writer's tail, by name."""
    blobs: dict[str, list[Part]] = {}
    growing: dict[int, tuple[list[Part], blake3]] = {}
    for each in found:
        if isinstance(each, Part):
            parts, digest = growing.setdefault(each.number, ([], blake3()))
            parts.append(each)
            try:
                digest.update(each.read())
            except FileNotFoundError:  # sealed meanwhile: the store has it
                continue
            if each.last:
                blobs[name_of(digest.digest())] = parts
    return blobs


def parts_or_stored(parts: Iterable[Part], store: Store, name: str) -> Iterator[bytes]:
    """A blob's bytes from a journal; what was sealed while they are read, from the store."""
    done = 0
    try:
        for each in parts:
            piece = each.read()
            yield piece
            done += len(piece)
    except FileNotFoundError:
        for piece in store.blob(name):
            if done < len(piece):
                yield piece[done:]
            done = max(0, done - len(piece))
