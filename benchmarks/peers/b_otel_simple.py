"""OpenTelemetry that exports each span when it ends. Nothing waits in a queue, and the caller pays for it."""

from benchmarks.peers import b_otel_batch

read = b_otel_batch.read


class Recorder(b_otel_batch.Recorder):
    """The same spans through the other processor."""

    processor = "SimpleSpanProcessor"
