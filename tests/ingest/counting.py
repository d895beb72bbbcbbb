"""What the real files hold, counted a second time: plain reading of each format, with no code of trackway.

Written from the formats' descriptions and the files themselves, so that it can be wrong only in other ways than the
sources are. Numbers only: episodes, calls, results, pairs (a result and an earlier call of the same id, agent and
episode), turns (what a person, or one that plays a person, said).
"""

import json
import re
from collections import defaultdict

from tests.ingest import counting_agents as agents
from tests.ingest import counting_scored as scored
from tests.ingest.tally import Counts, Tally, blocks_of, lines_of, text_of

__all__ = ["Counts", "counter_of", "tallied"]


def counter_of(path, data):
    """What counts a file of the corpus; None where it holds no episodes, or is read with another."""
    place = path.relative_to(data).as_posix()
    return next((count for pattern, count in COUNTERS if re.search(pattern, place)), None)


def tallied(path, data):
    """The tally of such a file."""
    tally = Tally()
    counter_of(path, data)(path, tally)
    return tally


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
    "image_generation_call",
}
_CODEX_RESULTS = {
    "function_call_output",
    "custom_tool_call_output",
    "tool_search_output",
    "tool_result",
    "function_result",
}


def codex(path, tally):
    """The items of ``response_item`` lines: the same things said in ``event_msg`` are not counted again.

    The oldest files have items without an envelope.
    """
    session, alone = None, defaultdict(set)
    for line in lines_of(path):
        item = line.get("payload") if "payload" in line else line
        if line.get("type") == "session_meta":
            session = item.get("id")
        if item.get("type") == "user_message":
            alone[session].add(item.get("message"))
        if line is item or line.get("type") in ("session_meta", "response_item"):
            tally.episode(session)
            _codex_item(item, session, tally)
    for each in set(alone) - tally.people:  # a session of which only the client's own account is left
        tally.turns += len(alone[each])


def _codex_item(item, session, tally):
    kind, call_id = item.get("type"), item.get("call_id") or item.get("id")
    if kind in _CODEX_CALLS:
        why = "the provider searched by itself" if kind == "web_search_call" else ""
        made_up = "all ids are the same in this file" if call_id == "[trimmed for fixture]" else ""
        tally.call(session, call_id, why=why or made_up)
    if kind in _CODEX_RESULTS or (kind == "image_generation_call" and item.get("result")):
        tally.result(session, call_id)
    if item.get("role") == "user" and kind in ("message", None):
        (tally.turn if _is_said(item) else tally.given)(session)


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


COUNTERS = [
    (r"LICENSE|INDEX|metadata\.json|\.meta\.json|\.report\.json|/payloads/|manifest\.json", None),
    (r"claude_code/|many_agents/.*/claude/.*\.jsonl", claude_code),
    (r"codex-.*/trace-.*/trace\.jsonl", agents.codex_trace),
    (r"codex.*\.jsonl", codex),
    (r"^gemini_cli/|/gemini/", gemini),
    (r"(^|/)(pi|openclaw)/", pi),
    (r"^atif/", scored.atif),
    (r"^mini_swe_agent/", scored.mini_swe_agent),
    (r"^swe_agent/", scored.swe_agent),
    (r"^openhands/v0", scored.openhands_v0),
    (r"^openhands/v1", scored.openhands_v1),
    (r"^inspect/", scored.inspect),
    (r"^tau_bench/.*\.json$", scored.tau_bench),
    (r"^tau_bench/.*few_shot\.jsonl$", scored.tau_few_shot),
    (r"^openai_messages/", scored.openai_chat),
    (r"^sharegpt/", scored.sharegpt),
    (r"/copilot/", agents.copilot),
    (r"/cursor/", agents.cursor),
    (r"/droid/", agents.droid),
    (r"/kimi/.*\.jsonl", agents.kimi),
    (r"/qwen/", agents.qwen),
    (r"/grok/.*\.jsonl", agents.grok),
    (r"/hermes/", agents.hermes),
    (r"/antigravity/.*\.jsonl", agents.antigravity),
    (r"/opencode/.*/session/", agents.opencode),
    (r"/openai_agents/input_list", agents.openai_agents_items),
    (r"/openai_agents/trace", agents.openai_agents_trace),
    (r"/pydantic_ai/", agents.pydantic_ai),
    (r"^reflexion/", agents.reflexion),
    (r"^toolbench_tree/", agents.toolbench),
]
