"""Death on cue: failpoints that kill the process the way a real kill -9 does, nothing flushed, nothing closed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def die() -> None:
    """Kill this process, now."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(name: str, *, nth: int = 1) -> Callable[[str], None]:
    """A failpoint for ``Sealer`` that kills the process when ``name`` is reached for the ``nth`` time."""
    left = nth

    def failpoint(reached: str) -> None:
        nonlocal left
        if reached == name:
            left -= 1
            if not left:
                die()

    return failpoint
