"""Telling our trouble from somebody else's interrupt.

A signal handler may raise anything at any moment, a ``TimeoutError`` of an alarm for one. Thrown into the middle of a
recording call it is the agent's, not ours to count as a loss: it must go on to whoever waits for it.
"""

from __future__ import annotations

import json
from typing import Final

_STANDARD_LIBRARY: Final = json.__file__.replace("\\", "/").rsplit("/", 2)[0] + "/"
_OURS: Final = __name__.partition(".")[0]


def is_thrown_in(error: BaseException) -> bool:
    """Whether the exception was raised by code that trackway did not call.

    The last frame that is not the standard library's tells: one of ours, and we raised it or called what did.
    """
    frame, ours = error.__traceback__, True
    while frame is not None:
        name = frame.tb_frame.f_globals.get("__name__", "")
        file = frame.tb_frame.f_code.co_filename.replace("\\", "/")
        if name.partition(".")[0] == _OURS:
            ours = True
        elif not file.startswith(_STANDARD_LIBRARY) or "/site-packages/" in file:
            ours = False
        frame = frame.tb_next
    return not ours
