"""Contents of files that a session wrote, followed from change to change: what was known last is the content before."""

from __future__ import annotations


class Followed:
    """Contents by path, up to so many bytes: those known for the longest time are forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, bytes] = {}
        self._size = 0

    def get(self, path: str) -> bytes | None:
        """What is in the file, where that is known."""
        return self._known.get(path)

    def keep(self, path: str, content: bytes | None) -> None:
        """What is in it from here on; None where nobody knows."""
        self._size -= len(self._known.pop(path, b""))
        if content is None:
            return
        self._known[path] = content
        self._size += len(content)
        while self._size > self._most:
            self._size -= len(self._known.pop(next(iter(self._known))))
