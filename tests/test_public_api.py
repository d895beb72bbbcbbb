"""The public surface equals `api.txt`, so that a change to it is seen in review. `make golden` rewrites the file."""

import enum
import inspect
import re
import tomllib
from pathlib import Path

import trackway

HERE = Path(__file__).resolve().parent


class _Shown(str):
    """Text that a signature prints as it is."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


def _signature(function):
    """A signature in one spelling for every Python: no quotes round annotations, no addresses in defaults."""
    signature = inspect.signature(function)

    def annotation(value):
        if value is inspect.Signature.empty:
            return value
        return _Shown(value if isinstance(value, str) else inspect.formatannotation(value).replace("typing.", ""))

    def default(value):
        return value if value is inspect.Parameter.empty else _Shown(re.sub(r" at 0x\w+", "", repr(value)))

    parameters = [
        p.replace(annotation=annotation(p.annotation), default=default(p.default))
        for p in signature.parameters.values()
    ]
    returns = annotation(signature.return_annotation)
    return str(signature.replace(parameters=parameters, return_annotation=returns))


def _members(cls):
    """The public methods and properties a class has from trackway."""
    for found in inspect.classify_class_attrs(cls):
        if found.name.startswith("_") or not found.defining_class.__module__.startswith("trackway"):
            continue
        if found.kind == "property":
            yield f"    {found.name}: property"
        elif found.kind != "data":
            kind = "" if found.kind == "method" else f"{found.kind.replace(' ', '')} "
            yield f"    {kind}{found.name}{_signature(getattr(cls, found.name))}"


def _lines(name, value):
    if inspect.isclass(value):
        ours = getattr(value.__init__, "__module__", "").startswith("trackway")
        inherits = issubclass(value, (BaseException, enum.Enum)) and not ours  # spelt differently by each Python
        yield f"class {name}{'' if inherits else _signature(value)}"
        yield from _members(value)
    elif inspect.isroutine(value):
        yield f"{name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def test_surface_is_the_agreed_one(golden):
    """Every public name, with its signature and its public members, is in api.txt."""
    lines = [line for name in sorted(trackway.__all__) for line in _lines(name, getattr(trackway, name))]
    golden(HERE / "api.txt", "\n".join(lines) + "\n")


def test_surface_is_listed():
    """`__all__` is small, without repeats, and shown by `dir()`, lazy or not."""
    assert len(trackway.__all__) == len(set(trackway.__all__))
    assert len(trackway.__all__) < 40
    assert set(trackway.__all__) <= set(dir(trackway))


def test_version_is_said_once():
    """The version in the package is the one in pyproject.toml."""
    settings = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert trackway.__version__ == settings["project"]["version"]
