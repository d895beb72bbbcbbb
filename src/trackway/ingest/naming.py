"""An imported session is the same episode on every machine: its id is the session's UUID, or is made of its name."""

from __future__ import annotations

import uuid

from blake3 import blake3


def episode_id(source: str, session: str, *, keeps_ids: bool) -> str:
    """The id of the episode that a source's session is.

    >>> episode_id("claude_code", "0A1B2C3D-4e5f-4061-8071-2a3b4c5d6e7f", keeps_ids=True)
    '0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f'
    >>> episode_id("tau_bench", "12", keeps_ids=False) == episode_id("tau_bench", "12", keeps_ids=False)
    True
    """
    if keeps_ids:
        try:
            return str(uuid.UUID(session))
        except ValueError:
            pass
    digest = blake3(f"trackway episode\0{source}\0{session}".encode("utf-8", "surrogatepass")).digest(16)
    # Version 8 is "made of something by the program's own rule": no other program's ids are of it.
    value = int.from_bytes(digest, "big") & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0b10 << 62
    return str(uuid.UUID(int=value))
