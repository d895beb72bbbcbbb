"""OpenTelemetry as its own documents have it: spans through a BatchSpanProcessor into the OTLP JSON file exporter.

Its queue holds 2,048 spans and drops what does not fit, without a word; a kill takes what is in it.
"""

import json
from pathlib import Path

from benchmarks.workload import genai_input, genai_output


class Recorder:
    """Two spans a step, inside one per episode."""

    processor = "BatchSpanProcessor"

    def __init__(self, folder):
        from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
        from opentelemetry.sdk.trace import TracerProvider, export

        exporter = FileSpanExporter(str(Path(folder, "spans.jsonl")))
        self._provider = TracerProvider()
        self._provider.add_span_processor(getattr(export, self.processor)(exporter))
        self._tracer = self._provider.get_tracer("bench")

    def begin(self, number):
        """Start the episode's span."""
        from opentelemetry import trace

        names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": f"ep{number}"}
        self._root = self._tracer.start_span("invoke_agent bench", attributes=names)
        self._context = trace.set_span_in_context(self._root)

    def end(self, number):
        """End it."""
        self._root.end()

    def step(self, step, messages):
        """Two spans."""
        place = {"bench.ep": step["ep"], "bench.i": step["i"], "gen_ai.conversation.id": f"ep{step['ep']}"}
        chat = self._tracer.start_span("chat mock", context=self._context, attributes={
            **place, "gen_ai.operation.name": "chat", "gen_ai.provider.name": "mock", "gen_ai.request.model": "mock",
            "gen_ai.input.messages": json.dumps(genai_input(messages)),
        })  # fmt: skip
        chat.set_attribute("gen_ai.output.messages", json.dumps(genai_output(step)))
        chat.set_attribute("gen_ai.usage.input_tokens", 300)
        chat.set_attribute("gen_ai.usage.output_tokens", 90)
        chat.end()
        tool = self._tracer.start_span("execute_tool search", context=self._context, attributes={
            **place, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": step["call_id"], "gen_ai.tool.call.arguments": json.dumps(step["args"]),
        })  # fmt: skip
        tool.set_attribute("gen_ai.tool.call.result", step["result"])
        tool.end()

    def close(self):
        """Export what is left."""
        self._provider.shutdown()


def read(folder):
    """Every step that was exported."""
    found = {}
    with Path(folder, "spans.jsonl").open() as lines:
        for line in lines:
            if line.endswith("\n"):
                for span in _spans(json.loads(line)):
                    _note(found, {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]})
    return found


def _spans(line):
    return [span for one in line["resourceSpans"] for scope in one["scopeSpans"] for span in scope["spans"]]


def _note(found, attributes):
    if "bench.i" not in attributes:
        return
    step = found.setdefault((int(attributes["bench.ep"]), int(attributes["bench.i"])), {})
    if attributes["gen_ai.operation.name"] == "chat":
        step["out"] = json.loads(attributes["gen_ai.output.messages"])[0]["parts"][1]["content"]
    else:
        step["result"] = attributes["gen_ai.tool.call.result"]
