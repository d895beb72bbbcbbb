"""llm's log: a tree of messages by content in SQLite, each response logged once it is complete.

A tool's result is logged with the next turn, so the last one before a kill is gone. Its conversations always carry
their history; how much of it a step is given makes no difference here.
"""

import contextlib
import json
import sqlite3
from pathlib import Path

from benchmarks.workload import SYSTEM


@contextlib.contextmanager
def stage(folder):
    """Its home in the folder, no plugins."""
    yield {"LLM_USER_PATH": str(Path(folder, "home")), "LLM_LOAD_PLUGINS": ""}


class Recorder:
    """A conversation an episode, with a model that says what the step says."""

    def __init__(self, folder):
        import llm
        import sqlite_utils
        from llm.migrations import migrate

        self._llm = llm
        self._database = sqlite_utils.Database(str(Path(folder, "logs.db")))
        migrate(self._database)
        self._model = _model(llm, self)
        self.current = self._before = None

    def begin(self, number):
        """A new conversation."""
        self._conversation = self._llm.Conversation(model=self._model)
        self._before = None

    def end(self, number):
        """A closing turn, with which the last tool result is logged."""
        self._turn({"args": {}, "call_id": f"end{number}", "out": "end", "user": "done"})

    def step(self, step, messages):
        """One turn, with the result of the tool called in the turn before."""
        self._turn(step)
        self._before = step

    def _turn(self, step):
        self.current, before = step, self._before
        more = {"system": SYSTEM}
        if before:
            result = self._llm.ToolResult(name="search", output=before["result"], tool_call_id=before["call_id"])
            more = {"tool_results": [result]}
        response = self._conversation.prompt(step["user"], stream=False, **more)
        response.text()
        response.log_to_db(self._database)

    def close(self):
        """Let go of the file."""
        self._database.conn.close()


def _model(llm, recorder):
    class Scripted(llm.Model):
        """Says what the current step says."""

        model_id = "scripted"
        can_stream = False
        supports_tools = True

        def execute(self, prompt, stream, response, conversation):
            """One tool call and one text."""
            step = recorder.current
            call = llm.ToolCall(name="search", arguments=step["args"], tool_call_id=step["call_id"])
            response.add_tool_call(call)
            response.set_usage(input=300, output=90)
            yield step["out"]

    return Scripted()


def read(folder):
    """Every step, from the parts of the messages."""
    query = "SELECT message_hash, type, text, payload FROM parts ORDER BY id"
    messages = {}
    for message, kind, text, payload in sqlite3.connect(Path(folder, "logs.db")).execute(query):
        messages.setdefault(message, []).append((kind, text, json.loads(payload) if payload else {}))
    found = {}
    for parts in messages.values():
        said = next((text for kind, text, _ in parts if kind == "text"), None)
        for kind, text, payload in parts:
            place = _place(payload.get("tool_call_id"))
            if kind == "tool_call" and place:
                found.setdefault(place, {})["out"] = said
            elif kind == "tool_result" and place:
                found.setdefault(place, {})["result"] = payload.get("output") if text is None else text
    return found


def _place(call):
    return tuple(int(each) for each in call.split("_")[1:]) if str(call).startswith("call_") else None
