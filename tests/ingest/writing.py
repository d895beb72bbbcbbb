"""How samples are written: lines, documents, times."""

import json

SESSION = "0b0a7000-0000-4000-8000-000000000001"


def lines(*values):
    """A file of lines."""
    return b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in values)


def document(value, indent=None):
    """A file that is one value."""
    return json.dumps(value, ensure_ascii=False, indent=indent).encode()


def at(second):
    """A time."""
    return f"2026-03-01T10:00:{second:02}.000Z"
