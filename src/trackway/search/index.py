"""The index itself: where it is, what a document holds, how it is opened, and what to do when it cannot be.

Derived and droppable: a folder that is damaged, another program's or of another version is made anew, never guessed at.
Text is not stored in it. A document says which event it is (episode and number); what is shown is read from the store.
Whoever writes holds the lock beside the folder; readers take none and see the last commit.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from trackway.errors import SearchUnavailable, TrackwayError
from trackway.schema.canonical import hash_bytes
from trackway.search import words
from trackway.store import system
from trackway.store.live import LiveStore

if TYPE_CHECKING:
    import tantivy

FORMAT: Final = 1
"""Raised with every change of what a document holds or how words are made: an older index is then made anew."""

STATE: Final = "~state"
"""The kind of the documents that say how far the index has come; no event has it."""

_OWN: Final = "own"
_MEMORY: Final = "memory:"
_TOKENIZERS: Final = {"words": words.indexing, "exact": words.exact}


class Place(NamedTuple):
    """The files of one store's index."""

    folder: Path

    @property
    def lock(self) -> Path:
        """Held by whoever writes; beside the folder, which may go."""
        return self.folder.with_name(f"{self.folder.name}.lock")

    @property
    def about(self) -> Path:
        """Which format, and of which store: for us and for people."""
        return self.folder / "about.json"

    @property
    def engine(self) -> Path:
        """The engine's own files."""
        return self.folder / "index"

    @property
    def seen(self) -> Path:
        """What the store looked like when all of it was in the index; droppable on its own."""
        return self.folder / "seen.json"


def place_of(live: LiveStore) -> Place | None:
    """Where the index of a store is: in the home, one folder a store. A store in memory has none."""
    if live.key.startswith(_MEMORY):
        return None
    name = _OWN if live.key == live.home.store_key else hash_bytes(live.key.encode()).rpartition(":")[2][:16]
    return Place(live.home.search / name)


# --- what the engine raises -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def engine(doing: str) -> Iterator[None]:
    """The engine is called inside: whatever it raises, a panic of its own included, is said in our words."""
    try:
        yield
    except TrackwayError:
        raise
    except Exception as error:
        raise unfit(f"{doing}: {_first_line(error)}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # its class has no name to import it by
            raise
        raise unfit(f"{doing}: {_first_line(error)}") from error


def unfit(why: str) -> SearchUnavailable:
    """An index that cannot be used as it is."""
    hint = "see the room on the disk and whose files these are; the home's search folder may be removed at any time"
    return SearchUnavailable(f"the search index cannot be used: {why}", hint=hint, why=why)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


# --- opening ----------------------------------------------------------------------------------------------------------


@cache
def schema() -> tantivy.Schema:
    """What a document holds. Stored is only the episode's id; whatever is sorted and grouped by is a column."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="words", index_option="position")
    builder.add_text_field("episode", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("key", indexed=True, fast=True)
    builder.add_unsigned_field("seq", indexed=True, fast=True)
    builder.add_integer_field("at", fast=True)
    for name in ("kind", "tool", "agent", "source", "path"):
        builder.add_text_field(name, tokenizer_name="exact", index_option="basic")
    builder.add_boolean_field("error", indexed=True)
    builder.add_bytes_field("state", stored=True)
    return builder.build()


def in_memory() -> tantivy.Index:
    """An index that lives and dies with its object."""
    import tantivy

    return _with_tokenizers(tantivy.Index(schema()))


def opened(place: Place) -> tantivy.Index | None:
    """The index as it was last committed; None where there is none; raises ``SearchUnavailable``."""
    import tantivy

    with engine("it cannot be opened"):
        if not _is_of_this_format(place) or not tantivy.Index.exists(str(place.engine)):
            return None
        return _with_tokenizers(tantivy.Index.open(str(place.engine)))


def _is_of_this_format(place: Place) -> bool:
    try:
        about = json.loads(place.about.read_bytes())
    except FileNotFoundError:
        if place.engine.exists():
            raise unfit("it does not say what it is") from None
        return False
    except (OSError, ValueError, RecursionError) as error:
        raise unfit(f"it does not say what it is ({error})") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        said = about.get("format") if isinstance(about, dict) else about
        raise unfit(f"it is format {said}, not {FORMAT}")
    return True


def made(place: Place, store_key: str) -> tantivy.Index:
    """A new and empty index in place of whatever is there. Call while holding the lock."""
    import tantivy

    shutil.rmtree(place.folder, ignore_errors=True)
    with engine("it cannot be made"):
        system.make_folder(place.engine.parent.parent)
        system.make_folder(place.engine.parent)
        system.make_folder(place.engine)
        index = tantivy.Index(schema(), path=str(place.engine), reuse=False)
        system.write_file(place.about, json.dumps({"format": FORMAT, "store": store_key}).encode())
        for_the_owner(place)
    return _with_tokenizers(index)


def _with_tokenizers(index: tantivy.Index) -> tantivy.Index:
    for name, make in _TOKENIZERS.items():
        index.register_tokenizer(name, make())
    index.config_reader("manual")  # else a thread looks for new commits
    return index


def for_the_owner(place: Place) -> None:
    """The engine makes files as the umask says; nobody else may look into ours."""
    with contextlib.suppress(FileNotFoundError), os.scandir(place.engine) as files:
        for each in files:
            with contextlib.suppress(FileNotFoundError):  # merged away meanwhile
                if each.stat().st_mode & 0o077:
                    Path(each.path).chmod(system.FILE_MODE)
