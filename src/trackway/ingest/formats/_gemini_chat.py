"""One Gemini CLI session while it is read: messages become entries part by part, and each part is said once.

A message is written again, whole, whenever something is added to it: thoughts and text first, then tokens, then calls
and what came of them. So a part is known by its message's id and what it is: what is there already is not said again,
what is new is added. A text that has changed is said again, behind a rewind that names what it replaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from trackway.ingest.formats._agents import About, is_placeholder
from trackway.ingest.formats._gemini_parts import content_of, parts_of, thoughts_of
from trackway.ingest.formats._gemini_results import Edits, found_in, result_of
from trackway.ingest.making import Keys, args_of, at_of, digest_of, rest_of
from trackway.ingest.source import Entry, Place
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import (
    AssistantThinking,
    AssistantToolCall,
    Context,
    Event,
    ModelCall,
    ModelResult,
    Note,
    ToolResult,
    User,
)

_MODEL: Final = ("gemini", "model", "assistant")
_ONLY_MODELS: Final = frozenset({"toolCalls", "thoughts", "tokens"})
_SET_UP: Final = ("<session_context>", "This is the Gemini CLI. We are setting up the context", "<hook_context>")
_SNAPSHOT: Final = "<state_snapshot>"
_META: Final = ("sessionId", "projectHash", "startTime", "lastUpdated", "messages", "history", "kind", "directories")
_MESSAGE: Final = (
    "id", "timestamp", "ts", "type", "role", "content", "parts", "thoughts", "tokens", "model", "toolCalls",
)  # fmt: skip
_CALL: Final = ("id", "name", "args", "timestamp", "result", "resultDisplay", "status")


class Chat:
    """A session: the messages that stand, and the parts of them that were said."""

    def __init__(self, session: str, about: About) -> None:
        self.session = session
        self.about = about
        self.actor = "human"
        self.order: dict[str, None] = {}
        self.edits = Edits()
        self.place = Place()
        self._said: dict[str, dict[str, int]] = {}  # by hash: a file's texts are not held
        self._answered: set[str] = set()
        self._last: dict[str, str] = {}
        self._keys = Keys()
        self._numbers = 0
        self._batches = 0
        self._is_resumed = False

    # --- the session ----------------------------------------------------------------------------------------------

    def begin(self, meta: dict[str, Any]) -> None:
        """Take over what is told of the session before its first message."""
        self._is_resumed = bool(self.order)
        about = self.about
        about.at = about.at or at_of(meta.get("startTime")) or at_of(meta.get("start_time"))
        about.note(
            kind=text(meta.get("kind")), project=text(meta.get("projectHash")), directories=meta.get("directories")
        )
        about.native = rest_of(meta, *_META, "summary") or about.native
        if meta.get("kind") == "subagent":
            self.actor = "harness"

    def change(self, fields: dict[str, Any]) -> Iterator[Entry]:
        """A change of the metadata; of messages among it, a list that holds from now on."""
        messages = fields.get("messages")
        if isinstance(messages, list):
            yield from self._anew(messages)
        if isinstance(fields.get("summary"), str):
            yield self._entry(
                "summary", digest_of(_bytes(fields["summary"])), [Note(topic="summary", text=fields["summary"])]
            )
        left = rest_of(fields, "messages", "summary", "lastUpdated", "sessionId", "projectHash", "startTime")
        if left:
            named = digest_of(repr(left).encode("utf-8", "surrogatepass"))
            yield self._entry("$set", named, [Note(topic="metadata", detail=left)])

    def _anew(self, messages: list[Any]) -> Iterator[Entry]:
        ids = [text(mapping(each).get("id")) for each in messages]
        gone = [each for each in self.order if each not in ids]
        if self._is_resumed:  # a client begins with an empty chat, and is then given the one it goes on with
            gone, self._is_resumed = [], False
        elif gone:
            event = Context(op="compact", detail={"kept": [each for each in ids if each], "dropped": gone})
            yield self._entry("$set", digest_of(repr(ids).encode("utf-8", "surrogatepass")), [event])
        self.order = dict.fromkeys(each for each in self.order if not gone and each not in ids)
        for each in messages:
            yield from self.message(each)

    def rewind(self, to: str) -> Iterator[Entry]:
        """Everything from that message on is taken back; from one that nobody knows, everything. It stays here."""
        order = list(self.order)
        place = order.index(to) if to in self.order else 0
        gone, self.order = order[place:], dict.fromkeys(order[:place])
        for each in gone:
            self._said.pop(each, None)
        parent = self._last.get(order[place - 1], "start") if place else "start"
        event = Context(op="rewind", detail={"to": to, "removed": gone})
        yield self._entry("$rewindTo", to, [event])._replace(parent=parent)

    # --- messages ---------------------------------------------------------------------------------------------------

    def message(self, value: Any) -> Iterator[Entry]:  # noqa: ANN401  whatever stands where a message should
        """What a message says that was not said before."""
        message = value if isinstance(value, dict) else {"content": value}
        named = text(message.get("id"))
        if not named:
            self._numbers += 1
            named = f"message-{self._numbers}"
        self._said.setdefault(named, {})
        self.order[named] = None
        kind = message.get("type") or message.get("role")
        at = at_of(message.get("timestamp")) or at_of(message.get("ts"))
        content = message.get("content", message.get("parts"))
        # A client made of this one calls its model by another name: what only a model's message has tells it, too.
        is_model = kind in _MODEL or (kind != "user" and not _ONLY_MODELS.isdisjoint(message))
        entries = self._answer if is_model else self._told if kind == "user" else self._shown
        for entry in entries(named, message, content, at):
            self._last[named] = entry.key
            yield entry

    def _told(self, named: str, message: dict[str, Any], content: Any, at: int) -> Iterator[Entry]:  # noqa: ANN401
        parts = parts_of(content)
        answers = [part["functionResponse"] for part in parts if isinstance(part.get("functionResponse"), dict)]
        is_known = bool(answers) and all(text(each.get("id")) in self._answered for each in answers)
        for answer in answers:
            yield from self._result_part(named, answer, at)
        said = "".join(text(each.get("text")) for each in parts)
        left = [each for each in parts if "functionResponse" not in each]
        if (parts and not left) or (is_known and not said):
            return  # what stands beside results, as a picture does, was told with them
        event: Event
        if answers and not said:
            event = Context(op="inject", detail={"parts": left}, at=at)
        elif said.lstrip().startswith(_SET_UP):
            event = Context(op="inject", text=said, detail={"role": "user"}, at=at)
        elif said.lstrip().startswith(_SNAPSHOT):
            event = Context(op="compact", text=said, at=at)
        else:
            self.about.prompt(said)
            event = User(content=said, actor=self.actor, at=at)
        native = rest_of(message, *_MESSAGE) or {}
        if any(each.keys() != {"text"} for each in left):
            native["content"] = content
        if native.get("displayContent") in (said, content):
            native.pop("displayContent", None)
        yield from self._part(named, "user", said, [event], at=at, native=native or None)

    def _shown(self, named: str, message: dict[str, Any], content: Any, at: int) -> Iterator[Entry]:  # noqa: ANN401
        """What people were shown: no part of the conversation."""
        kind = text(message.get("type")) or text(message.get("role")) or "message"
        said = "".join(text(each.get("text")) for each in parts_of(content))
        native = rest_of(message, "id", "timestamp", "type", *(["content"] if isinstance(content, str) else []))
        yield from self._part(named, kind, said, [Note(topic=kind, text=said or None, at=at)], at=at, native=native)

    def _answer(self, named: str, message: dict[str, Any], content: Any, at: int) -> Iterator[Entry]:  # noqa: ANN401
        model = text(message.get("model")) or None
        self.about.model = self.about.model or model
        thoughts = [mapping(each) for each in listing(message.get("thoughts"))]
        pieces = [*thoughts_of(named, thoughts, at), *content_of(named, content, at)]
        if "call" in self._said[named]:
            known = set(self._said[named].values())
            for part, words, event, native in pieces:
                if isinstance(event, AssistantThinking) and hash(words) in known:
                    continue  # as a part of the content now, where it was a thought by itself
                yield from self._part(named, part, words, [event], at=at, native=native)
        else:  # what a message begins with is written at once
            first = next((found for each in thoughts if (found := at_of(each.get("timestamp")))), at)
            self._said[named] |= {"call": hash(""), **{part: hash(words) for part, words, _, _ in pieces}}
            left = (rest_of(message, *_MESSAGE) or {}) | {part: native for part, _, _, native in pieces if native}
            call = ModelCall(id=named, model=model, at=min(first, at) or at)
            yield self._entry(named, "call", [call, *(event for _, _, event, _ in pieces)], left or None)
        yield from self._tokens(named, message.get("tokens"), model, at)
        yield from self._calls(named, message, content, at)

    def _tokens(self, named: str, tokens: Any, model: str | None, at: int) -> Iterator[Entry]:  # noqa: ANN401
        if not isinstance(tokens, dict):
            return
        known = "placeholder" if is_placeholder(tokens) else "provider"
        event = ModelResult(id=named, usage=tokens, usage_from=known, model=model, at=at)
        told = hash(repr(tokens))
        if self._said[named].get("tokens") != told:
            self._said[named]["tokens"] = told
            yield self._entry(named, "tokens", [event])

    def _calls(self, named: str, message: dict[str, Any], content: Any, at: int) -> Iterator[Entry]:  # noqa: ANN401
        calls = [mapping(each) for each in listing(message.get("toolCalls"))]
        known = {text(each.get("id")) for each in calls}
        parts = [each for each in parts_of(content) if isinstance(each.get("functionCall"), dict)]
        asked = [{**(rest_of(each, "functionCall") or {}), **each["functionCall"]} for each in parts]
        calls += [each for each in asked if not text(each.get("id")) or text(each.get("id")) not in known]
        self._batches += len(calls) > 1
        batch = self._batches if len(calls) > 1 else None
        for i, call in enumerate(calls):
            call_id = text(call.get("id")) or f"{named}-{i}"
            event = AssistantToolCall(
                name=text(call.get("name")), args=args_of(call.get("args")), call_id=call_id, call=named, batch=batch,
                at=at,
            )  # fmt: skip
            if f"call-{call_id}" not in self._said[named]:
                yield from self._part(named, f"call-{call_id}", "", [event], at=at, native=rest_of(call, *_CALL))
            if call.get("result"):
                yield from self._result(named, call, call_id, at_of(call.get("timestamp")) or at)

    def _result(self, named: str, call: dict[str, Any], call_id: str, at: int) -> Iterator[Entry]:
        found = result_of(call, call_id, at)
        before = self._said[named].get(f"result-{call_id}")
        if before is not None:
            if before != hash(found.content):  # what the model sees of it from now on
                self._said[named][f"result-{call_id}"] = hash(found.content)
                event = Context(op="compact", text=found.content, detail={"replaces": call_id}, at=at)
                yield self._entry(named, f"result-{call_id}", [event])
            return
        self._answered.add(call_id)
        events: list[Event] = [found]
        changes, contents = ([], []) if found.failed else self.edits.made(call, found)
        native = _display(call, has_contents=bool(contents))
        self._said[named][f"result-{call_id}"] = hash(found.content)
        yield self._entry(named, f"result-{call_id}", [*events, *changes], native, contents)

    def _result_part(self, named: str, answer: dict[str, Any], at: int) -> Iterator[Entry]:
        """A result that stands among the user's parts, as the model was sent it; most were said with their calls."""
        call_id = text(answer.get("id"))
        if call_id and call_id in self._answered:
            return
        self._answered.add(call_id)
        found = found_in({"functionResponse": answer}, call_id)
        status = "error" if found.is_error else "ok"
        event = ToolResult(call_id=call_id, content=found.content, is_error=found.is_error, status=status, at=at)
        yield from self._part(named, f"result-{call_id}", found.content, [event], at=at)

    # --- entries --------------------------------------------------------------------------------------------------

    def _part(
        self, named: str, part: str, said: str, events: list[Event], *, at: int, native: dict[str, Any] | None = None,
    ) -> Iterator[Entry]:  # fmt: skip
        """A part of a message: once, and again where it says something else."""
        before = self._said[named].get(part)
        if before == hash(said):
            return
        self._said[named][part] = hash(said)
        if before is not None:
            events = [Context(op="rewind", detail={"replaces": named}, at=at), *events]
        yield self._entry(named, part, events, native)

    def _entry(
        self, named: str, part: str, events: list[Event], native: dict[str, Any] | None = None,
        contents: Sequence[bytes] = (),
    ) -> Entry:  # fmt: skip
        return Entry(self.session, self._keys.of(f"{named}:{part}"), events, self.place, None, native, contents)


def _display(call: dict[str, Any], *, has_contents: bool) -> dict[str, Any]:
    """How a call ended, and what people were shown of it; without the contents that are kept as the file's."""
    shown = call.get("resultDisplay")
    if isinstance(shown, dict) and has_contents:
        shown = rest_of(shown, "originalContent", "newContent")
    fields = {"status": call.get("status"), "resultDisplay": shown}
    return {name: each for name, each in fields.items() if each not in (None, "")}


def _bytes(said: str) -> bytes:
    return said.encode("utf-8", "surrogatepass")
