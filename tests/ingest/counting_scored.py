"""What evaluations and training hold, counted for `counting`: no code of trackway."""

import json
import re
import zipfile

from tests.ingest.tally import lines_of, text_of

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
        events = [each for each in sample.get("events") or () if each["event"] in ("model", "tool")]
        for message in sample.get("messages") or ():
            if not events or message["role"] == "user":
                _chat_message(message, session, tally, is_turn=message.get("source") == "input")
        for event in events:
            _inspect_event(event, session, tally)


def _inspect_event(event, session, tally):
    """What the model was asked for and what the tools gave, as it happened: a solver may take messages out again."""
    if event["event"] == "tool":
        tally.result(session, event["id"])
    else:
        answer = event["output"]["choices"][0]["message"] if event["output"]["choices"] else {}
        for call in answer.get("tool_calls") or ():
            tally.call(session, call["id"])


def tau_bench(path, tally):
    """One row, one trial; ids repeat, and results follow their calls."""
    for row, each in enumerate(json.loads(text_of(path))):
        for message in each["traj"]:
            _chat_message(message, row, tally, is_turn=True)


def tau_few_shot(path, tally):
    """A chat as one text, a role before each message; whom a result answers is not told."""
    for row, each in enumerate(lines_of(path)):
        tally.episode(row)
        for i, line in enumerate(each["messages_display"].split("\n")):
            if line.startswith("user: "):
                tally.turn(row)
            elif line.startswith("tool: "):
                tally.result(row, i)


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
    """A conversation a line; where the model acts in words, what comes back is said in the user's name."""
    for row, each in enumerate(lines_of(path)):
        for message in each["messages"]:
            is_back = (message.get("content") or "").startswith("Observation:")
            _chat_message(message, row, tally, is_turn=not is_back)


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
