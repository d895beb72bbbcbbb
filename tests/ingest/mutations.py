"""Files made wrong in every way that was thought of, the same ones each time: a seed says which.

Gentle ways leave every value as it is (lines dropped, repeated, swapped, cut off, glued together); harsh ones do not.
"""

import contextlib
import io
import json
import zipfile
import zlib

import zstandard

ODD = [
    None, True, 0, -1, 1.5, 1e308, -0.0, 10**30, 2**63, -(2**70), "", "x", "0", "\x00", "\ud800", "a\ud83dz", "ß" * 300,
    " \n\t", "null", "1e999", [], {}, [[]], [None], [1, "a", {}], {"": ""}, {"type": 7}, {"text": []}, [{"type": None}],
    {"id": {"id": 1}}, "2026-13-45T99:99:99Z", "../../../etc/passwd", "/etc/passwd", "{", "[Request inter", "\\u0000",
]  # fmt: skip
DEPTHS = (50, 300, 900, 1100, 3000, 100_000)
MARKS = (
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xff\xfe\x00\x00",
    b"\x28\xb5\x2f\xfd",
    b"\x1f\x8b",
    b"PK\x03\x04",
)


# --- bytes ------------------------------------------------------------------------------------------------------------


def _span(rng, body, longest=200):
    start = rng.randrange(len(body) + 1)
    return start, min(len(body), start + rng.randrange(1, longest))


def flip(rng, body, _):
    """Some bits."""
    made = bytearray(body)
    for _i in range(rng.randrange(1, 6)):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def insert(rng, body, _):
    """Some bytes of any kind."""
    at = rng.randrange(len(body) + 1)
    return body[:at] + rng.randbytes(rng.randrange(1, 40)) + body[at:]


def insert_text(rng, body, _):
    """Something that means something to somebody."""
    at = rng.randrange(len(body) + 1)
    some = (
        b"\x00",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\r",
        b"\n",
        b"\\ud800",
        b'"',
        b"{",
        b"]",
        b"}}}}",
        b"NaN",
        b"-Infinity",
    )
    return body[:at] + rng.choice(some) * rng.choice((1, 1, 2, 50)) + body[at:]


def delete(rng, body, _):
    """Some of it."""
    start, end = _span(rng, body)
    return body[:start] + body[end:]


def repeat(rng, body, _):
    """Some of it, once more."""
    start, end = _span(rng, body, 2000)
    return body[:end] + body[start:end] + body[end:]


def splice(rng, body, other):
    """The beginning of one file and the end of another."""
    return body[: rng.randrange(len(body) + 1)] + other[rng.randrange(len(other) + 1) :]


def mark(rng, body, _):
    """A mark of an encoding, or of something else, before it."""
    return rng.choice(MARKS) + body


def recode(rng, body, _):
    """Another encoding."""
    text = body.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "utf-8-sig")), "replace")


def deepen(rng, body, _):
    """Nested as deep as it goes, in the place of something."""
    depth, (opens, closes) = rng.choice(DEPTHS), rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    nest = opens * depth + b"1" + closes * depth * rng.choice((0, 1, 1))
    at = body.find(b":", rng.randrange(len(body)))
    return body[: at + 1] + nest + b"," + body[at + 1 :] if at > 0 else nest


def lengthen(rng, body, _):
    """A very long text in the place of something."""
    at = body.find(b'"', rng.randrange(len(body)))
    return body[: at + 1] + rng.choice((b"a", b"\\n", "é".encode(), b" ")) * 100_000 + body[at + 1 :]


# --- lines: gentle ----------------------------------------------------------------------------------------------------


def truncate(rng, body, _):
    """Cut off anywhere."""
    return body[: rng.randrange(len(body) + 1)]


def drop_lines(rng, body, _):
    """Without some lines."""
    return b"".join(each for each in body.splitlines(keepends=True) if rng.random() > 0.2)


def double_lines(rng, body, _):
    """Some lines twice."""
    return b"".join(each * (1 + (rng.random() < 0.2)) for each in body.splitlines(keepends=True))


def swap_lines(rng, body, _):
    """Two lines in each other's place, once or often."""
    found = body.splitlines(keepends=True)
    for _i in range(rng.choice((1, 3, 20))):
        a, b = rng.randrange(len(found)), rng.randrange(len(found))
        found[a], found[b] = found[b], found[a]
    return b"".join(found)


def glue_lines(rng, body, _):
    """Lines with nothing between them."""
    return b"".join(each if rng.random() > 0.3 else each.rstrip(b"\n") for each in body.splitlines(keepends=True))


def end_lines(rng, body, _):
    """Lines that end in another way, or are blank."""
    return body.replace(b"\n", rng.choice((b"\r\n", b"\n\n", b"\r\n\r\n", b" \n", b"\n\t\n")))


def twice(rng, body, _):
    """The whole file, and again."""
    return body + rng.choice((b"", b"\n")) + body


# --- values -----------------------------------------------------------------------------------------------------------


def _places(value, found):
    """Every place in a value: what holds it, and under which key."""
    each = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in each:
        found.append((value, key))
        _places(inner, found)
    return found


def _change(rng, value):
    """Other values in the place of some."""
    places = _places(value, [])
    for _i in range(rng.choice((1, 1, 1, 2, 5)) if places else 0):
        holder, key = rng.choice(places)
        if isinstance(holder, list):
            if key < len(holder):
                holder[key] = rng.choice(ODD)
        elif key in holder:
            _change_member(rng, holder, key, rng.choice(places))


def _change_member(rng, holder, key, elsewhere):
    """An odd value, none, the same under another name, or that of another place."""
    act = rng.randrange(6)
    if act < 3:
        holder[key] = rng.choice(ODD)
    elif act == 3:
        del holder[key]
    elif act == 4:
        holder[rng.choice(("", "type", "id", f"{key}x", "message"))] = holder.pop(key)
    else:
        other, there = elsewhere
        if isinstance(other, dict) and there in other:
            holder[key] = json.loads(json.dumps(other[there]))


def change_values(rng, body, _):
    """Values of other types, missing or misplaced, in a file that is JSON otherwise."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        found = body.splitlines()
        for _i in range(rng.choice((1, 2, 10))):
            at = rng.randrange(len(found))
            try:
                line = json.loads(found[at])
            except (ValueError, RecursionError):
                continue
            _change(rng, line)
            found[at] = json.dumps(line, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        return b"\n".join(found) + b"\n"
    _change(rng, value)
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


GENTLE = (truncate, drop_lines, double_lines, swap_lines, glue_lines, end_lines, twice)
HARSH = (flip, insert, insert_text, delete, repeat, splice, mark, recode, deepen, lengthen, *[change_values] * 12)


# --- compressed and packed files --------------------------------------------------------------------------------------

_ZSTD = b"\x28\xb5\x2f\xfd"
_BROKEN = (
    zstandard.ZstdError,
    zipfile.BadZipFile,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    zlib.error,
)


def mutated(rng, body, other, ways):
    """The file, made wrong in one of these ways; of what is compressed or packed, sometimes what is inside."""
    if not body:
        return body
    act = rng.choice(ways)
    if rng.random() < 0.8 and body.startswith((_ZSTD, b"PK")):
        with contextlib.suppress(*_BROKEN):  # it was made wrong before
            return _inside(rng, body, act, other)
    return act(rng, body, other)


def _inside(rng, body, act, other):
    if body.startswith(b"PK"):
        return _repacked(rng, body, act, other)
    inside = zstandard.ZstdDecompressor().stream_reader(body).read()
    return zstandard.ZstdCompressor(level=1).compress(act(rng, inside, other) if inside else b"")


def _repacked(rng, body, act, other):
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as archive, zipfile.ZipFile(made, "w") as out:
        chosen = rng.choice(archive.namelist())
        for name in archive.namelist():
            content = archive.read(name)
            out.writestr(zipfile.ZipInfo(name), act(rng, content, other) if name == chosen and content else content)
    return made.getvalue()
