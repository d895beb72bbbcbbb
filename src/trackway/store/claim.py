"""A journal's folder, from its first moment to its last: never seen unlocked by a name, never half removed.

It is made under a hidden name, locked, and only then given its name; the segments go first when it is removed, since a
folder without segments holds nothing to lose. A writer's name is drawn at random and never used twice.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from trackway.schema.outside import is_thrown_in
from trackway.store import system
from trackway.store.home import Home, JournalFolder
from trackway.store.segment import HIDDEN

_TRIES: Final = 5


class Claim(NamedTuple):
    """A folder that is ours for as long as the descriptor of its lock is open."""

    writer: str
    folder: JournalFolder
    descriptor: int

    def release(self) -> None:
        """Let go: from now on another process may take the folder for a dead one's."""
        os.close(self.descriptor)


def claim(home: Home, about: dict[str, Any], entropy: Callable[[int], bytes]) -> Claim:
    """Make a folder for a new writer; ``about`` is written down for whoever finds it later."""
    system.make_folder(home.path)
    system.make_folder(home.journals)
    for _ in range(_TRIES - 1):
        # An adopter that finds the folder in the moment before it is locked takes it for a dead one's.
        with contextlib.suppress(FileNotFoundError):
            return _claim(home, about, entropy(8).hex())
    return _claim(home, about, entropy(8).hex())


def _claim(home: Home, about: dict[str, Any], writer: str) -> Claim:
    hidden = home.unnamed(writer)
    try:
        return _claimed(home, hidden, about, writer)
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            error.filename = None
            system.name_place(error, home.journals)  # a hidden name that is nowhere tells nobody anything
        raise


def _claimed(home: Home, hidden: JournalFolder, about: dict[str, Any], writer: str) -> Claim:
    hidden.path.mkdir(mode=system.FOLDER_MODE)
    descriptor = -1
    try:
        descriptor = system.open_lock(hidden.lock)
        system.lock(descriptor, exclusive=True, wait=True)
        write_card(Claim(writer, hidden, descriptor), about)
        folder = home.journal(writer)
        hidden.path.rename(folder.path)
    except BaseException:
        if descriptor >= 0:
            os.close(descriptor)
        remove_folder(hidden)
        raise
    return Claim(writer, folder, descriptor)


def write_card(held: Claim, about: dict[str, Any]) -> None:
    """Who writes here, for whoever finds the journal: all of it, or no card."""
    # Whoever could not lock says so: that nobody holds it does not make it a dead one's.
    locked = system.try_lock(held.descriptor, exclusive=True, wait=True) is not None
    card = system.create_file(held.folder.about)
    try:
        system.write_all(card, json.dumps({"writer": held.writer, "locked": locked, **about}).encode())
    except BaseException:
        held.folder.about.unlink(missing_ok=True)
        raise
    finally:
        os.close(card)


def claim_again(home: Home, about: dict[str, Any], lost: Claim) -> Claim:
    """A folder of the same name for the same living writer, whose own was removed under it."""
    system.make_folder(home.path)
    system.make_folder(home.journals)
    if lost.folder.path.is_dir():  # only some of its files were removed, the lock among them
        descriptor = system.open_lock(lost.folder.lock)
        system.lock(descriptor, exclusive=True, wait=True)
        held = Claim(lost.writer, lost.folder, descriptor)
    else:
        held = _claim(home, about, lost.writer)
    lost.release()
    return held


def remove_folder(folder: JournalFolder) -> None:
    """Unlink a journal's files and its folder."""
    for path in folder.segments():
        path.unlink(missing_ok=True)
    for path in (*folder.path.glob(f"*{HIDDEN}"), folder.about, folder.lock):
        path.unlink(missing_ok=True)
    try:
        folder.path.rmdir()
    except OSError as error:  # somebody else's file is in it, or it is gone
        if is_thrown_in(error):
            raise
