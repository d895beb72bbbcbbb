"""`python -m benchmarks.converters NAME SOURCE LOOK FILE …`: what another program makes of sessions, in its own Python.

It imports this package and the standard library only, reads the files on one core, and answers in JSON: seconds, peak
memory, the files it failed on, and with ``look`` how much of what was in the first is in what it made.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import memory
from benchmarks.measure import answer_alone, one_core


class Converter(NamedTuple):
    """Another program: the package it is in, where it is installed, and what it calls the formats it knows."""

    package: str
    folder: str
    needs: str
    formats: dict[str, str]


CONVERTERS = {
    "claude-converter": Converter(
        "claude-converter", "claude_converter", "claude-converter>=1.9,<2",
        {"claude_code": "claude-code", "codex": "codex", "pi": "pi"},
    ),
    "teich": Converter("teich", "teich", "teich>=0.3.6,<0.4", {"claude_code": "", "codex": "", "pi": ""}),
}  # fmt: skip


def _claude_converter(path: Path, kind: str) -> Any:
    from claude_converter import Converter as Theirs

    return Theirs(converter=kind).session_to_messages(str(path))


def _teich(path: Path, _: str) -> Any:
    from teich.converter import convert_traces_to_training_data

    return convert_traces_to_training_data(path)


_ACT: dict[str, Callable[[Path, str], Any]] = {"claude-converter": _claude_converter, "teich": _teich}


def marks(path: Path) -> dict[str, list[str]]:
    """What a file of Claude Code holds that can be looked for again."""
    found: dict[str, list[str]] = {"call ids": [], "results, word for word": [], "signatures": [], "entries": []}
    for block, entry in _blocks(path):
        if block.get("type") == "tool_use":
            found["call ids"].append(block["id"])
        elif block.get("type") == "thinking":
            found["signatures"].append(block["signature"])
        elif block.get("type") == "tool_result":
            found["results, word for word"].append(block["content"])
        found["entries"].append(entry["uuid"])
    return {name: list(dict.fromkeys(each)) for name, each in found.items()}


def _blocks(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    with path.open() as file:
        for line in file:
            entry = json.loads(line)
            content = entry["message"]["content"]
            for block in content if isinstance(content, list) else [{}]:
                yield block, entry


def kept(path: Path, made: str) -> dict[str, float]:
    """The part of each that is in what was made of the file."""
    return {
        name: sum(json.dumps(each)[1:-1] in made for each in wanted) / len(wanted)
        for name, wanted in marks(path).items()
    }


def tokens_of(made: Any) -> int | None:
    """The tokens that what was made says the session took; None where it says nothing of them."""
    rows = made if isinstance(made, list) else []
    told = [
        each["metadata"]["usage"] for each in rows if isinstance(each, dict) and "usage" in each.get("metadata", {})
    ]
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return sum(each.get(name, 0) for each in told for name in names) if told else None


def main() -> None:
    """Convert once, and answer."""
    answer = answer_alone()
    name, source, look, *paths = sys.argv[1:]
    one_core()
    act, kind, made, failed = _ACT[name], CONVERTERS[name].formats[source], None, 0
    act(Path(paths[0]), kind)  # what it imports, which takes seconds
    before, started = memory.reset(), time.process_time()
    for path in paths[1:]:
        try:
            made = act(Path(path), kind)
        except Exception as error:  # noqa: BLE001  it is theirs, and may be any
            print(f"{path}: {error}", file=sys.stderr)
            failed += 1
    found: dict[str, Any] = {
        "seconds": time.process_time() - started,
        "memory": memory.peak() - before,
        "failed": failed,
        "version": metadata.version(CONVERTERS[name].package),
    }
    if look == "look":
        found["kept"] = kept(Path(paths[1]), json.dumps(made, default=str))
        found["tokens"] = tokens_of(made)
    os.write(answer, json.dumps(found).encode())


if __name__ == "__main__":
    main()
