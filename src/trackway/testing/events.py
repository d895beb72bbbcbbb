"""Ready-made events and records, and Hypothesis strategies for every kind of event a recorder accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import strategies as st

from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.codec import encode
from trackway.schema.events import KINDS, Event
from trackway.store.record import EVENT, Record, meta_of


def records(episode_id: str, events: Iterable[Event]) -> Iterator[Record]:
    """Events as a journal would hand them to a store."""
    for event in events:
        encoded = encode(event)
        yield Record(meta_of(EVENT, encoded.flags, encoded.schema), ids.to_bytes(episode_id) + encoded.body)


def small_episode(
    task: str = "fix the flaky test", *, writer: str = "w" * 16, at: int = 1_800_000_000_000_000_000
) -> list[Event]:
    """A short whole episode: asked, called, failed, said, ended."""
    step = 1_000_000_000
    header = kinds.Header(task=task, agent="demo", model="m", tags=("nightly",))
    return [
        kinds.EpisodeStart(header=header, writer=writer, n=0, at=at),
        kinds.User(content="go", writer=writer, n=1, at=at + step, turn=1),
        kinds.AssistantToolCall(
            name="bash", args=b'{"cmd": "pytest -q"}', call_id="c1", batch=1, writer=writer, n=2,
            at=at + 2 * step, turn=1,
        ),
        kinds.ToolResult(
            call_id="c1", content="2 failed", is_error=True, status="error", exit_code=1, writer=writer, n=3,
            at=at + 3 * step, turn=1, duration_ms=812.5,
        ),
        kinds.AssistantText(content="it is red", writer=writer, n=4, at=at + 4 * step, turn=1),
        kinds.EpisodeEnd(outcome="failure", score=0.0, writer=writer, n=5, at=at + 5 * step, turn=1),
    ]  # fmt: skip


# --- strategies -------------------------------------------------------------------------------------------------

any_text = st.text(st.characters(), max_size=40) | st.sampled_from(["a\ud83d", "\x00", "\u2028", "é" * 3, "x" * 5000])
any_int = st.integers() | st.sampled_from([10**30, -(10**30), 2**63, 2**64, -(2**63) - 1])
any_float = st.floats(allow_nan=False) | st.just(float("inf"))
any_args = st.binary(max_size=60) | st.sampled_from(
    [b'{"a":1,"a":2}', b"{", b'{"x":NaN}', b'{"n": 1.10}', b"", b"z" * 5000]
)

_scalars = st.none() | st.booleans() | any_int | any_float | any_text | st.binary(max_size=20)
any_value: st.SearchStrategy[Any] = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3), max_leaves=6
)
_mapping = st.dictionaries(any_text | any_int, any_value, max_size=3)
_file = st.builds(
    kinds.FileState, hash=st.just("blake3:" + "0" * 64), size=st.integers(0, 2**40), mode=st.none() | st.just(0o644)
)
_header = st.builds(
    kinds.Header, task=any_text, variant=st.none() | any_text, tags=st.lists(any_text, max_size=2).map(tuple),
    metadata=st.none() | _mapping, trial=st.none() | any_int,
    parent=st.none() | st.builds(kinds.Parent, episode=any_text),
)  # fmt: skip

_BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "str": any_text, "int": any_int, "float": any_float, "bool": st.booleans(), "bytes": any_args, "Any": any_value,
    "Header": _header, "FileState": _file, "Native": st.builds(kinds.Native, source=any_text),
    "dict[str, int]": st.dictionaries(any_text, any_int, max_size=2), "dict[Any, Any]": _mapping,
    "tuple[Any, ...]": st.lists(any_value, max_size=3).map(tuple), "None": st.none(),
    "tuple[tuple[int, int, int], ...]": st.lists(st.tuples(*[st.integers(0, 99)] * 3), max_size=2).map(tuple),
}  # fmt: skip
_FIXED: dict[str, st.SearchStrategy[Any]] = {"seq": st.none(), "unknown_fields": st.none()}


def _of_kind(kind: type[Event]) -> st.SearchStrategy[Event]:
    fields = {}
    for owner in (Event, kind):
        for name, annotation in owner.__annotations__.items():
            if "ClassVar" not in annotation:
                choices = st.one_of(*(_BY_TYPE[each.strip()] for each in annotation.split(" | ")))
                fields[name] = _FIXED.get(name, choices)
    return st.builds(kind, **fields)


any_event: st.SearchStrategy[Event] = st.one_of(*(_of_kind(each) for each in KINDS.values()))
"""Any event of any kind, every field filled with what a hostile caller would find."""
