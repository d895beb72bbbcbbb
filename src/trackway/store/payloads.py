"""Large values leave an event on its way into a store and come back on the way out.

A string or byte string of ``APART`` bytes or more, and a list of tools, become blobs named by their content hash; the
event keeps a reference in their place. Which store keeps the blob is the caller's business: this file only walks.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from trackway.errors import EventRefused
from trackway.schema import codec
from trackway.schema.codec import BLOBS, EXACT, Encoded, Ext, exact, exact_hook, listed, mapped, tree_of

APART: Final = 4096
_TOOLS_APART: Final = 1024
_MUCH: Final = 8 << 20
_decoder_of_text: Final = codecs.getincrementaldecoder("utf-8")

Keep = Callable[[bytes], bytes]
"""Stores bytes, returns their digest."""

Fetch = Callable[[bytes], Iterable[bytes]]
"""Returns the bytes of a digest, piece by piece."""

_REFERENCES: Final = (codec.BLOB_TEXT, codec.BLOB_BYTES, codec.BLOB_VALUE)


def take_apart(encoded: Encoded, keep: Keep, local: dict[int, bytes]) -> Encoded:
    """The event with its large values kept as blobs; ``local`` maps the journal's blob numbers to digests."""
    tree = tree_of(encoded.body, exact_hook)
    tools = tree.get("tools")
    if tools is not None and not isinstance(tools, Ext):
        packed = codec.encode_fast(exact(tools))
        if len(packed) >= _TOOLS_APART:
            tree["tools"] = Ext(codec.BLOB_VALUE, keep(packed))
    body = codec.encode_fast(exact(_apart(tree, keep, local)))
    return Encoded(body, encoded.flags | BLOBS | EXACT, encoded.schema)


def _apart(value: Any, keep: Keep, local: dict[int, bytes]) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        if len(value) < APART:
            return value
        return Ext(codec.BLOB_TEXT, keep(value.encode("utf-8", "surrogatepass")))
    if isinstance(value, bytes):
        return Ext(codec.BLOB_BYTES, keep(value)) if len(value) >= APART else value
    if isinstance(value, dict):
        return mapped(value, lambda each: _apart(each, keep, local))
    if isinstance(value, list):
        return listed(value, lambda each: _apart(each, keep, local))
    if isinstance(value, Ext) and value.code in (codec.LOCAL_TEXT, codec.LOCAL_BYTES):
        digest = local.get(int.from_bytes(value.data, "little"))
        if digest is None:
            raise EventRefused("a part of its payload is missing or damaged")
        return Ext(codec.BLOB_TEXT if value.code == codec.LOCAL_TEXT else codec.BLOB_BYTES, digest)
    return value


def references(body: bytes) -> set[bytes]:
    """The digests of all blobs an event's bytes refer to."""
    found: set[bytes] = set()

    def note(code: int, raw: memoryview) -> None:
        if code in _REFERENCES:
            found.add(bytes(raw))
        elif code == codec.PAIRS:
            msgspec.msgpack.decode(raw, ext_hook=note)

    msgspec.msgpack.decode(body, ext_hook=note)
    return found


def put_together(fetch: Fetch) -> codec.ExtHook:
    """The hook that reads references as what they stand for."""

    def hook(code: int, raw: memoryview) -> Any:  # noqa: ANN401
        if code == codec.BLOB_TEXT:
            return text_of_pieces(fetch(bytes(raw)))
        if code == codec.BLOB_BYTES:
            return bytes_of_pieces(fetch(bytes(raw)))
        if code == codec.BLOB_VALUE:
            return msgspec.msgpack.decode(b"".join(fetch(bytes(raw))), ext_hook=exact_hook)
        return exact_hook(code, raw, hook)

    return hook


class Measured:
    """A fetch that counts: whoever reads events by the frame stops before their values are too much at once."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._bytes = 0

    def __call__(self, digest: bytes) -> Iterable[bytes]:
        """The bytes of a digest."""
        for piece in self._fetch(digest):
            self._bytes += len(piece)
            yield piece

    @property
    def is_enough(self) -> bool:
        """Whether that is much by now."""
        return self._bytes >= _MUCH


def text_of_pieces(pieces: Iterable[bytes]) -> str:
    """The text of these bytes, in one copy: a string that nobody else holds grows where it is."""
    decoder = _decoder_of_text("surrogatepass")
    text = ""
    for piece in pieces:
        text += decoder.decode(piece)
    text += decoder.decode(b"", final=True)
    return text


def bytes_of_pieces(pieces: Iterable[bytes]) -> bytes:
    """The bytes of these pieces, in one copy: what was written to is handed over as it is."""
    whole = io.BytesIO()
    for piece in pieces:
        whole.write(piece)
    return whole.getvalue()


def left_out(code: int, raw: memoryview) -> Any:  # noqa: ANN401
    """A hook for whoever needs an event's small fields only: large ones read as empty."""
    if code in (codec.BLOB_TEXT, codec.LOCAL_TEXT):
        return ""
    if code in (codec.BLOB_BYTES, codec.LOCAL_BYTES):
        return b""
    return None if code == codec.BLOB_VALUE else exact_hook(code, raw, left_out)
