"""Inspect: a task whose solver walks the steps through its model and its tools; what a kill leaves is recovered.

Its log is an archive per task; a database beside it holds the samples that are under way, and recovery reads both.
"""

import contextlib
import os
import time
from pathlib import Path

from benchmarks.workload import SYSTEM


@contextlib.contextmanager
def stage(folder):
    """Its logs and its database in the folder, nothing on the screen."""
    yield {
        "XDG_DATA_HOME": str(Path(folder, "xdg")),
        "INSPECT_LOG_DIR": str(Path(folder, "logs")),
        "INSPECT_DISPLAY": "none",
        "INSPECT_TELEMETRY": "",
    }


class Recorder:
    """Owns the loop: an episode is a sample, a step is a call of the model and the execution of its tool."""

    def __init__(self, folder):
        import inspect_ai

        self._inspect = inspect_ai
        self._logs = str(Path(folder, "logs"))
        self.current = None

    def drive(self, plan, done):
        """Evaluate one task."""
        from inspect_ai.dataset import Sample

        samples = [Sample(id=number, input=f"episode {number}") for number in range(len(plan))]
        task = self._inspect.Task(dataset=samples, solver=_solver(self, plan, done), name="bench")
        self._inspect.eval(
            task, model=_model(self), log_dir=self._logs, max_samples=1, display="none", log_level="error"
        )

    def close(self):
        """Nothing to do."""


def _model(recorder):
    from inspect_ai import model
    from inspect_ai.tool import ToolCall

    def answer(sent, tools, choice, config):
        step = recorder.current
        said = [model.ContentReasoning(reasoning=step["think"]), model.ContentText(text=step["out"])]
        call = ToolCall(id=step["call_id"], function="search", arguments=step["args"])
        message = model.ChatMessageAssistant(content=said, tool_calls=[call], source="generate")
        return model.ModelOutput(
            model="mock",
            choices=[model.ChatCompletionChoice(message=message, stop_reason="tool_calls")],
            usage=model.ModelUsage(input_tokens=300, output_tokens=90, total_tokens=390),  # or it fetches a tokenizer
        )

    return model.get_model("mockllm/model", custom_outputs=answer)


def _search(recorder):
    from inspect_ai.tool import tool

    @tool
    def search():
        async def execute(path: str, query: str):
            """Search.

            Args:
              path: the path
              query: the query
            """
            return recorder.current["result"]

        return execute

    return search()


def _solver(recorder, plan, done):
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, execute_tools, get_model
    from inspect_ai.solver import solver

    tools = [_search(recorder)]

    async def solve(state, generate):
        messages = []
        for step, sent in plan[int(state.sample_id)]:
            recorder.current = step
            if len(sent) == 2:  # without history, each call begins anew
                messages = [ChatMessageSystem(content=SYSTEM)]
            messages.append(ChatMessageUser(content=step["user"]))
            started = time.perf_counter_ns()
            output = await get_model().generate(messages, tools=tools)
            messages.append(output.message)
            messages.extend((await execute_tools(messages, tools)).messages)
            done(time.perf_counter_ns() - started)
        state.messages = messages
        return state

    @solver
    def steps():
        return solve

    return steps()


def read(folder):
    """Every step of the log; one that was cut short is recovered first."""
    from inspect_ai.log import read_eval_log

    path = str(_logs(folder)[0])
    if read_eval_log(path, header_only=True).status != "success":
        from inspect_ai.log import recover_eval_log

        recovered = os.fspath(Path(folder, "recovered.eval"))
        recover_eval_log(path, output=recovered, cleanup=False)
        path = recovered
    found = {}
    for sample in read_eval_log(path, resolve_attachments=True).samples or []:
        for event in sample.events:
            if event.event == "model":
                message = event.output.choices[0].message
                found.setdefault(_place(message.tool_calls[0].id), {})["out"] = message.text
            elif event.event == "tool":
                found.setdefault(_place(event.id), {})["result"] = event.result
    return found


def weigh(folder):
    """The archive: the database is gone when the task ends, what else is left is a log for its developers."""
    return sum(each.stat().st_size for each in _logs(folder))


def _logs(folder):
    return sorted(Path(folder, "logs").glob("*.eval"))


def _place(call):
    return tuple(int(each) for each in call.split("_")[1:])
