"""The key of the home's tokens: made once, on first use, readable by its owner alone, never replaced.

Whoever has it can lift what was hidden; without it nobody can. It is part of no backup and no pack.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from trackway.errors import BadSetting
from trackway.recording.losses import say
from trackway.recording.tokens import KEY_BYTES, Tokens
from trackway.store import system
from trackway.store.home import Home


def tokens_to_hide(home: Home, entropy: Callable[[int], bytes]) -> Tokens:
    """The tokens of this home, its key made where there is none.

    Where no key can be kept, one is drawn for this process: hiding matters more than lifting, and that is said.
    """
    try:
        return Tokens(_read(home) or _make(home, entropy))
    except OSError as error:
        say(f"no redaction key can be kept in {home.key} ({error.strerror}): what is hidden now cannot be lifted later")
        return Tokens(entropy(KEY_BYTES))


def tokens_to_lift(home: Home) -> Tokens:
    """The tokens of this home; raises ``BadSetting`` where it has no key."""
    key = _read(home)
    if key is None:
        raise BadSetting(f"{home.key} is not there: nothing can be lifted", hint="put the key back that hid it")
    return Tokens(key)


def _read(home: Home) -> bytes | None:
    try:
        text = home.key.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    with contextlib.suppress(ValueError):
        key = bytes.fromhex(text)
        if len(key) == KEY_BYTES:
            return key
    raise BadSetting(f"{home.key} is no key: {2 * KEY_BYTES} hexadecimal digits", hint="put back the one it was")


def _make(home: Home, entropy: Callable[[int], bytes]) -> bytes:
    """Written aside and linked into place: of two that make one at once, both end up with the same."""
    system.make_folder(home.path)
    aside = home.key.with_suffix(f".{entropy(4).hex()}")
    system.write_file(aside, f"{entropy(KEY_BYTES).hex()}\n".encode())
    try:
        with contextlib.suppress(FileExistsError):
            os.link(aside, home.key)
    finally:
        aside.unlink()
    system.sync_folder(home.path)
    key = _read(home)
    if key is None:
        raise BadSetting(f"{home.key} leads nowhere", hint="remove the link, or make what it names")
    return key
