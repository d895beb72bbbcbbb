"""What the real files hold, counted a second time: plain reading of each format, with no code of trackway.

Written from the formats' descriptions and the files themselves, so that it can be wrong only in other ways than the
sources are. Numbers only: episodes, calls, results, pairs (a result and an earlier call of the same id, agent and
episode), turns (what a person, or one that plays a person, said).
"""

import json
import re
import zipfile
from collections import defaultdict
from typing import NamedTuple

import zstandard


class Counts(NamedTuple):
    """The numbers of one file."""

    episodes: int
    calls: int
    results: int
    pairs: int
    turns: int


class Tally:
    """The facts of one file as they are met."""

    def __init__(self):
        self.episodes, self.waiting = {}, defaultdict(list)
        self.calls = self.results = self.pairs = self.turns = 0

    def episode(self, session):
        """One more, where it is a new one; what is kept of it is how many facts followed."""
        self.episodes.setdefault(session, 0)

    def call(self, session, call_id, agent=None, why=""):
        """A tool was called; ``why`` says why nothing came back, should nothing have come back."""
        self.episode(session)
        self.calls += 1
        self.waiting[session, agent, call_id].append((self.episodes[session], why))

    def result(self, session, call_id, agent=None):
        """Something came back."""
        self.episode(session)
        self.episodes[session] += 1
        self.results += 1
        if self.waiting[session, agent, call_id]:
            self.waiting[session, agent, call_id].pop(0)
            self.pairs += 1

    def turn(self, session):
        """Somebody said something."""
        self.episode(session)
        self.episodes[session] += 1
        self.turns += 1

    def interrupted(self, session, why):
        """Nothing will come back of what waits now."""
        for key, waiting in self.waiting.items():
            if key[0] == session:
                waiting[:] = [(after, known or why) for after, known in waiting]

    def unpaired(self):
        """Why nothing came back, for each call that waits, by episode, agent and id; empty where nobody knows."""
        ends = "the file ends before its result"
        return {
            key: [why or (ends if after == self.episodes[key[0]] else "") for after, why in waiting]
            for key, waiting in self.waiting.items()
            if waiting
        }

    def counts(self):
        """The sums."""
        return Counts(len(self.episodes), self.calls, self.results, self.pairs, self.turns)


def counter_of(path, data):
    """What counts a file of the corpus; None where it holds no episodes, or is read with another."""
    place = path.relative_to(data).as_posix()
    return next((count for pattern, count in COUNTERS if re.search(pattern, place)), None)


def tallied(path, data):
    """The tally of such a file."""
    tally = Tally()
    counter_of(path, data)(path, tally)
    return tally


# --- reading ----------------------------------------------------------------------------------------------------------


def text_of(path):
    """The text of a file, compressed or not."""
    body = path.read_bytes()
    if path.suffix == ".zst":
        body = zstandard.ZstdDecompressor().stream_reader(body).read()
    return body.decode()


def lines_of(path):
    """The objects of a file of lines, two on one line if need be; what is none is passed by."""
    decoder = json.JSONDecoder()
    for line in text_of(path).split("\n"):
        at, line = 0, line.strip()  # noqa: PLW2901  the same line
        while at < len(line):
            try:
                value, at = decoder.raw_decode(line, at)
            except ValueError:
                break
            if isinstance(value, dict):
                yield value


def blocks_of(message):
    """The blocks of a message's content; a text is one."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [each for each in content or () if isinstance(each, dict)]


# --- Claude Code ------------------------------------------------------------------------------------------------------

_NOT_SAID = (
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<bash-stdout>",
    "<task-notification>",
    "[Request inter",
)


def claude_code(path, tally):
    """Lines by uuid, each once; sub-agents by ``agentId``: their own files are counted by themselves."""
    met = set()
    for entry in lines_of(path):
        session = entry.get("sessionId")
        if entry.get("uuid") in met or session is None:
            continue
        met |= {entry["uuid"]} if entry.get("uuid") else set()
        tally.episode(session)
        _claude_entry(entry, session, tally)


def _claude_entry(entry, session, tally):
    agent, kind, blocks = entry.get("agentId"), entry.get("type"), blocks_of(entry.get("message"))
    for block in blocks:
        if kind == "assistant" and block.get("type") == "tool_use":
            tally.call(session, block.get("id"), agent)
        if kind == "user" and block.get("type") == "tool_result":
            tally.result(session, block.get("tool_use_id"), agent)
    said = [each for each in blocks if each.get("type") in ("text", "image", "document")]
    first = next((each.get("text", "") for each in said if each.get("type") == "text"), "")
    put_in = any(entry.get(each) for each in ("isMeta", "isCompactSummary", "isSidechain", "agentId"))
    is_human = (entry.get("origin") or {}).get("kind", "human") == "human" and not first.startswith(_NOT_SAID)
    if kind == "user" and said and not put_in and is_human:
        tally.turn(session)
    waited = entry.get("attachment") or {}
    if waited.get("type") == "queued_command" and waited.get("commandMode") == "prompt":
        tally.turn(session)  # sent while the model was at work


# --- Codex ------------------------------------------------------------------------------------------------------------

_CODEX_CALLS = {
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
    "tool_call",
}
_CODEX_RESULTS = {"function_call_output", "custom_tool_call_output", "tool_search_output", "tool_result"}


def codex(path, tally):
    """The items of ``response_item`` lines: the same things said in ``event_msg`` are not counted again."""
    session = None
    for line in lines_of(path):
        item = line.get("payload") or {}
        if line.get("type") == "session_meta" and session is None:
            session = item.get("id")
            tally.episode(session)
        if line.get("type") != "response_item":
            continue
        if item.get("type") in _CODEX_CALLS:
            why = "the provider searched by itself" if item["type"] == "web_search_call" else ""
            tally.call(session, item.get("call_id") or item.get("id"), why=why)
        if item.get("type") in _CODEX_RESULTS:
            tally.result(session, item.get("call_id") or item.get("id"))
        if item.get("type") == "message" and item.get("role") == "user" and _is_said(item):
            tally.turn(session)


def _is_said(item):
    """A person wrote it: neither instructions, nor a description of the environment, nor what a client put in."""
    texts = [each.get("text") or "" for each in blocks_of(item)]
    return not re.match(r"# AGENTS\.md instructions|<[a-z_]+>", texts[0] if texts else "")


# --- Gemini CLI, pi ---------------------------------------------------------------------------------------------------


def gemini(path, tally):
    """Messages by id, the last of each; each tool call has its result with it."""
    whole = text_of(path)
    try:
        found = json.loads(whole)
        metadata, messages = found, found.get("messages") or found.get("history")
    except ValueError:
        entries = list(lines_of(path))
        metadata, messages = entries[0], [each for each in entries if "type" in each]
    session = metadata.get("sessionId")
    tally.episode(session)
    for message in {each.get("id", i): each for i, each in enumerate(messages)}.values():
        if "user" in (message.get("type"), message.get("role")):
            tally.turn(session)
        for call in message.get("toolCalls") or ():
            tally.call(session, call["id"])
            if call.get("result"):
                tally.result(session, call["id"])


def pi(path, tally):
    """Entries of a tree; calls are blocks, results are messages."""
    session = None
    for entry in lines_of(path):
        session = entry["id"] if entry.get("type") == "session" else session
        tally.episode(session)
        message = entry.get("message") or {}
        if entry.get("type") == "compaction":
            tally.interrupted(session, "the context was compacted before its result")
        for block in blocks_of(message):
            if block.get("type") == "toolCall":
                broken = message.get("stopReason") in ("aborted", "error")
                tally.call(session, block["id"], why="the answer broke off, and was not acted on" if broken else "")
        if message.get("role") == "toolResult":
            tally.result(session, message["toolCallId"])
        if message.get("role") == "user":
            tally.turn(session)


# --- evaluations ------------------------------------------------------------------------------------------------------


def atif(path, tally):
    """Steps; results stand in the step of their calls."""
    found = json.loads(text_of(path))
    for step in found["steps"]:
        tally.episode(0)
        if step["source"] == "user":
            tally.turn(0)
        for call in step.get("tool_calls") or ():
            tally.call(0, call["tool_call_id"], why="its step, the only place for it, holds no result")
        for result in (step.get("observation") or {}).get("results") or ():
            tally.result(0, result.get("source_call_id"))


def mini_swe_agent(path, tally):
    """A message with just one bash block is a call; the message after it is what came back. One task, said once."""
    messages = json.loads(text_of(path))["messages"]
    tally.turn(0)
    for i, (message, after) in enumerate(zip(messages, [*messages[1:], None], strict=True)):
        blocks = re.findall(r"```bash\s*\n(.*?)\n```", message["content"], re.DOTALL)
        if message["role"] == "assistant" and len(blocks) == 1:
            tally.call(0, i)
            if after is not None:
                tally.result(0, i)


def swe_agent(path, tally):
    """Each step is an action and an observation; where there are no steps, the history is told the same way."""
    found = json.loads(text_of(path))
    steps = found.get("trajectory") or [
        {"action": each["action"], "observation": each.get("content")}
        for each in found["history"]
        if each.get("action")
    ]
    tally.turn(0)
    for i, step in enumerate(steps):
        if step.get("action"):
            tally.call(0, i)
            if step.get("observation") is not None:
                tally.result(0, i)


def openhands_v0(path, tally):
    """Lists of actions and observations; rows of an evaluation have one each."""
    text = text_of(path)
    histories = [json.loads(text)] if text.lstrip().startswith("[") else [each["history"] for each in lines_of(path)]
    for row, history in enumerate(histories):
        events = [one for each in history for one in (each if isinstance(each, list) else [each])]
        tally.episode(row)
        last = None
        for i, event in enumerate(events):
            last = _openhands_event(event, (row, event.get("id", i), last), tally)


_NO_CALLS = {"message", "system", "recall", "change_agent_state", None, ""}


def _openhands_event(event, place, tally):
    """An action of the agent is a call, what names it as its cause is its result; where nothing does, the next is."""
    row, name, last = place
    if event.get("action") == "message" and event.get("source") in ("user", None):
        tally.turn(row)
    if event.get("action") not in _NO_CALLS:
        tally.call(row, name, why="it ends the episode" if event["action"] == "finish" else "")
        return name
    if event.get("observation") not in (None, "null", "agent_state_changed", "recall", "error"):
        tally.result(row, event.get("cause", last))
    return last


def openhands_v1(path, tally):
    """Events with a ``kind``."""
    for event in lines_of(path):
        kind = event.get("kind")
        tally.episode(0)
        if kind == "ActionEvent":
            tally.call(0, event["tool_call_id"])
        if kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
            tally.result(0, event.get("tool_call_id"))
        if kind == "MessageEvent" and event.get("source") == "user":
            tally.turn(0)


def inspect(path, tally):
    """Samples: in a zip one file each, in a document a list; of each the conversation as it ended."""
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as archive:
            names = [each for each in archive.namelist() if re.fullmatch(r"samples/[^/]+\.json", each)]
            samples = [json.loads(archive.read(each)) for each in names]
    else:
        samples = json.loads(text_of(path)).get("samples") or []
    for sample in samples:
        session = (sample["id"], sample["epoch"])
        tally.episode(session)
        for message in sample.get("messages") or ():
            _chat_message(message, session, tally, is_turn=message.get("source") == "input")


def tau_bench(path, tally):
    """One row, one trial; ids repeat, and results follow their calls."""
    for row, each in enumerate(json.loads(text_of(path))):
        for message in each["traj"]:
            _chat_message(message, row, tally, is_turn=True)


# --- conversations ----------------------------------------------------------------------------------------------------


def _chat_message(message, session, tally, *, is_turn):
    tally.episode(session)
    if message["role"] == "user" and is_turn:
        tally.turn(session)
    for call in message.get("tool_calls") or ():
        tally.call(session, call.get("id"))
    if message["role"] == "tool":
        tally.result(session, message.get("tool_call_id"))


def openai_chat(path, tally):
    """A conversation a line."""
    for row, each in enumerate(lines_of(path)):
        for message in each["messages"]:
            _chat_message(message, row, tally, is_turn=True)


def sharegpt(path, tally):
    """Turns by who they are from; an observation answers the call before it."""
    for row, each in enumerate(json.loads(text_of(path))):
        tally.episode(row)
        for turn in each["conversations"]:
            if turn["from"] in ("human", "user"):
                tally.turn(row)
            if turn["from"] == "function_call":
                calls = json.loads(turn["value"])
                for _ in calls if isinstance(calls, list) else [calls]:
                    tally.call(row, None)
            if turn["from"] in ("observation", "tool"):
                tally.result(row, None)


COUNTERS = [
    (r"LICENSE|INDEX|metadata\.json|\.meta\.json|\.report\.json", None),
    (r"claude_code/|many_agents/.*/claude/.*\.jsonl", claude_code),
    (r"codex-.*/trace-", None),
    (r"codex.*\.jsonl", codex),
    (r"^gemini_cli/|/gemini/", gemini),
    (r"(^|/)pi/", pi),
    (r"^atif/", atif),
    (r"^mini_swe_agent/", mini_swe_agent),
    (r"^swe_agent/", swe_agent),
    (r"^openhands/v0", openhands_v0),
    (r"^openhands/v1", openhands_v1),
    (r"^inspect/", inspect),
    (r"^tau_bench/.*\.json$", tau_bench),
    (r"^openai_messages/", openai_chat),
    (r"^sharegpt/", sharegpt),
]
