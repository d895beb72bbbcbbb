"""The generated parts of a page: what a command measured stands between two comments, and nothing else does.

So no figure is typed by hand: a part is replaced whole, and the text around it stays as it was written.
"""

from pathlib import Path


def write(page: Path, part: str, body: str) -> None:
    """Put ``body`` where the page keeps this part."""
    begin, end = f"<!-- begin: {part} (generated) -->", f"<!-- end: {part} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page}: has no place for this part; add the lines {begin!r} and {end!r}")
    page.write_text(f"{before}{begin}\n\n{body.strip()}\n\n{end}{after}", encoding="utf-8")


def printed(text: str) -> str:
    """What a command printed, as a block."""
    return f"```text\n{text.strip()}\n```"
