"""The user's side of a Claude Code session: prompts, what the client says in the user's role, results of tools.

A human is taken to have typed what nothing says was written by somebody else: a mark at its beginning, ``isMeta``, an
origin, a sub-agent's chain. A prompt that follows an entry which a prompt has followed before takes back all that came
in between.
"""

from __future__ import annotations

from typing import Any

from trackway.ingest.formats._agents import About
from trackway.ingest.formats._claude_files import Files
from trackway.ingest.formats._claude_notes import told
from trackway.ingest.formats._claude_replies import Replies
from trackway.ingest.formats._claude_results import Made, result_of
from trackway.ingest.formats._claude_words import OTHERS, command_of, is_marked
from trackway.ingest.making import text_in
from trackway.ingest.values import mapping, text
from trackway.schema.events import Context, Note, User


class Prompts:
    """What has to be known of a session to read what comes next under the user's role."""

    def __init__(self, about: About, files: Files, replies: Replies) -> None:
        self.command = ""
        self.boundary: Any = None
        self._about = about
        self._files = files
        self._replies = replies
        self._followed: set[str] = set()

    def read(self, value: dict[str, Any], native: dict[str, Any], *, at: int, agent: str | None) -> Made:
        """The events of a user's entry; what has no event goes into ``native``."""
        message, made = value["message"], Made([], [])
        envelope: dict[str, Any] = {"at": at, "agent": agent}
        left = {name: each for name, each in message.items() if name not in ("role", "content")}
        content = message.get("content")
        if value.get("isCompactSummary") is True:
            del native["isCompactSummary"]
            made.events.append(Context(op="compact", text=text_in(content), detail=self.boundary, **envelope))
            self.boundary = None
        elif value.get("isVisibleInTranscriptOnly") is True:
            made.events.append(Note(topic="transcript_only", text=text_in(content), **envelope))
        elif isinstance(content, list):
            self._parts(value, native, made, left, envelope)
        else:
            self._said(value, [text_in(content)], made, envelope)
        if left:
            native["message"] = left
        return made

    def _parts(
        self, value: dict[str, Any], native: dict[str, Any], made: Made, left: dict[str, Any], envelope: dict[str, Any]
    ) -> None:
        """Results, then what was said beside them; pictures and documents have no text, and are kept as they are."""
        results: list[dict[str, Any]] = []
        texts: list[str] = []
        kept: list[Any] = []
        for block in value["message"]["content"]:
            said = told(block)
            if isinstance(block, dict) and block.get("type") == "tool_result":
                results.append(block)
                continue
            if said is not None:
                texts.append(said)
            if said is None or (isinstance(block, dict) and len(block) > 2):
                kept.append(block)
        if results:
            kept = self._results(value, native, results, made, envelope) + kept
        if kept:
            left["blocks"] = kept
        if texts or not results:
            self._said(value, texts, made, envelope)

    def _results(
        self, value: dict[str, Any], native: dict[str, Any], results: list[dict[str, Any]], made: Made,
        envelope: dict[str, Any],
    ) -> list[Any]:  # fmt: skip
        """What came of calls. What the client keeps beside a result is said once an entry: of one it is of that one."""
        is_one = len(results) == 1
        returned = native.pop("toolUseResult", None) if is_one else None
        kept: list[Any] = []
        for number, block in enumerate(results):
            call_id = text(block.get("tool_use_id")) or self._replies.unanswered(value, number)
            was_denied = is_one and bool(text(value.get("toolDenialKind")))
            asked = self._replies.asked.answered(call_id, text_in(block.get("content")))
            one, rest = result_of(
                block,
                call_id,
                returned,
                self._files,
                was_denied=was_denied,
                asked=asked if is_one else None,
                **envelope,
            )
            made.events.extend(one.events)
            made.contents.extend(one.contents)
            kept += [rest] if rest else []
        return kept

    def _said(self, value: dict[str, Any], texts: list[str], made: Made, envelope: dict[str, Any]) -> None:
        origin = text(mapping(value.get("origin")).get("kind"))
        is_other = envelope["agent"] is not None or value.get("isMeta") is True or origin in OTHERS
        own = [] if is_other else [each for each in texts if not is_marked(each)]
        if is_other or (texts and not own):
            said = "\n".join(texts)
            self._files.heard(said)
            made.events.append(User(content=said, actor="harness", **envelope))
            return
        made.events.extend(Context(op="inject", text=each, **envelope) for each in texts if is_marked(each))
        self._prompt(value, "\n".join(own), made, envelope)

    def _prompt(self, value: dict[str, Any], said: str, made: Made, envelope: dict[str, Any]) -> None:
        after = value.get("parentUuid")
        if isinstance(after, str) and after:
            if after in self._followed:
                made.events.append(Context(op="rewind", detail={"to": after}, **envelope))
            self._followed.add(after)
        command = command_of(said)
        if command:
            self.command = self.command or command
        else:
            self._about.prompt(said)
        made.events.append(User(content=said, **envelope))
