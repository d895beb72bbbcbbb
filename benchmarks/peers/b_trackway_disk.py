"""trackway where a call returns once its event is on the disk: it survives the machine, not only the process."""

from benchmarks.peers import b_trackway

read = b_trackway.read


class Recorder(b_trackway.Recorder):
    """The same, with the stronger promise."""

    ack = "disk"
