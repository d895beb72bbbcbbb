"""SQLite whose every commit waits for the disk (WAL, synchronous=FULL): what survives the machine."""

from benchmarks.peers import b_sqlite

read = b_sqlite.read


class Recorder(b_sqlite.Recorder):
    """The same, with the stronger promise."""

    synchronous = "FULL"
