"""A process's memory and handles, as the kernel counts them; mapped files are counted in, as they are for whoever pays.

Where there is no ``/proc`` the figures are not a number, and no target is met by them.
"""

from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_HANDLES = Path("/proc/self/fd")


def now() -> float:
    """Megabytes in memory."""
    return _status("VmRSS")


def peak() -> float:
    """The most megabytes since ``reset``."""
    return _status("VmHWM")


def reset() -> float:
    """Begin to look for a peak; the megabytes to begin with."""
    if _RESET.exists():
        _RESET.write_text("5")
    return now()


def handles() -> int:
    """Open file descriptors."""
    return sum(1 for _ in _HANDLES.iterdir()) if _HANDLES.exists() else -1


def _status(name: str) -> float:
    if not _STATUS.exists():
        return float("nan")
    line = next(each for each in _STATUS.read_text().splitlines() if each.startswith(name))
    return int(line.split()[1]) / 1024


def told(megabytes: float) -> str:
    """To be read."""
    return f"{megabytes:,.0f} MB" if megabytes >= 10 else f"{megabytes:.1f} MB"
