"""Pruning: what is chosen, what really goes, what is spared, and what the receipt says, also after a kill."""

import json
import os
import signal
import sqlite3
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackway.errors import BadSetting, EpisodeNotFound
from trackway.recording.recorder import Recorder
from trackway.recording.settings import open_store
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.store.base import Batch, Query
from trackway.store.choice import Criteria, choose
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.memory import MemoryStore
from trackway.store.prune import FAILPOINTS, prune
from trackway.store.retention import Retention, age_ns, size_bytes
from trackway.store.sqlite import SqliteStore
from trackway.testing.events import records

DAY = 86_400 * 10**9
NOW = 1_900_000_000_000_000_000
EVERYTHING = Criteria(limits=Retention(max_age="0s"))


def episode_id(number):
    """The id of the episode of that number."""
    return ids.uuid7(NOW - number * DAY, bytes([number]) * 10)


def sealed(store, number, *, tags=(), ended=True, content="", task="fix"):
    """Seal an episode that is ``number`` days old."""
    at, writer = NOW - number * DAY, f"{number:016x}"
    events = [
        kinds.EpisodeStart(header=kinds.Header(task=task, tags=tags, agent="demo"), writer=writer, n=0, at=at),
        kinds.ToolResult(call_id="c", content=content, writer=writer, n=1, at=at),
    ]
    if ended:
        events.append(kinds.EpisodeEnd(outcome="success", writer=writer, n=2, at=at))
    store.seal(Batch(records(episode_id(number), events)))
    return episode_id(number)


@pytest.fixture
def live(home):
    """A store in a home."""
    with LiveStore(Home(home), SqliteStore(home / "store.db")) as found:
        yield found


def chosen(live, **limits):
    """The ids a prune with these limits would take, oldest first."""
    return [each.id for each in choose(live, Criteria(limits=Retention(**limits)), NOW).going]


def left(live):
    """The ids in the store, newest first."""
    return [each.id for each in live.episodes()]


# --- choosing -------------------------------------------------------------------------------------------------------


def test_by_age_count_and_both(live):
    """Whatever any limit says goes; the oldest first."""
    found = [sealed(live, number) for number in range(1, 6)]

    assert chosen(live, max_age="3.5d") == [found[4], found[3]]
    assert chosen(live, max_episodes=1) == found[:0:-1]
    assert chosen(live, max_age="3.5d", max_episodes=4) == [found[4], found[3]]
    assert chosen(live, max_age="4.5d", max_episodes=3) == [found[4], found[3]]
    assert chosen(live, max_age="1y") == []


def test_filters_narrow_down(live):
    """Limits speak about what the filters let through; without a limit all of it goes."""
    fixes = [sealed(live, number) for number in (1, 3, 5)]
    others = [sealed(live, number, task="write") for number in (2, 4)]

    by_task = Criteria(query=Query(task="WRITE"))
    assert [each.id for each in choose(live, by_task, NOW).going] == others[::-1]
    newest_fix = Criteria(query=Query(task="fix"), limits=Retention(max_episodes=1))
    assert [each.id for each in choose(live, newest_fix, NOW).going] == [fixes[2], fixes[1]]
    assert choose(live, Criteria(query=Query(agent="nobody")), NOW).going == ()


def test_nothing_said_is_not_everything(live):
    """Criteria that say nothing are refused."""
    sealed(live, 1)

    with pytest.raises(BadSetting, match="nothing says what to prune"):
        prune(live, Criteria(), now=NOW)
    assert len(left(live)) == 1


def test_a_protecting_tag_keeps(live):
    """An episode tagged ``keep``, or with what is named instead, never goes; a label can tag it later."""
    kept, other = sealed(live, 9, tags=("keep",)), sealed(live, 8, tags=("gold",))
    labelled = sealed(live, 7)
    live.seal(Batch(records(labelled, [kinds.Label(tag="keep", n=5)])))

    plan = choose(live, EVERYTHING, NOW)
    assert ([each.id for each in plan.going], plan.spared) == ([other], {"protected": 2})
    assert chosen(live, max_age="0s", keep_tags=("gold",)) == [kept, labelled]


def test_age_counts_from_the_end(live):
    """A label given today does not make an old episode young; of one without an end the last event counts."""
    old = sealed(live, 9)
    live.seal(Batch(records(old, [kinds.Label(score=1.0, at=NOW, n=5)])))
    crashed = sealed(live, 8, ended=False)
    live.seal(Batch(records(crashed, [kinds.Note(topic="late", at=NOW - DAY, n=6)])))

    assert chosen(live, max_age="3d") == [old]
    assert chosen(live, max_age="12h") == [old, crashed]


def test_by_size_oldest_first(live):
    """The oldest go until the file is small enough, and it really is; a dry run has named them."""
    found = [sealed(live, number, content=os.urandom(60_000).hex()) for number in range(30, 0, -1)]
    live.store.checkpoint()
    limit = live.store.path.stat().st_size // 2
    plan = choose(live, Criteria(limits=Retention(max_size=limit)), NOW)

    receipt = prune(live, Criteria(limits=Retention(max_size=limit)), now=NOW)

    assert receipt.ids == tuple(each.id for each in plan.going) == tuple(found[: len(receipt.ids)])
    assert live.store.path.stat().st_size <= limit
    assert 10 < len(receipt.ids) < 20


def test_a_shared_blob_goes_with_the_last_who_needs_it(live):
    """What the dry run weighs is what goes, shared blobs counted once."""
    shared, own = os.urandom(50_000).hex(), os.urandom(50_000).hex()
    first, second, third = (
        sealed(live, 9, content=shared),
        sealed(live, 8, content=shared),
        sealed(live, 7, content=own),
    )

    plan = choose(live, Criteria(limits=Retention(max_age="7.5d")), NOW)
    assert [(each.id, each.weight.blobs) for each in plan.going] == [(first, 0), (second, 1)]
    receipt = prune(live, Criteria(limits=Retention(max_age="7.5d")), now=NOW)

    assert (receipt.events, receipt.blobs, receipt.bytes) == plan.total
    assert [each.weight.blobs for each in choose(live, EVERYTHING, NOW).going] == [1]
    assert left(live) == [third]


def test_other_stores_prune_too(home):
    """A store that is no file is pruned by the same rules; only its size is unknown."""
    live = LiveStore(Home(home), MemoryStore())
    sealed(live, 9)
    kept = sealed(live, 1)

    with pytest.raises(BadSetting, match="cannot tell its size"):
        choose(live, Criteria(limits=Retention(max_size="1MB")), NOW)
    receipt = prune(live, Criteria(limits=Retention(max_age="5d")), now=NOW)

    assert (len(receipt.ids), receipt.events, receipt.after) == (1, 3, None)
    assert left(live) == [kept]


@given(
    ages=st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True),
    kept=st.sets(st.integers(0, 40)),
    age=st.none() | st.integers(0, 40),
    count=st.none() | st.integers(0, 12),
)
def test_any_limits(tmp_path_factory, ages, kept, age, count):
    """The choice is what the definition says, for any ages, tags and limits; and exactly that goes."""
    live = LiveStore(Home(tmp_path_factory.mktemp("home")), MemoryStore())
    for number in ages:
        sealed(live, number, tags=("keep",) if number in kept else ())
    limits = Retention(max_age=None if age is None else f"{age}d", max_episodes=count)
    goes = [
        number
        for place, number in enumerate(sorted(ages))
        if number not in kept and ((age is not None and number > age) or (count is not None and place >= count))
    ]
    if limits.is_limit:
        assert prune(live, Criteria(limits=limits), now=NOW).ids == tuple(map(episode_id, reversed(goes)))
        assert left(live) == [episode_id(each) for each in sorted(ages) if each not in goes]


# --- what is written as people write it ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"), [("90d", 90 * 86_400), ("1.5h", 5400), (" 2 W ", 1_209_600), ("30m", 1800), ("0s", 0)]
)
def test_ages(text, seconds):
    """A length of time is a number and a unit."""
    assert age_ns(text) == seconds * 10**9


@pytest.mark.parametrize(
    ("text", "size"), [("5GB", 5 * 10**9), ("1.5 MiB", 3 << 19), (17, 17), ("17", 17), ("2k", 2000), ("1TB", 10**12)]
)
def test_sizes(text, size):
    """A size is a number and perhaps a unit; GB is ten to the ninth, GiB two to the thirtieth."""
    assert size_bytes(text) == size


@pytest.mark.parametrize(
    "said", ['max_age = "soon"', "max_episodes = -1", 'max_size = "big"', 'max_age = "-1d"', 'max_size = "1XB"']
)
def test_what_cannot_be_read_is_refused(said):
    """A limit that cannot be read is misuse, wherever it was written."""
    with pytest.raises(BadSetting):
        msgspec.toml.decode(said, type=Retention)


# --- what is spared --------------------------------------------------------------------------------------------------


def test_what_runs_or_is_not_sealed_stays(home):
    """A running episode and one that waits in a living journal stay, whatever the criteria say."""
    recorder = Recorder(home)
    running = recorder.start("runs")
    ended = recorder.start("has ended")
    recorder.flush()
    ended.end("success")  # in the journal only

    with open_store(home=home) as live:
        plan = choose(live, EVERYTHING, 2 * NOW)
        assert (plan.going, plan.spared) == ((), {"running": 1, "unsealed": 1})
        assert prune(live, EVERYTHING, now=2 * NOW).ids == ()
        recorder.flush()
        assert prune(live, EVERYTHING, now=2 * NOW).ids == (ended.id,)
        assert left(live) == [running.id]
    recorder.close()


def test_what_the_dead_left_is_sealed_first(home):
    """A crashed episode that is still in its journal is pruned like any other, journal and all."""
    code = """
import os, signal
from trackway.recording.recorder import Recorder
episode = Recorder().start("dies", tags=["dead"])
print(episode.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    dead = subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.PIPE, text=True).stdout.strip()

    with open_store(home=home) as live:
        assert prune(live, Criteria(query=Query(tag="dead"), state="crashed"), now=NOW).ids == (dead,)
        assert left(live) == []
    assert list((home / "journals").iterdir()) == []


def test_what_changed_since_it_was_chosen_is_looked_at_again(home, live):
    """A tag given between the choice and the deletion protects."""
    old, late = sealed(live, 9), sealed(live, 8)

    def tag(reached):
        if reached == "prune:begun":
            live.seal(Batch(records(late, [kinds.Label(tag="keep", n=7)])))

    receipt = prune(live, EVERYTHING, now=NOW, failpoint=tag)

    assert (receipt.ids, receipt.spared) == ((old,), {"protected": 1})
    assert left(live) == [late]


def test_a_label_that_comes_late_is_put_aside(home):
    """A process that labels what was pruned meanwhile makes no episode of it: the label waits in quarantine, said."""
    recorder = Recorder(home)
    episode = recorder.start("gone soon")
    episode.end("success")
    recorder.flush()
    with open_store(home=home) as live:
        prune(live, EVERYTHING, now=2 * NOW)
        episode.label(outcome="failure")
        other = recorder.start("goes on")
        other.end("success")
        recorder.close()

        assert left(live) == [other.id]
        (about,) = (home / "quarantine").glob("*.json")
        assert f"episode {episode.id} was pruned" in json.loads(about.read_text())["reason"]
        assert prune(live, Criteria(query=Query(task="goes on")), now=NOW).quarantined == 0


# --- what really goes ------------------------------------------------------------------------------------------------


def raw_bytes(home):
    """Every byte of every file in the home."""
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


@pytest.mark.parametrize("journal", ["mmap", "append"])
def test_no_byte_is_left(home, journal):
    """After a prune beside a living recorder its text is nowhere: store, log, journal, quarantine."""
    recorder = Recorder(home, journal=journal)
    secret, kept = recorder.start("SECRET-task", tags=["SECRET-tag"]), recorder.start("goes on")
    for i in range(200):
        call = secret.tool_call("SECRET-tool", {"i": f"SECRET-{i}"})
        secret.tool_result(call, f"SECRET-{i} " * (1 + i * 11))
        kept.note(f"plain {i}")
        if i % 20 == 0:
            recorder.flush()
    secret.end("success", reason="SECRET-reason")
    recorder.flush()
    assert b"SECRET" in raw_bytes(home)

    with open_store(home=home) as live:
        receipt = prune(live, Criteria(query=Query(task="SECRET-task")), now=NOW)
        assert (receipt.ids, receipt.events, receipt.whole) == ((secret.id,), 402, True)
        assert receipt.journal_records > 0
        there = raw_bytes(home).replace(b'"task": "SECRET-task"', b"")  # the receipt says what was asked for
        assert b"SECRET" not in there
        kept.note("the last")
        recorder.close()
        assert live.episode(kept.id).n_events == 202
        _, *notes = live.events(kept.id)
        assert [each.topic for each in notes] == [*(f"plain {i}" for i in range(200)), "the last"]
    assert not list((home / "quarantine").glob("*"))


def test_quarantined_records_go_with_their_episode(live, home):
    """What was put aside of a pruned episode goes; what belongs to others stays."""
    mine, other = sealed(live, 9), sealed(live, 1)
    (home / "quarantine").mkdir()
    for i, each in enumerate((mine, other)):
        (home / f"quarantine/{i}.bin").write_bytes(b"x")
        (home / f"quarantine/{i}.json").write_text(json.dumps({"episode": ids.to_bytes(each).hex(), "reason": "?"}))
    (home / "quarantine/2.bin").write_bytes(bytes(16) + ids.to_bytes(mine) + b"damaged")
    (home / "quarantine/2.json").write_text(json.dumps({"reason": "?"}))

    assert prune(live, Criteria(limits=Retention(max_age="5d")), now=NOW).quarantined == 2
    assert sorted(path.name for path in (home / "quarantine").iterdir()) == ["1.bin", "1.json"]


@pytest.mark.parametrize("whole", [True, False])
def test_the_file_shrinks(live, whole):
    """The space is returned to the disk, whichever way, and what stays reads as before."""
    for number in range(1, 40):
        sealed(live, number, content=os.urandom(20_000).hex())
    before = {each.id: list(live.events(each.id)) for each in live.episodes(Query(limit=5))}
    live.store.checkpoint()

    receipt = prune(live, Criteria(limits=Retention(max_episodes=5)), now=NOW, whole=whole)

    assert receipt.whole is whole
    assert receipt.after.store < receipt.before.store / 4
    assert (receipt.after.wal, live.store.path.stat().st_size) == (0, receipt.after.store)
    assert {each: list(live.events(each)) for each in left(live)} == before
    connection = sqlite3.connect(live.store.path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    connection.close()


def test_what_is_sealed_meanwhile_keeps_its_words_and_blobs(home):
    """A sealer that knew a tool's name and a blob before a prune took them stores both anew."""
    recorder = Recorder(home)
    text = os.urandom(30_000).hex()

    def one():
        with recorder.start("same", tags=["same"]) as episode:
            episode.tool_result(episode.tool_call("rare", {}), text)
        recorder.flush()
        return episode.id

    first = one()
    with open_store(home=home) as live:
        assert prune(live, EVERYTHING, now=2 * NOW).ids == (first,)
        second = one()
        assert [each.id for each in live.episodes(Query(tool="rare", tag="same"))] == [second]
        assert [each.content for each in live.events(second) if each.kind == "tool_result"] == [text]
    recorder.close()


# --- receipts --------------------------------------------------------------------------------------------------------


def lines(home):
    """The receipts, line by line."""
    return [json.loads(line) for line in (home / "receipts.jsonl").read_text().splitlines()]


def test_the_receipt(live, home):
    """It says what was asked for, which ids went, how much it was, and what the file took before and after."""
    found = [sealed(live, number, content="secret " * 9) for number in (9, 8)]

    receipt = prune(live, Criteria(query=Query(agent="demo"), limits=Retention(max_age="5d")), now=NOW)

    begun, dropping, dropped, done = lines(home)
    assert [each["says"] for each in lines(home)] == ["begun", "dropping", "dropped", "done"]
    assert begun["criteria"] == {"agent": "demo", "max_age": "5d", "keep_tags": ["keep"]}
    assert begun["planned"] == {"episodes": 2, "events": 6, "blobs": 0, "bytes": receipt.bytes}
    assert dropping["ids"] == list(receipt.ids) == found
    assert (dropped["episodes"], dropped["events"]) == (2, 6)
    assert (done["episodes"], done["bytes"], done["whole"]) == (2, receipt.bytes, True)
    assert done["after"]["store"] == live.store.path.stat().st_size
    assert {each["prune"] for each in lines(home)} == {receipt.prune} == {"2030-03-17T17:46:40.000000Z"}
    assert "secret" not in (home / "receipts.jsonl").read_text()
    assert (home / "receipts.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_torn_receipt_is_not_gone_on_with(live, home):
    """A line that a crash left unfinished stays a line of its own."""
    sealed(live, 9)
    (home / "receipts.jsonl").write_text('{"prune": "torn')

    prune(live, EVERYTHING, now=NOW)

    first, *rest = (home / "receipts.jsonl").read_text().splitlines()
    assert first == '{"prune": "torn'
    assert [json.loads(each)["says"] for each in rest] == ["begun", "dropping", "dropped", "done"]


def test_nothing_to_do_leaves_no_receipt(live, home):
    """Where nothing goes nothing is written."""
    sealed(live, 1)

    assert prune(live, Criteria(limits=Retention(max_age="5d")), now=NOW).ids == ()
    assert not (home / "receipts.jsonl").exists()


def test_trouble_is_in_the_receipt(live, home):
    """A prune that fails says so as its last line, and what is gone is gone whole."""
    sealed(live, 9)

    def fail(reached):
        if reached == "prune:erased":
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        prune(live, EVERYTHING, now=NOW, failpoint=fail)
    assert lines(home)[-1]["says"] == "stopped"
    assert "No space" in lines(home)[-1]["why"]
    assert left(live) == []


KILLED = """
import sys
from trackway.recording.settings import open_store
from trackway.store.choice import Criteria
from trackway.store.prune import prune
from trackway.store.retention import Retention
from trackway.store import prune as module
from trackway.testing.dying import die_at
module._BATCH = 3
failpoint = die_at(sys.argv[1], nth=int(sys.argv[2]))
prune(open_store(), Criteria(limits=Retention(max_age="0s")), now=%d, failpoint=failpoint)
"""


@pytest.mark.crash
@pytest.mark.parametrize(
    ("point", "nth"), [*((each, 1) for each in FAILPOINTS), ("prune:dropping", 2), ("prune:dropped", 2)]
)
def test_killed_in_the_middle(home, live, point, nth):
    """Killed anywhere: the store is sound, an episode is whole or gone, the receipt has named what is gone; go on."""
    found = [sealed(live, number, content=f"text {number} " * 900) for number in range(8, 0, -1)]
    live.close()

    killed = subprocess.run([sys.executable, "-c", KILLED % NOW, point, str(nth)], check=False)

    assert killed.returncode == -signal.SIGKILL
    there = left(live)
    named = {name for each in lines(home) for name in each.get("ids", ())}
    assert set(found) - set(there) <= named
    for each in there:
        assert len(list(live.events(each))) == 3
    for each in set(found) - set(there):
        with pytest.raises(EpisodeNotFound):
            live.episode(each)
    counted = sum(each["episodes"] for each in lines(home) if each["says"] == "dropped")
    assert counted <= len(found) - len(there) <= counted + 3
    receipt = prune(live, EVERYTHING, now=NOW + 1)
    assert set(receipt.ids) == set(there)
    assert b"text 8 text 8" not in raw_bytes(home)


def test_two_at_once(home, live):
    """Two prunes of the same episodes: each goes once, neither fails."""
    found = [sealed(live, number) for number in range(30, 0, -1)]
    live.close()
    code = KILLED % NOW
    both = [subprocess.Popen([sys.executable, "-c", code, "never", "1"]) for _ in range(2)]

    assert [each.wait() for each in both] == [0, 0]
    assert left(live) == []
    counted = [each["episodes"] for each in lines(home) if each["says"] == "dropped"]
    assert sum(counted) == len(found)
