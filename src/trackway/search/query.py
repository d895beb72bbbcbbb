"""The query language: text → a tree, or ``QueryRefused`` with the character at which it begins to be wrong.

    words "a phrase" prefix* gl?b*  -without  NOT this  one OR other  ( … )  tool:bash error:true since:7d …

What stands side by side must all hold. A word may be anything: ``snake_case``, ``a/b.py`` and ``数据库`` are words next
to each other. Every query is bounded in length, number of terms and depth, so none can ask for more than a moment.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from trackway.errors import QueryRefused
from trackway.search.fields import FIELDS, Value, value_of
from trackway.search.pattern import Words, of_phrase, of_word

LONGEST: Final = 4096
_MOST_TERMS: Final = 100
_DEEPEST: Final = 40
_FIELD: Final = re.compile(r"([A-Za-z_]+):(?=[^\s()])")
_WORD: Final = re.compile(r'[^\s"()]+')
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_SPACE: Final = re.compile(r"""(?:\s+|(?<![^\s()"])[^\w\s()"*?]+(?=[\s)]|$))*""")
"""Space, and what stands alone and has no letter in it: ``->``, ``&&``, ``=``."""


class Field(NamedTuple):
    """One thing said of an event, or of its episode."""

    name: str
    value: Value


class Not(NamedTuple):
    """What must not hold."""

    what: Node


class And(NamedTuple):
    """What must hold together."""

    all: tuple[Node, ...]


class Or(NamedTuple):
    """Of which one must hold."""

    any: tuple[Node, ...]


Node = Words | Field | Not | And | Or


def parse(text: str, *, now: int, utc: bool = False) -> Node:
    """The tree of a query; ``now`` is what ``since:7d`` counts from, ``utc`` how times without a zone are read."""
    if len(text) > LONGEST:
        raise QueryRefused(
            f"the query has {len(text):,} characters", hint=f"at most {LONGEST:,}", position=LONGEST + 1, query=text
        )
    return _Parser(text, now, utc=utc).whole()


def positive(node: Node) -> tuple[Words, ...]:
    """The words that a hit has in it: what is ranked by, and highlighted."""
    if isinstance(node, Words):
        return (node,)
    if isinstance(node, (And, Or)):
        return tuple(word for each in (node.all if isinstance(node, And) else node.any) for word in positive(each))
    return ()


def fields_of(node: Node) -> frozenset[str]:
    """The names of the fields that a query speaks of."""
    if isinstance(node, Field):
        return frozenset({node.name})
    if isinstance(node, Not):
        return fields_of(node.what)
    if isinstance(node, (And, Or)):
        return frozenset().union(*map(fields_of, node.all if isinstance(node, And) else node.any))
    return frozenset()


class _Parser:
    def __init__(self, text: str, now: int, *, utc: bool) -> None:
        self._text = text
        self._now = now
        self._utc = utc
        self._at = 0
        self._terms = 0
        self._skip()

    def whole(self) -> Node:
        if self._ended:
            self._refuse("there is nothing to look for", 'words, "a phrase", tool:bash …', 0)
        found = self._either(0)
        if not self._ended:
            self._refuse("a ) without its (", 'put text with brackets in quotes: "f(x)"', self._at)
        return found

    # --- what stands where --------------------------------------------------------------------------------------

    def _either(self, deep: int) -> Node:
        found = [self._together(deep)]
        while self._keyword("OR"):
            found.append(self._together(deep))
        return found[0] if len(found) == 1 else Or(tuple(found))

    def _together(self, deep: int) -> Node:
        begun, found = self._at, [] if self._is_over() else [self._one(deep)]
        while not self._is_over():
            if self._keyword("AND") and self._is_over():
                self._refuse("AND has nothing behind it", 'in quotes it is a word: "AND"', self._at)
            found.append(self._one(deep))
        if not found:
            hint = 'OR stands between two things, brackets hold something; in quotes it is a word: "OR"'
            self._refuse("something is missing", hint, begun)
        return found[0] if len(found) == 1 else And(tuple(found))

    def _is_over(self) -> bool:
        return self._ended or self._text[self._at] == ")" or self._sees("OR")

    def _one(self, deep: int) -> Node:
        if deep > _DEEPEST:
            self._refuse("brackets and NOT are nested too deeply", f"at most {_DEEPEST}", self._at)
        if self._keyword("NOT"):
            return self._negated(deep)
        if self._text[self._at] == "-" and _WORDS_AHEAD.match(self._text, self._at):
            self._at += 1
            return self._negated(deep)
        if self._text[self._at] == "(":
            return self._group(deep)
        return self._term()

    def _negated(self, deep: int) -> Node:
        if self._is_over():
            self._refuse("NOT has nothing behind it", 'in quotes it is a word: "NOT"', self._at)
        return Not(self._one(deep + 1))

    def _group(self, deep: int) -> Node:
        begun = self._at
        self._forward(1)
        found = self._either(deep + 1)
        if self._ended:
            self._refuse("this ( is never closed", 'put text with brackets in quotes: "f(x)"', begun)
        self._forward(1)
        return found

    def _term(self) -> Node:
        self._terms += 1
        if self._terms > _MOST_TERMS:
            self._refuse(f"there are more than {_MOST_TERMS} terms", "ask for less at a time", self._at)
        begun = self._at
        try:
            return self._field_or_words()
        except QueryRefused as error:
            if "position" in error.__dict__:
                raise
            self._refuse(error.message, error.hint, begun)

    def _field_or_words(self) -> Node:
        found = _FIELD.match(self._text, self._at)
        if found is not None and found[1] in FIELDS:
            self._at = found.end()
            value = self._quoted() if self._text[self._at] == '"' else self._word()
            return Field(found[1], value_of(found[1], value, now=self._now, utc=self._utc))
        if self._text[self._at] == '"':
            return of_phrase(self._quoted())
        said = of_word(self._word())
        return said[0] if len(said) == 1 else Or(said)

    # --- characters ---------------------------------------------------------------------------------------------

    def _quoted(self) -> str:
        found = _QUOTED.match(self._text, self._at)
        if found is None:
            self._refuse('this " is never closed', 'write \\" for one that is meant as it is', self._at)
        self._forward(found.end() - self._at)
        return _ESCAPED.sub(r"\1", found[1])

    def _word(self) -> str:
        found = _WORD.match(self._text, self._at)
        assert found is not None  # whatever ends a word has been looked for before
        self._forward(found.end() - self._at)
        return found[0]

    def _sees(self, keyword: str) -> bool:
        found = _WORD.match(self._text, self._at)
        return found is not None and found[0] == keyword

    def _keyword(self, keyword: str) -> bool:
        if not self._sees(keyword):
            return False
        self._forward(len(keyword))
        return True

    @property
    def _ended(self) -> bool:
        return self._at >= len(self._text)

    def _forward(self, count: int) -> None:
        self._at += count
        self._skip()

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = self._at if found is None else found.end()

    def _refuse(self, what: str, hint: str, at: int) -> NoReturn:
        raise QueryRefused(f"{what}, at character {at + 1}", hint=hint, position=at + 1, query=self._text)


_WORDS_AHEAD: Final = re.compile(r"-[^\s\-)]")
"""A dash that negates stands before something; two of them are an option somebody looks for."""
