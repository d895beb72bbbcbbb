"""The shape of the source, checked with nothing but `ast`: layers, docstrings, sizes.

The order of the layers is read from the import-linter contract in pyproject.toml, so it is written down once.
import-linter follows chains of imports; this test also keeps the package root from being imported inside.
"""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "trackway"
MODULES = sorted(SRC.rglob("*.py"))
SOURCES = sorted(path for folder in (SRC, ROOT / "tests", ROOT / "benchmarks") for path in folder.rglob("*.py"))
MAY_IMPORT_ROOT = {"__main__", "testing"}
MAX_LINES = 500


def _layers():
    """Rank of each top-level package, highest layer first: `{"cli": 1, "serve": 2, "mcp": 2, ...}`."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    return {name.strip(" ()"): rank for rank, layer in enumerate(contract["layers"]) for name in layer.split("|")}


LAYERS = _layers()


def _layer(path):
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def _imports(path):
    """Line and dotted name of each import in a file; names taken from the root count as its modules if they are."""
    package = ("trackway", *path.relative_to(SRC).parts[:-1])
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            taken = [f"{base}.{alias.name}" for alias in node.names if base == "trackway" and alias.name in LAYERS]
            yield from ((node.lineno, name) for name in taken or [base])


def _wrong_way(path):
    """What is wrong with the imports of one file, as `line: reason`."""
    layer = _layer(path)
    for line, name in _imports(path):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if top != "trackway" or target == layer:
            continue
        if not target:
            if layer not in MAY_IMPORT_ROOT:
                yield f"{line}: imports the package root; import from the module"
        elif target not in LAYERS:
            yield f"{line}: {name} is in no layer"
        elif LAYERS[target] <= LAYERS[layer]:
            yield f"{line}: {layer} may not import {target}"


def _name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [path for path in MODULES if path != SRC / "__init__.py"], ids=_name)
def test_imports_point_down(path):
    """A module belongs to a layer and imports only from lower ones, never from a sibling or the package root."""
    assert _layer(path) in LAYERS, f"{_layer(path)} is in no layer of pyproject.toml"
    assert list(_wrong_way(path)) == []


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_module_states_its_idea(path):
    """A module opens with a docstring."""
    assert ast.get_docstring(ast.parse(path.read_bytes()))


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_file_is_small(path):
    """A file over the limit wants to be two."""
    assert len(path.read_bytes().splitlines()) <= MAX_LINES
