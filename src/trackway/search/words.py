"""Text → words, the same way for what is indexed, asked for and highlighted.

A word is a run of letters and digits, in any case, without accents. So ``snake_case``, ``a/b/c.py`` and ``os.path`` are
their parts, next to each other, and are found whole as a phrase. Where a script writes no spaces each character is a
word. ``CamelCase`` is one word, and its parts are indexed behind the text.

The index is fed with ``indexed`` text through a tokenizer without patterns, four times as fast as one with them; what
is asked for and shown goes through the pattern, which keeps places. Both give the same words: a test holds them
together.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tantivy import TextAnalyzer, Tokenizer

LONGEST: Final = 128
"""Bytes; longer words are no words, and are not indexed."""

# Han with its radicals and marks, kana, bopomofo, hangul, half-width kana and hangul; Thai, Lao, Myanmar, Khmer.
_SINGLE: Final = (
    (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3041, 0x30FF), (0x3100, 0x318F),
    (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA960, 0xA97F), (0xAC00, 0xD7FF),
    (0xF900, 0xFAFF), (0xFF66, 0xFFDC), (0x16FE0, 0x18DFF), (0x1AFF0, 0x1B2FF), (0x20000, 0x3FFFF),
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x19E0, 0x19FF),
)  # fmt: skip
_SINGLES: Final = re.compile("[{}]".format("".join(f"{chr(low)}-{chr(high)}" for low, high in _SINGLE)))

_NO_SINGLES: Final = bytes({*range(256)} - {0xE0, 0xE1, *range(0xE3, 0xEE), 0xEF, 0xF0})
"""All bytes but those that begin a character which may be a word of its own."""

# Shapes: a lower case letter, an upper case one, a digit, anything else. To look for two letters in a copy by shape is
# many times faster than to look for a pattern.
_SHAPE: Final = bytes(
    97 if 97 <= each <= 122 else 65 if 65 <= each <= 90 else 48 if 48 <= each <= 57 else 32 for each in range(256)
)
_HUMPS: Final = (b"aA", b"AAaa")
_CAMEL: Final = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[A-Z]+(?=[A-Z][a-z]))[0-9]*")
_LONGEST_NAME: Final = 64
_FEW_PARTS: Final = 3


class Word(NamedTuple):
    """A word where it stands: its place among the words, its first character and the one behind its last."""

    text: str
    place: int
    start: int
    end: int


# --- for the index --------------------------------------------------------------------------------------------------


def composed(text: str) -> str:
    """The text with letters and their accents in one character each: from there accents are taken off."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def indexed(text: str) -> list[str]:
    """What is put into the index for a text: itself, spaced, and behind it each name in CamelCase as its parts."""
    raw = text.encode("utf-8", "replace")
    if not text.isascii():
        text = raw.decode()
        if raw.translate(None, _NO_SINGLES):
            text = spaced(text)
    return [text, *_names(raw)]


def spaced(text: str) -> str:
    """The text with spaces round each character that is a word of its own."""
    return _SINGLES.sub(r" \g<0> ", text)


def _names(raw: bytes) -> set[str]:
    shape = raw.translate(_SHAPE)
    runs: set[bytes] = set()
    for humps in _HUMPS:
        at = shape.find(humps)
        while at >= 0:
            # One that begins further back seems to begin with the text, and is too long to be a name.
            start, end = shape.rfind(b" ", max(0, at - _LONGEST_NAME), at) + 1, shape.find(b" ", at)
            end = end if end >= 0 else len(raw)
            if end - start <= _LONGEST_NAME:
                runs.add(raw[start:end])
            at = shape.find(humps, end)
    return {name for each in runs if (name := _in_parts(each))}


@lru_cache(maxsize=1 << 14)
def _in_parts(run: bytes) -> str:
    return " ".join(camel(run.decode("ascii")))


@lru_cache(maxsize=1 << 14)
def camel(name: str) -> tuple[str, ...]:
    """The parts of a name in CamelCase, none where it is another word; what only looks random is none.

    >>> camel("getUserName"), camel("HTTPServer"), camel("plain"), camel("aB3dEfGh")
    (('get', 'User', 'Name'), ('HTTP', 'Server'), (), ())
    """
    found = _CAMEL.findall(name)
    is_even = len(found) <= _FEW_PARTS or len(name) >= _FEW_PARTS * len(found)
    is_name = len(found) > 1 and is_even and all(len(each) > 1 for each in found[1:]) and "".join(found) == name
    return tuple(found) if is_name else ()


# --- the tokenizers -------------------------------------------------------------------------------------------------


@cache
def indexing() -> TextAnalyzer:
    """For ``indexed`` text."""
    from tantivy import Tokenizer

    return _folded(Tokenizer.simple())


@cache
def reading() -> TextAnalyzer:
    """For text as it is: the same words, and where they stand."""
    from tantivy import Tokenizer

    single = "".join(f"\\u{{{low:x}}}-\\u{{{high:x}}}" for low, high in _SINGLE)
    letters = r"\p{Alphabetic}\p{N}"
    return _folded(Tokenizer.regex(f"[{letters}&&[{single}]]|[{letters}&&[^{single}]]+"))


@cache
def exact() -> TextAnalyzer:
    """For names and paths: one word each, in any case."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    return TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.lowercase()).filter(Filter.ascii_fold()).build()


def _folded(tokenizer: Tokenizer) -> TextAnalyzer:
    from tantivy import Filter, TextAnalyzerBuilder

    built = TextAnalyzerBuilder(tokenizer).filter(Filter.remove_long(LONGEST + 1)).filter(Filter.lowercase())
    return built.filter(Filter.ascii_fold()).build()


def words(text: str, at: int = 0) -> Iterator[Word]:
    """The words of a text that stands somewhere, and where they stand."""
    for each in reading().pre_tokenize(encodable(text)).tokens:
        yield Word(each.text, each.position, at + each.char_offset_from, at + each.char_offset_to)


def name_of(value: str) -> str:
    """A name or a path as it stands in the index."""
    found = exact().analyze(encodable(composed(value)))
    return found[0] if found else ""


def encodable(text: str) -> str:
    """The text, with a mark in place of what no encoding can write: halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
