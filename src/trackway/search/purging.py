"""Episodes out of the index so that nothing of them is left in its files.

The engine only marks what is deleted; its bytes go when their segment is written anew, which it does as it likes. But a
segment of which everything is deleted is removed at once. So whatever shares a segment with what has to go is taken out
too, and put in again from the store. Where that is nearly everything, the index is made anew instead.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from trackway.errors import SearchUnavailable
from trackway.schema import ids
from trackway.search.index import engine, schema, unfit
from trackway.search.state import NOTHING, Known
from trackway.search.writing import Writing, key_of

if TYPE_CHECKING:
    import tantivy

_LARGEST: Final = 2_000_000
_MOST_AGAIN: Final = 200_000
"""Documents: more than this is not put in again on the spot, but by whoever searches next."""


def expunge(writing: Writing, gone: Collection[bytes], *, file: int) -> set[bytes]:
    """Take these out for good; those that had to go along, to be put in again. None where all of it went."""
    try:
        along = _with_neighbours(writing, gone)
    except SearchUnavailable:  # damaged: it goes as a whole
        along = None
    if along is not None:
        changes: dict[bytes, Known] = dict.fromkeys(along, NOTHING)
        for each in along:
            writing.forget(each)
        writing.commit(changes, file=file, together=True)
        writing.collect()
        if not _is_left(writing, gone):
            return along - set(gone)
    writing.start_over()
    return set()


def _with_neighbours(writing: Writing, gone: Collection[bytes]) -> set[bytes] | None:
    """Those that share a segment with what has to go; None where all should go."""
    with engine("it cannot be read"):
        searcher = writing.index.searcher()
        if searcher.num_docs > _LARGEST:
            return None
        segments = _segments(writing, searcher, gone)
        every = [address for _, address in _all(searcher, _everything())]
        along = [address for address in every if address.segment_ord in segments]
        if len(along) > _MOST_AGAIN:
            return None
        keys = set(searcher.fast_field_values("key", along)) if along else set()
    return {each for each in writing.state.episodes if key_of(each) in keys} | set(gone)


def _segments(writing: Writing, searcher: tantivy.Searcher, gone: Collection[bytes]) -> set[int]:
    """The segments that hold something of these, as documents or as what is left of them."""
    import tantivy

    names = [ids.from_bytes(each) for each in gone]
    found = [address for _, address in _all(searcher, tantivy.Query.term_set_query(schema(), "episode", names))]
    segments = {each.segment_ord for each in found}
    if sum(searcher.doc_freq("episode", each) for each in names) > len(found):
        segments |= _with_deleted(writing, searcher)
    return segments


def _with_deleted(writing: Writing, searcher: tantivy.Searcher) -> set[int]:
    """The segments in which something is deleted, and may be of these."""
    listed = _listed(writing)
    living = Counter(address.segment_ord for _, address in _all(searcher, _everything()))
    # The engine numbers them as it lists them; held against what each of them holds before it is believed.
    if [living[number] for number in range(len(listed))] != [most - deleted for most, deleted in listed]:
        raise unfit("its segments are not as it lists them")
    return {number for number, (_, deleted) in enumerate(listed) if deleted}


def _listed(writing: Writing) -> list[tuple[int, int]]:
    """Of each segment how many documents there are, and how many of them are deleted."""
    said: Any = json.loads((writing.place.engine / "meta.json").read_bytes())
    return [
        (int(each["max_doc"]), int((each.get("deletes") or {}).get("num_deleted_docs", 0))) for each in said["segments"]
    ]


def _is_left(writing: Writing, gone: Collection[bytes]) -> bool:
    with engine("it cannot be read"):
        writing.index.reload()
        searcher = writing.index.searcher()
        return any(searcher.doc_freq("episode", ids.from_bytes(each)) for each in gone)


def _everything() -> tantivy.Query:
    import tantivy

    return tantivy.Query.all_query()


def _all(searcher: tantivy.Searcher, query: tantivy.Query) -> list[tuple[Any, tantivy.DocAddress]]:
    return searcher.search(query, limit=max(1, searcher.num_docs), count=False).hits
