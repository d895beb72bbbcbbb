"""The index over its life: fed with what is new, made anew where it cannot be used, purged of what is gone."""

import json
import shutil

import pytest

import trackway
from tests.search.asking import answer, indexed, places, said
from trackway.schema import ids
from trackway.search.index import FORMAT, opened, place_of
from trackway.store.base import Batch
from trackway.testing.events import records, small_episode


def searcher(home, store=None):
    """The index as it was committed."""
    with trackway.open_store(store, home=home) as live:
        index = opened(place_of(live))
    return None if index is None else index.searcher()


def files(home):
    """The names of the engine's files that hold words."""
    return {each.name for each in (home / "search/own/index").iterdir() if each.suffix == ".term"}


# --- fed ------------------------------------------------------------------------------------------------------------


def test_only_what_is_new_is_taken_in(home):
    """A second time nothing, then the events that came since, from the first call that had no result."""
    with trackway.Recorder(home) as recorder:
        episode = recorder.start("grows")
        episode.text("one")
        call = episode.tool_call("bash", {"cmd": "sleep"})
        recorder.flush()
        assert indexed(home).events == 3
        assert indexed(home).events == 0
        episode.tool_result(call, "woke up", is_error=True)
        recorder.flush()
        assert indexed(home).events == 2
    assert places(home, "error:true") == {"grows": [2, 3]}
    assert searcher(home).num_docs == 4 + 2, "four events, and what each commit says of itself"


def test_a_little_is_not_worth_a_commit(home):
    """A few events that came since are found from memory; the folder is as it was."""
    said(home, "before")
    indexed(home)
    before = files(home)
    said(home, "after", task="later")

    assert places(home, "after") == {"later": [1]}
    assert files(home) == before


def test_the_first_search_makes_the_index(home):
    """For its owner only; nobody has to be told."""
    said(home, "hello")

    assert places(home, "hello") == {"talk": [1]}
    found = [home / "search", *(home / "search").rglob("*")]
    assert [each for each in found if each.stat().st_mode & 0o077] == []
    assert searcher(home).num_docs > 0


def test_every_store_has_an_index_of_its_own(home, tmp_path):
    """What is recorded into one is not found in another, though the home is the same."""
    said(home, "mine")
    other = tmp_path / "other.db"
    with trackway.Recorder(home, store=other) as recorder:
        recorder.start("theirs").text("theirs alone")

    assert places(home, "theirs", store=other) == {"theirs": [0, 1]}
    assert places(home, "theirs") == {}
    assert places(home, "mine", store=other) == {}
    assert len([each for each in (home / "search").iterdir() if each.is_dir()]) == 2


def test_a_home_that_moved_keeps_its_index(home):
    """The home's own store is known by being that, not by its path."""
    said(home, "hello")
    indexed(home)
    moved = home.with_name("moved")
    home.rename(moved)

    assert indexed(moved).events == 0
    assert places(moved, "hello") == {"talk": [1]}


def test_a_store_in_memory_is_searched_in_memory(home):
    """It has no files, and neither has its index."""
    from trackway.store.memory import MemoryStore

    store = MemoryStore()
    with trackway.Recorder(home, store=store) as recorder:
        recorder.start("in memory").text("hello")

    assert places(home, "hello", store=store) == {"in memory": [1]}
    assert not (home / "search").exists()


# --- not the same any more ------------------------------------------------------------------------------------------


def _stored(home, number, *texts):
    from trackway.schema.events import AssistantText, EpisodeStart, Header

    name = ids.uuid7(10**18, bytes([number]) * 10)
    events = [EpisodeStart(header=Header(task=f"t{number}"), writer="w", n=0, at=len(texts[0]))]
    events += [AssistantText(content=text, writer="w", n=n, at=len(text)) for n, text in enumerate(texts, start=1)]
    with trackway.open_store(home=home) as live:
        live.seal(Batch(list(records(name, events))))
    return name


def test_an_episode_that_was_recorded_anew(home):
    """Deleted and there again under its id, with as many events: what was said before is not found any more."""
    name = _stored(home, 1, "old words", "and more of them")
    indexed(home)
    with trackway.open_store(home=home) as live:
        live.drop([name])
    indexed(home)
    _stored(home, 1, "new words!", "and more of those")

    assert places(home, "old") == {}
    assert places(home, "new") == {"t1": [1]}


def test_a_store_put_back_from_a_backup(home):
    """Fewer events, or others in their place: the index is what the store is."""
    said(home, "first", task="a")
    store = home / "store.db"
    shutil.copy(store, home / "backup.db")
    grows = said(home, "second", task="b")
    indexed(home)
    (home / "backup.db").replace(store)

    assert places(home, "second") == {}
    assert places(home, "first") == {"a": [1]}
    said(home, "third", task="c")
    assert places(home, "third") == {"c": [1]}
    assert grows not in {each.episode.id for each in answer(home, "kind:text").groups}


def test_an_episode_that_shrank_is_taken_in_again(home):
    """Restored to an earlier state, under the same file: seen by its count."""
    name = _stored(home, 2, "one", "two", "three")
    indexed(home)
    with trackway.open_store(home=home) as live:
        live.drop([name])
    _stored(home, 2, "one")

    assert places(home, "kind:text") == {"t2": [1]}


# --- made anew ------------------------------------------------------------------------------------------------------


def _cut(home):
    for each in (home / "search/own/index").iterdir():
        each.write_bytes(each.read_bytes()[: each.stat().st_size // 2])


def _zeroed(home):
    for each in (home / "search/own/index").glob("*.idx"):
        each.write_bytes(bytes(each.stat().st_size))


def _emptied(home):
    for each in (home / "search/own/index").iterdir():
        each.unlink()


def _foreign(home):
    shutil.rmtree(home / "search/own")
    (home / "search/own").mkdir()
    (home / "search/own/index").mkdir()
    (home / "search/own/index/notes.txt").write_text("somebody's")


def _newer(home):
    about = home / "search/own/about.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "format": FORMAT + 1}))


def _no_json(home):
    (home / "search/own/about.json").write_text("{")


def _a_file(home):
    shutil.rmtree(home / "search/own")
    (home / "search/own").write_text("in the way")


@pytest.mark.parametrize("harm", [_cut, _zeroed, _newer, _no_json, _foreign, _emptied])
def test_what_cannot_be_used_is_made_anew(home, harm):
    """Damaged, foreign or newer: one note, the right answer, and the next question has an index again."""
    said(home, "hello")
    indexed(home)
    harm(home)

    found = answer(home, "hello")

    assert [each.episode.task for each in found.groups] == ["talk"]
    assert len(found.notes) == (0 if harm is _emptied else 1), found.notes
    assert answer(home, "hello").notes == ()
    assert searcher(home).num_docs > 0


def test_a_folder_that_was_removed_is_made_anew(home):
    """It is derived: removing it costs the time to make it again, and nothing is said."""
    said(home, "hello")
    indexed(home)
    shutil.rmtree(home / "search")

    assert places(home, "hello") == {"talk": [1]}
    assert searcher(home).num_docs > 0


def test_an_index_that_cannot_be_made_is_done_without(home):
    """A file stands in its place: the answer comes from memory, and says so."""
    said(home, "hello")
    (home / "search").mkdir()
    (home / "search/own").write_text("in the way")

    found = answer(home, "hello")

    assert [each.episode.task for each in found.groups] == ["talk"]


def test_every_byte_may_be_wrong(home):
    """Whatever single byte of the index is flipped: an answer, never an exception; made anew, it is the right one."""
    import random

    for number in range(5):
        said(home, f"hello number{number}", "the end", task=f"t{number}")
    indexed(home)
    drawn = random.Random(1)
    shutil.copytree(home / "search", home / "kept")
    for _ in range(25):
        path = drawn.choice([each for each in sorted((home / "search/own/index").iterdir()) if each.stat().st_size])
        body = bytearray(path.read_bytes())
        body[drawn.randrange(len(body))] ^= 1 << drawn.randrange(8)
        path.write_bytes(body)
        answer(home, "hello")
        answer(home, '"the end" kind:text')
        shutil.rmtree(home / "search")
        shutil.copytree(home / "kept", home / "search")


# --- purged ---------------------------------------------------------------------------------------------------------


def purged(home, names):
    """Prune these for good, as the command does."""
    from trackway.search.catching_up import catch_up

    with trackway.open_store(home=home) as live:
        live.drop(names)
        return catch_up(live, purge_only=True)


def words_in(home, word):
    """How many documents have a word, deleted ones included: whether it is in any file of the index."""
    return searcher(home).doc_freq("text", word)


def test_what_is_pruned_is_in_no_file(home):
    """Its words are gone from the dictionaries, not only marked; its neighbours are found as before."""
    for number in range(4):
        said(home, f"common unique{number}", task=f"t{number}")
    indexed(home)
    before = files(home)
    with trackway.open_store(home=home) as live:
        (gone,) = [each.id for each in live.episodes() if each.task == "t1"]
    assert words_in(home, "unique1") == 1

    purged(home, [gone])

    assert words_in(home, "unique1") == 0
    assert files(home).isdisjoint(before)
    assert set(places(home, "common")) == {"t0", "t2", "t3"}
    assert words_in(home, "unique2") == 1


def test_only_what_shares_a_segment_is_put_in_again(home):
    """What was indexed in another commit stays where it is."""
    said(home, "old unique0", task="old")
    indexed(home)
    before = files(home)
    gone = said(home, "new unique1", task="new")
    indexed(home)

    assert purged(home, [gone]).events == 0
    assert before <= files(home)
    assert words_in(home, "unique1") == 0
    assert places(home, "old") == {"old": [0, 1]}


def test_what_was_taken_out_before_goes_too(home):
    """An episode that was indexed piece by piece has left deleted copies behind: they are purged with it."""
    with trackway.Recorder(home) as recorder:
        other = recorder.start("other")
        other.text("stays")
        episode = recorder.start("goes")
        for _ in range(3):
            call = episode.tool_call("bash", {"cmd": "secretword"})
            recorder.flush()
            indexed(home)
            episode.tool_result(call, "ok")
        episode.end("success")
        other.end("success")
    indexed(home)
    assert words_in(home, "secretword") > 3

    purged(home, [episode.id])

    assert words_in(home, "secretword") == 0
    assert places(home, "stays") == {"other": [1]}


def test_whoever_searches_purges_what_went_otherwise(home):
    """Episodes that were dropped without the command are out of the index with the next catching up."""
    gone = said(home, "unique7", task="goes")
    said(home, "stays", task="stays")
    indexed(home)
    with trackway.open_store(home=home) as live:
        live.drop([gone])

    assert places(home, "unique7") == {}
    assert words_in(home, "unique7") == 0


def test_a_purge_makes_no_index(home):
    """Where nobody has searched there is nothing to purge."""
    gone = said(home, "hello")
    purged(home, [gone])

    assert not (home / "search").exists()


def test_prune_purges(home):
    """The command takes episodes out of the index too."""
    from click.testing import CliRunner

    from trackway.cli import main

    said(home, "unique1", task="goes")
    said(home, "unique2", task="stays")
    indexed(home)
    done = CliRunner().invoke(main, ["prune", "--task", "goes", "--yes"])

    assert done.exit_code == 0, done.output
    assert (words_in(home, "unique1"), words_in(home, "unique2")) == (0, 1)


def test_a_small_episode_is_found_by_any_of_its_words(home):
    """The ready-made one of ``trackway.testing``, sealed without a journal."""
    name = ids.uuid7(10**18, bytes(10))
    with trackway.open_store(home=home) as live:
        live.seal(Batch(list(records(name, small_episode()))))

    assert places(home, "pytest error:true") == {"fix the flaky test": [2]}
    assert places(home, "failed") == {"fix the flaky test": [3]}
