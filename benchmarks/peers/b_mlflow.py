"""MLflow's tracing into its SQLite store, as it comes: a thread writes what a queue holds, a kill takes the queue."""

import contextlib
import os
from pathlib import Path

from benchmarks.workload import genai_output


@contextlib.contextmanager
def stage(folder):
    """Its store in the folder, and nothing sent anywhere."""
    yield {
        "MLFLOW_TRACKING_URI": _uri(folder),
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
    }


def _uri(folder):
    return f"sqlite:///{Path(folder, 'mlflow.db')}"


class Recorder:
    """Two spans a step, inside one per episode."""

    def __init__(self, folder):
        import mlflow

        os.chdir(folder)  # where it puts artifacts
        self._mlflow = mlflow
        mlflow.set_tracking_uri(_uri(folder))
        mlflow.set_experiment("bench")

    def begin(self, number):
        """Start the episode's span."""
        place = {"ep": number}
        self._root = self._mlflow.start_span_no_context("agent", span_type="AGENT", inputs=place, attributes=place)

    def end(self, number):
        """End it."""
        self._root.set_outputs({"done": True})
        self._root.end()

    def step(self, step, messages):
        """Two spans."""
        self._span("chat", "CHAT_MODEL", step, {"messages": messages}, genai_output(step)[0])
        self._span("search", "TOOL", step, step["args"], step["result"])

    def _span(self, name, kind, step, given, answer):
        span = self._mlflow.start_span_no_context(
            name, span_type=kind, parent_span=self._root, inputs=given, attributes={"ep": step["ep"], "i": step["i"]}
        )
        span.set_outputs(answer)
        span.end()

    def close(self):
        """Wait until the queue is written."""
        self._mlflow.flush_trace_async_logging(terminate=True)


def read(folder):
    """Every step of every trace."""
    import mlflow

    mlflow.set_tracking_uri(_uri(folder))
    client = mlflow.MlflowClient()
    where = [mlflow.get_experiment_by_name("bench").experiment_id]
    found, token = {}, None
    while True:
        traces = client.search_traces(locations=where, max_results=100, page_token=token)
        for span in (span for trace in traces for span in trace.data.spans):
            _note(found, span)
        token = traces.token
        if not token:
            return found


def _note(found, span):
    if "i" not in span.attributes:
        return
    step = found.setdefault((int(span.attributes["ep"]), int(span.attributes["i"])), {})
    if span.name == "chat":
        step["out"] = span.outputs["parts"][1]["content"]
    else:
        step["result"] = span.outputs
