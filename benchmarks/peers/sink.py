"""`python -m benchmarks.peers.sink FOLDER`: takes the place of a collector, on this machine alone; prints its port.

It keeps the body of every request that arrived whole, unpacked, with its length before it, and says 200 to all. Told to
end (SIGTERM) it first takes in what is still on its way.
"""

import contextlib
import gzip
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_LENGTH = struct.Struct("<Q")


@contextlib.contextmanager
def standing(folder: Path) -> Iterator[str]:
    """A sink that keeps in ``folder`` what it is sent; its address."""
    command = [sys.executable, "-m", "benchmarks.peers.sink", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def bodies(folder: Path) -> Iterator[bytes]:
    """What was sent, request by request."""
    with _path(folder).open("rb") as file:
        while length := file.read(_LENGTH.size):
            yield file.read(*_LENGTH.unpack(length))


def _path(folder: Path) -> Path:
    return Path(folder, "bodies.bin")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Sink"

    def do_POST(self) -> None:
        """Keep the body."""
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        if len(body) < size:  # the sender was killed
            return
        self.server.keep(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        self.do_GET()

    def do_GET(self) -> None:
        """Content with everything."""
        kind = self.headers.get("Content-Type", "application/json")
        answer = b"" if "protobuf" in kind else b"{}"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Sink(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for what is on its way

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._file = _path(folder).open("ab", buffering=0)
        self._lock = threading.Lock()

    def keep(self, body: bytes) -> None:
        with self._lock:
            self._file.write(_LENGTH.pack(len(body)) + body)


def main() -> None:
    """Listen until told to end."""
    sink = _Sink(Path(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=sink.shutdown).start())
    print(sink.server_port, flush=True)
    sink.serve_forever()
    sink.server_close()


if __name__ == "__main__":
    main()
