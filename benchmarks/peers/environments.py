"""Where a peer lives: an environment of its own under .venv-peers, made on demand; ours for those that need nothing."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks import peers

ROOT = Path(__file__).resolve().parents[2]
_NOT_OURS = ("PYTHONPATH", "PYTHONPYCACHEPREFIX")  # pip has compiled what it installed


class NotInstalled(Exception):
    """This peer is left out; the message says why."""


def python(name: str) -> str:
    """The interpreter that has what the peer needs; installs it first if it must."""
    peer = peers.NAMES[name]
    if not peer.needs:
        if not peers.is_there(name):
            raise NotInstalled(f"{peer.package} is missing here: sh scripts/setup bench")
        return sys.executable
    return installed(peer.module, *peer.needs)


def installed(folder: str, *needs: str) -> str:
    """The interpreter of an environment that has these; makes it first if it must."""
    command = ["sh", str(ROOT / "scripts" / "setup"), "peer", folder, *needs]
    environ = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(_reason(done.stderr))
    return str(ROOT / ".venv-peers" / folder / "bin" / "python")


def _reason(said: str) -> str:
    """The line that says why: pip's first error, or else the last thing said."""
    lines = [each.strip() for each in said.splitlines() if each.strip()]
    errors = [each.removeprefix("ERROR: ") for each in lines if each.startswith("ERROR: ")]
    reason = (errors or lines[-1:] or ["scripts/setup said nothing"])[0]
    return reason.partition(" (from versions:")[0]  # hundreds of them


def environ(name: str) -> dict[str, str]:
    """The variables a process of the peer starts with: it finds the benchmarks, and nothing of our environment."""
    if not peers.NAMES[name].needs:
        there = os.environ.get("PYTHONPATH")
        return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [there])])}
    return apart()


def apart() -> dict[str, str]:
    """The variables of a process in an environment of its own."""
    kept = {key: value for key, value in os.environ.items() if key not in _NOT_OURS}
    return {**kept, "PYTHONPATH": str(ROOT)}
