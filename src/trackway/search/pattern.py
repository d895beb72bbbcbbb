"""Words and globs → what the engine looks for: words at places next to each other, each as it is or as a pattern.

A pattern is over one word of the index, and has enough in it that not every word fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from trackway.errors import QueryRefused
from trackway.search import words

_MOST_WORDS: Final = 100
_ANY: Final = re.compile(r"[*?]")
_PIECE: Final = re.compile(r"(?:[^\W_]|[*?])+")
_PLAIN: Final = re.compile(r"[\w/ -]", re.ASCII)
_LEAST: Final = 2


class Step(NamedTuple):
    """A word of the index, or a pattern of such words, at a place."""

    place: int
    text: str
    is_pattern: bool = False


class Words(NamedTuple):
    """Words next to each other, as somebody wrote them."""

    steps: tuple[Step, ...]
    raw: str

    @property
    def is_pattern(self) -> bool:
        """Whether any of them is one."""
        return any(each.is_pattern for each in self.steps)


def of_phrase(text: str) -> Words:
    """A text in quotes: its words, next to each other, nothing in it a pattern."""
    return _checked([Step(each.place, each.text) for each in words.words(words.composed(text))], text)


def of_word(text: str) -> tuple[Words, ...]:
    """A bare word: parts next to each other; with ``*`` and ``?`` a pattern; a name in CamelCase also by its parts."""
    bare = text.rstrip("?")  # ends a question as often as a pattern
    if _ANY.search(bare):
        return (_checked(list(_globbed(words.composed(bare))), text),)
    found, parts = of_phrase(text), words.camel(text)
    return (found, of_phrase(" ".join(parts))) if parts and len(found.steps) == 1 else (found,)


def _checked(steps: list[Step], raw: str) -> Words:
    if not steps:
        hint = f"words have letters or digits, {words.LONGEST} at most"
        raise QueryRefused(f"there is no word in {raw[:40]!r}", hint=hint)
    if len(steps) > _MOST_WORDS:
        raise QueryRefused(f"there are {len(steps)} words in a phrase", hint=f"at most {_MOST_WORDS}")
    return Words(tuple(each._replace(place=each.place - steps[0].place) for each in steps), raw)


def _globbed(text: str) -> Iterator[Step]:
    parts = (part for piece in _PIECE.findall(text) for part in _apart(piece))
    for place, part in enumerate(parts):
        literal = _folded(_ANY.sub("", part))
        if _ANY.search(part) is None:
            yield Step(place, literal)
        elif part.strip("*?"):  # else any word at all: a gap in the phrase
            if len(literal) < _LEAST and literal.isascii():
                hint = f"a pattern has at least {_LEAST} letters or digits"
                raise QueryRefused(f"{part[:40]!r} fits nearly every word", hint=hint)
            pieces = (each if _ANY.match(each) else _folded(each) for each in re.split(r"([*?]+)", part))
            yield Step(place, regex_of("".join(pieces)), is_pattern=True)


def _apart(piece: str) -> Iterator[str]:
    """A piece as the words it is: characters that are words of their own each apart, without what stands around."""
    if not _ANY.search(piece):
        yield from words.reading().analyze(words.encodable(piece))
        return
    parts = words.spaced(piece).split()
    for part in parts:
        if len(parts) == 1 or part.strip("*?"):
            yield part


def _folded(text: str) -> str:
    """Letters as they are in the index."""
    return "".join(words.reading().analyze(words.encodable(text)))


def regex_of(glob: str) -> str:
    """A glob over a whole word, as the engine takes patterns."""
    return "".join({"*": ".*", "?": "."}.get(each) or escaped(each) for each in re.sub(r"\*+", "*", glob))


def path_regex(glob: str) -> str:
    """A glob over paths: whole parts of a path, at its beginning or anywhere behind a ``/``; ``**`` goes across them.

    >>> import re
    >>> [bool(re.fullmatch(path_regex("src/*.py"), each)) for each in ("src/a.py", "/w/src/a.py", "src/x/a.py")]
    [True, True, False]
    """
    anywhere = "" if glob.startswith("/") else "(.*/)?"
    inside = "(/.*)?"
    parts = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*{2,}|\*|\?)", glob.rstrip("/") or glob)
    return anywhere + "".join(parts.get(each[:3], parts.get(each[:2])) or escaped_all(each) for each in pieces) + inside


def escaped_all(text: str) -> str:
    """Text that stands for itself in a pattern."""
    return "".join(map(escaped, text))


def escaped(char: str) -> str:
    """A character that stands for itself in a pattern."""
    return char if _PLAIN.match(char) or not char.isascii() else f"\\{char}"
