"""What a user has: found where each source keeps its files, counted without being read."""

import os
from pathlib import Path

import pytest

from trackway.ingest.discovery import discover
from trackway.ingest.source import Source
from trackway.ingest.sources import all_sources


def made(folder, name, size=10):
    """A file of that many bytes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def source(*folders):
    """A source whose files are in these folders."""
    return Source(
        name="boats", title="Boats", detect=lambda _: None, read=iter, looked_for="", homes=lambda *_: folders
    )


def test_nothing_is_found_where_there_is_nothing(tmp_path):
    """An empty home has no history, and no source is named."""
    assert discover(tmp_path, {}) == []


def test_every_client_is_found_where_it_keeps_its_sessions(tmp_path):
    """A home with the folders of several clients: each with its files and their bytes."""
    made(tmp_path, ".pi/agent/sessions/--tmp--/a_1.jsonl", 100)
    made(tmp_path, ".pi/agent/sessions/--tmp--/b_2.jsonl", 50)
    made(tmp_path, ".local/share/opencode/storage/session/p/ses_1.json", 7)
    made(tmp_path, ".local/share/opencode/auth.json", 900)
    made(tmp_path, ".qwen/projects/p/chats/x.jsonl", 5)
    made(tmp_path, ".copilot/session-state/x/events.jsonl", 6)
    made(tmp_path, ".cursor/projects/p/agent-transcripts/x/x.jsonl", 8)
    found = {each.source.name: (each.files, each.bytes) for each in discover(tmp_path, {})}
    assert {name: found[name] for name in ("pi", "opencode", "qwen", "copilot", "cursor")} == {
        "pi": (2, 150), "opencode": (1, 7), "qwen": (1, 5), "copilot": (1, 6), "cursor": (1, 8),
    }  # fmt: skip


def test_variables_say_where_else(tmp_path):
    """The environment is the caller's to give: nothing is taken from this process's."""
    made(tmp_path, "elsewhere/sessions/a.jsonl")
    (found,) = discover(tmp_path, {"PI_CODING_AGENT_DIR": str(tmp_path / "elsewhere")})
    assert (found.source.name, found.folders) == ("pi", [tmp_path / "elsewhere/sessions"])


def test_only_files_that_may_hold_episodes_are_counted(tmp_path):
    """By how their names end, compressed or not; folders of tools and caches are passed by."""
    for name in ("a.jsonl", "b.json", "sub/c.jsonl.zst", "d.ndjson", "e.jsonl.gz"):
        made(tmp_path, name)
    for name in ("f.md", "g.db", "h.png", "jsonl", "node_modules/i.json", ".git/j.json"):
        made(tmp_path, name)
    (found,) = discover(tmp_path, {}, [source(tmp_path)])
    assert (found.files, found.bytes, found.unreadable) == (5, 50, ())


def test_links_are_not_followed_and_folders_named_twice_are_counted_once(tmp_path):
    """A loop is not entered; a folder that is a link itself is looked into, as its owner meant it to be."""
    made(tmp_path, "real/a.jsonl")
    (tmp_path / "real/loop").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "real/b.jsonl").symlink_to(tmp_path / "real/a.jsonl")
    (tmp_path / "named").symlink_to(tmp_path / "real", target_is_directory=True)
    (found,) = discover(tmp_path, {}, [source(tmp_path / "named", tmp_path / "real", tmp_path)])
    assert found.files == 1


def test_what_cannot_be_looked_into_is_told(tmp_path):
    """A folder that is gone, or closed, does not stop the others."""
    made(tmp_path, "open/a.jsonl")
    (found,) = discover(tmp_path, {}, [source(tmp_path / "gone", tmp_path / "open")])
    assert (found.files, found.unreadable) == (1, (str(tmp_path / "gone"),))


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_closed_folder_is_told(tmp_path):
    """Its name is said, the rest is counted."""
    made(tmp_path, "closed/a.jsonl")
    made(tmp_path, "b.jsonl")
    (tmp_path / "closed").chmod(0)
    try:
        (found,) = discover(tmp_path, {}, [source(tmp_path)])
    finally:
        (tmp_path / "closed").chmod(0o700)
    assert (found.files, found.unreadable) == (1, (str(tmp_path / "closed"),))


def test_a_source_that_may_not_look_finds_nothing():
    """What a folder above refuses is none of this user's; the other sources are asked all the same."""

    def closed(_home, _environ):
        raise PermissionError("/root")

    broken = source()._replace(homes=closed)
    assert discover(Path("/nowhere"), {}, [broken, source()]) == []


def test_no_source_names_a_folder_that_is_not_there(tmp_path):
    """Each says what is there, and says it without raising, whatever stands in its way."""
    (tmp_path / ".cursor").write_text("a file where a folder should be")
    (tmp_path / ".gemini").write_text("")
    for each in all_sources():
        if each.homes is not None:
            assert all(Path(one).is_dir() for one in each.homes(tmp_path, {})), each.name
