"""SQLite behind a queue and a thread: the caller hardly waits, and a kill takes what is still in the queue."""

import queue
import threading

from benchmarks.peers.b_sqlite import INSERT, connect, read, rows

__all__ = ["Recorder", "read"]


class Recorder:
    """The thread writes what has gathered, a transaction at a time."""

    def __init__(self, folder):
        self._connection = connect(folder)
        self._queue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def begin(self, number):
        """Nothing to do."""

    def end(self, number):
        """Nothing to do."""

    def step(self, step, messages):
        """Two things to write later."""
        for row in rows(step, messages):
            self._queue.put(row)

    def _drain(self):
        open_ended = True
        while open_ended:
            gathered = [self._queue.get()]
            while not self._queue.empty():
                gathered.append(self._queue.get())
            open_ended = gathered[-1] is not None
            self._connection.execute("BEGIN")
            self._connection.executemany(INSERT, gathered if open_ended else gathered[:-1])
            self._connection.execute("COMMIT")

    def close(self):
        """Wait until all is written."""
        self._queue.put(None)
        self._thread.join()
        self._connection.close()
