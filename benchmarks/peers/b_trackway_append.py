"""trackway where files cannot be mapped: the journal appends with one write per event that keeps the GIL."""

from benchmarks.peers import b_trackway

read = b_trackway.read


class Recorder(b_trackway.Recorder):
    """The same, with the other journal."""

    journal = "append"
