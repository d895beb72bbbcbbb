"""What is known beside what is said and done: rewards, tests, files, notes. One method per kind of event."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from trackway.recording.redact import Tally
from trackway.recording.settings import number
from trackway.schema import events as kinds
from trackway.schema.canonical import hash_bytes
from trackway.schema.events import FileState
from trackway.schema.plain import plain, text_of, text_or_none
from trackway.store.large import BIG, FileContent, Payload, large_of
from trackway.store.payloads import bytes_of_pieces

if TYPE_CHECKING:
    from trackway.recording.episode import Core


class Remarks:
    """The half of an agent's view that describes; the other half is ``AgentView``."""

    _core: Core
    _open_call: str | None

    def _put(self, kind: type[kinds.Event], fields: dict[str, Any], payloads: tuple[Payload, ...] = ()) -> bool:
        """Fill in the envelope and append."""
        raise NotImplementedError

    def context(
        self,
        op: str,
        *,
        system_prompt: str | None = None,
        tools: Any = None,  # noqa: ANN401
        text: str | None = None,
        detail: Any = None,  # noqa: ANN401
    ) -> None:
        """A change in what the model sees: set, inject, compact, rewind."""
        fields = {
            "op": text_of(op), "system_prompt": text_or_none(system_prompt),
            "tools": plain(tools), "text": text_or_none(text), "detail": plain(detail),
        }  # fmt: skip
        self._put(kinds.Context, fields)

    def reward(
        self,
        value: float | None,
        *,
        name: str = "reward",
        scope: str = "step",
        source: str | None = None,
        ended: str | None = None,
    ) -> None:
        """A number for the step, or with ``scope="episode"`` for the whole; None is not 0."""
        fields = {
            "value": None if value is None else number("value", value, float),
            "name": text_of(name),
            "scope": text_of(scope),
        }
        self._put(kinds.Reward, {**fields, "source": text_or_none(source), "ended": text_or_none(ended)})

    def test_run(
        self,
        *,
        passed: int = 0,
        failed: int = 0,
        errors: int = 0,
        skipped: int = 0,
        command: str | None = None,
        pass_rate: float | None = None,
    ) -> None:
        """The counts of one execution of tests; the pass rate is derived where it is not given."""
        given = {"passed": passed, "failed": failed, "errors": errors, "skipped": skipped}
        counts = {name: number(name, each, int) for name, each in given.items()}
        judged = counts["passed"] + counts["failed"] + counts["errors"]
        if pass_rate is None and judged:
            pass_rate = counts["passed"] / judged
        rate = None if pass_rate is None else number("pass_rate", pass_rate, float)
        self._put(kinds.TestRun, {**counts, "command": text_or_none(command), "pass_rate": rate})

    def file_change(
        self,
        path: Any,  # noqa: ANN401
        *,
        before: bytes | str | os.PathLike[str] | None = None,
        after: bytes | str | os.PathLike[str] | None = None,
        op: str | None = None,
        mode: int | None = None,
        new_path: Any = None,  # noqa: ANN401
        cause: str | None = None,
        exact: bool = True,
    ) -> None:
        """A file before and after; the contents are kept once, by hash. The cause is the call being made, if any.

        A content is bytes, text, or the path of a file that holds it: that is read piece by piece, however large, but
        whole where secrets are hidden or a guard looks on.
        """
        if op is None:
            op = "create" if before is None else "delete" if after is None else "modify"
        tally, mode = Tally(), None if mode is None else int(mode)
        try:
            old, new = self._content(before, tally), self._content(after, tally, mode)
        except OSError as error:  # a file that cannot be read: counted, and the agent goes on
            self._core.recorder.lose(self._core.raw, error)
            return
        fields: dict[str, Any] = {
            "op": text_of(op), "path": text_of(plain(path)), "before": old.state, "after": new.state,
            "exact": bool(exact),
            "cause": self._open_call if cause is None else text_of(cause),
            "new_path": text_or_none(plain(new_path)),
        }  # fmt: skip
        if tally.counts:
            fields["redacted"] = dict(tally.counts)
        self._put(kinds.FileChange, fields, tuple(each for each in (old.at("before"), new.at("after")) if each))

    def _content(
        self, content: bytes | str | os.PathLike[str] | None, tally: Tally, mode: int | None = None
    ) -> _Content:
        core = self._core
        if content is None or core.capture != "full":  # then the event is not kept either
            return _Content()
        if isinstance(content, os.PathLike):
            if core.plain:
                return _Content(streamed=FileContent(content, mode=mode))
            content = bytes_of_pieces(part for part, _ in FileContent(content).parts())
        body = as_bytes(content)
        if core.redactor is not None:
            body = core.redactor.body(body, tally)
        return _Content(FileState(hash=hash_bytes(body), size=len(body), mode=mode), body)

    def security_flag(
        self, rule: str, *, severity: str = "warning", where: str | None = None, evidence: str | None = None
    ) -> None:
        """A rule that matched, and the text that matched it."""
        named = {"rule": text_of(rule), "severity": text_of(severity)}
        self._put(kinds.SecurityFlag, {
            **named, "where": text_or_none(where),
            "evidence": text_or_none(evidence),
        })  # fmt: skip

    def note(self, topic: str, text: Any = None, *, detail: Any = None) -> None:  # noqa: ANN401
        """A milestone, decision, checkpoint or anything else worth a line; text, or any plain value."""
        if text is not None and not isinstance(text, str):
            text, detail = None, text if detail is None else [text, detail]
        fields = {"topic": text_of(topic), "text": text_or_none(text), "detail": plain(detail)}
        is_small = detail is None and len(fields["text"] or "") < BIG
        self._put(kinds.Note, fields, () if is_small else large_of(fields, ("text", "detail")))

    def reflection(
        self,
        lesson: str,
        *,
        signature: str | None = None,
        tried: str | None = None,
        times: int | None = None,
        outcome: str | None = None,
    ) -> None:
        """A lesson in words: what was tried, how often, what came back."""
        fields = {
            "signature": text_or_none(signature),
            "tried": text_or_none(tried),
            "times": None if times is None else number("times", times, int),
            "outcome": text_or_none(outcome),
        }
        self._put(kinds.Reflection, {"lesson": text_of(lesson), **fields})


class _Content(NamedTuple):
    """A file's content: what the event says of it, and its bytes; or where they are, and then it says so later."""

    state: FileState | None = None
    body: bytes | None = None
    streamed: FileContent | None = None

    def at(self, field: str) -> Payload | None:
        """What goes before the event."""
        if self.streamed is not None:
            return Payload(self.streamed, field)
        return None if self.body is None else Payload(self.body)


def as_bytes(text: bytes | str) -> bytes:
    """UTF-8, lone surrogates included."""
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    return text_of(text).encode("utf-8", "surrogatepass")
