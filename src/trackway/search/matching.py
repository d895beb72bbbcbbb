"""A query's tree → what the engine asks its index.

Words are ranked by; fields only narrow down. What is said of an episode as a whole (its task, its outcome) is looked up
in the store and becomes the set of episodes it holds for, so that the index need not change when an outcome does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

from trackway.errors import QueryRefused, SearchUnavailable
from trackway.search.fields import EXACT, OF_EPISODES
from trackway.search.index import engine, schema
from trackway.search.pattern import Words, escaped_all
from trackway.search.query import And, Field, Node, Not, Or
from trackway.search.words import name_of
from trackway.search.writing import key_of
from trackway.store.listing import Facts

if TYPE_CHECKING:
    import tantivy

_LEAST, _MOST = -(2**63), 2**63 - 1


class Matching:
    """Makes queries for the engine; ``facts`` and ``find`` are asked only where the query speaks of episodes."""

    def __init__(self, facts: Callable[[], Iterable[Facts]], find: Callable[[str], Collection[bytes]]) -> None:
        self._ask = facts
        self._find = find
        self._facts: list[Facts] | None = None

    def query(self, node: Node) -> tantivy.Query:
        """The engine's query; raises ``QueryRefused`` where it is more than the engine takes."""
        try:
            with engine("it does not take this query"):
                return self._made(node)
        except SearchUnavailable as error:
            raise QueryRefused("the query is too much for the index", hint="ask for less", why=error.why) from error

    def _made(self, node: Node) -> tantivy.Query:
        import tantivy

        make = tantivy.Query
        if isinstance(node, Words):
            return _words(node)
        if isinstance(node, Field):
            return make.const_score_query(self._field(node), 0.0)
        if isinstance(node, Or):
            return make.boolean_query([(tantivy.Occur.Should, self._made(each)) for each in node.any])
        parts = node.all if isinstance(node, And) else (node,)
        occurs = [
            (tantivy.Occur.MustNot, self._made(each.what))
            if isinstance(each, Not)
            else (tantivy.Occur.Must, self._made(each))
            for each in parts
        ]
        if all(isinstance(each, Not) for each in parts):
            occurs.append((tantivy.Occur.Must, make.const_score_query(make.all_query(), 0.0)))
        return make.boolean_query(occurs)

    def _field(self, field: Field) -> tantivy.Query:
        name, value = field
        if name in OF_EPISODES:
            return self._episodes(name, value)
        if name in ("since", "until"):
            return _times(name, value)
        return _exactly(name, value)

    # --- of episodes --------------------------------------------------------------------------------------------

    def _episodes(self, name: str, value: Any) -> tantivy.Query:  # noqa: ANN401  as the field has it
        import tantivy

        if name == "id":
            return _among(self._find(str(value)))
        if self._facts is None:
            self._facts = list(self._ask())
        takes = _TAKES[name](value)
        yes: list[bytes] = []
        no: list[bytes] = []
        for each in self._facts:
            (yes if takes(each) else no).append(each.id)
        if len(yes) <= len(no):
            return _among(yes)
        rest = [(tantivy.Occur.MustNot, _among(no))] if no else []
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, tantivy.Query.all_query()), *rest])


def _among(episodes: Collection[bytes]) -> tantivy.Query:
    import tantivy

    keys = [key_of(each) for each in episodes]
    return tantivy.Query.term_set_query(schema(), "key", keys) if keys else tantivy.Query.empty_query()


def _of_task(value: Any) -> Callable[[Facts], bool]:  # noqa: ANN401  as the field has it
    wanted = str(value).casefold()
    return lambda each: wanted in each.task.casefold()


def _of_outcome(value: Any) -> Callable[[Facts], bool]:  # noqa: ANN401  as the field has it
    wanted = None if value == "none" else value
    return lambda each: each.outcome == wanted


def _of_model(value: Any) -> Callable[[Facts], bool]:  # noqa: ANN401  as the field has it
    if isinstance(value, tuple):
        pattern = re.compile(value[0], re.DOTALL)
        return lambda each: each.model is not None and pattern.fullmatch(name_of(each.model)) is not None
    return lambda each: each.model is not None and name_of(each.model) == value


_TAKES: Final = {"task": _of_task, "outcome": _of_outcome, "model": _of_model}


# --- of events --------------------------------------------------------------------------------------------------------


def _words(said: Words) -> tantivy.Query:
    import tantivy

    make, steps = tantivy.Query, said.steps
    if len(steps) == 1:
        if steps[0].is_pattern:
            return make.regex_query(schema(), "text", steps[0].text)
        return make.term_query(schema(), "text", steps[0].text)
    if not said.is_pattern:
        return make.phrase_query(schema(), "text", [(each.place, each.text) for each in steps])
    patterns = [(each.place, each.text if each.is_pattern else escaped_all(each.text)) for each in steps]
    return make.regex_phrase_query(schema(), "text", list(patterns))


def _times(name: str, at: Any) -> tantivy.Query:  # noqa: ANN401  as the field has it
    import tantivy

    at = max(_LEAST, min(int(at), _MOST))
    kind = tantivy.FieldType.Integer
    if name == "since":
        return tantivy.Query.range_query(schema(), "at", kind, lower_bound=at)
    return tantivy.Query.range_query(schema(), "at", kind, upper_bound=at, include_upper=False)


def _exactly(name: str, value: Any) -> tantivy.Query:  # noqa: ANN401  as the field has it
    import tantivy

    if isinstance(value, tuple):
        return tantivy.Query.regex_query(schema(), name, value[0])
    return tantivy.Query.term_query(schema(), name, value, index_option="basic" if name in EXACT else "position")
