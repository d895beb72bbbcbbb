"""Files on their way to a name: written beside their place, locked while they are, swept up where nobody holds them.

The suffix is ours alone, so whoever writes next into the same folder may take away what a killed process left there,
whatever name that was meant for.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from trackway.schema.outside import is_thrown_in
from trackway.store import system

SUFFIX: Final = ".trackway.part"
LOCK: Final = "lock"


def sweep(folder: Path) -> int:
    """Remove what dead processes left half written in a folder; returns how many."""
    swept = 0
    try:
        left = list(folder.glob(f".*{SUFFIX}"))
    except OSError as error:
        if is_thrown_in(error):
            raise
        return 0
    for each in left:
        if not system.is_locked(each / LOCK if each.is_dir() else each):
            shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink(missing_ok=True)
            swept += 1
    return swept
