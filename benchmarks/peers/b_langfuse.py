"""Langfuse's SDK into a sink that stands for its server: what a caller waits, and what reaches the wire.

Its queue drops what does not fit and a kill takes what is in it; bytes are those of the requests, unpacked.
"""

import contextlib
import json

from benchmarks.peers import sink
from benchmarks.workload import genai_output

_OBSERVED = "langfuse.observation."


@contextlib.contextmanager
def stage(folder):
    """The sink, and where it stands."""
    with sink.standing(folder) as address:
        yield {
            "LANGFUSE_BASE_URL": address,
            "LANGFUSE_HOST": address,
            "LANGFUSE_PUBLIC_KEY": "pk-lf-bench",
            "LANGFUSE_SECRET_KEY": "sk-lf-bench",
        }


class Recorder:
    """Two observations a step, inside one per episode."""

    def __init__(self, folder):
        from langfuse import Langfuse

        self._client = Langfuse()

    def begin(self, number):
        """Start the episode's observation."""
        self._root = self._client.start_observation(name="agent", as_type="agent", input={"ep": number})

    def end(self, number):
        """End it."""
        self._root.end()

    def step(self, step, messages):
        """Two observations."""
        place = {"ep": step["ep"], "i": step["i"]}
        chat = self._root.start_observation(
            name="chat", as_type="generation", model="mock", input=messages, metadata=place
        )
        chat.update(output=genai_output(step)[0], usage_details={"input": 300, "output": 90})
        chat.end()
        tool = self._root.start_observation(name="search", as_type="tool", input=step["args"], metadata=place)
        tool.update(output=step["result"])
        tool.end()

    def close(self):
        """Send what is left."""
        self._client.flush()
        self._client.shutdown()


def read(folder):
    """Every step that was sent."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found = {}
    for body in sink.bodies(folder):
        request = ExportTraceServiceRequest.FromString(body)
        for span in (s for one in request.resource_spans for scope in one.scope_spans for s in scope.spans):
            _note(found, span.name, {each.key: _plain(each.value) for each in span.attributes})
    return found


def _plain(value):
    return value.string_value if value.HasField("string_value") else value.int_value


def _note(found, name, attributes):
    place = tuple(attributes.get(f"{_OBSERVED}metadata.{each}") for each in ("ep", "i"))
    if None in place:
        return
    step, output = found.setdefault(tuple(map(int, place)), {}), attributes[f"{_OBSERVED}output"]
    if name == "chat":
        step["out"] = json.loads(output)["parts"][1]["content"]
    else:
        step["result"] = json.loads(output) if output.startswith('"') else output
