"""derived.db: digests are kept, believed while they are right, made again when they are not, and never in the way."""

import json
import re
import sqlite3
import subprocess
import sys
import uuid
from contextlib import closing
from decimal import Decimal

import msgspec
import pytest
from click.testing import CliRunner

import trackway
from trackway.cli import main
from trackway.cli._digests import Digests, catch_up
from trackway.read.counts import VERSION
from trackway.read.digest import row_of, with_prices
from trackway.read.price import Cost
from trackway.read.stats import Counting
from trackway.recording.settings import open_store
from trackway.schema.events import AssistantToolCall, EpisodeStart, Header, ToolResult
from trackway.store import derived
from trackway.store.base import Batch
from trackway.store.choice import Criteria
from trackway.store.home import Home
from trackway.store.prune import prune
from trackway.store.retention import Retention
from trackway.store.sqlite import SqliteStore
from trackway.testing.events import records

SECRET = "curl --token tr3asure"


def cli(*args, code=0):
    """What trackway answers."""
    answer = CliRunner().invoke(main, args, catch_exceptions=False)
    assert answer.exit_code == code, answer.stderr
    return answer


def stats(*args):
    """All that is counted."""
    return json.loads(cli("stats", "--json", *args).stdout)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with three episodes, two of them of one agent; one made a call twice that nobody should see later."""
    place = tmp_path / "home"
    monkeypatch.setenv("TRACKWAY_HOME", str(place))
    for task, agent, command in (("a", "x", "ls"), ("b", "x", SECRET), ("c", "y", "ls")):
        with trackway.Recorder(place) as recorder, recorder.start(task, agent=agent) as episode:
            for _ in range(2):
                call = episode.tool_call("bash", {"cmd": command})
                episode.tool_result(call, "no", is_error=True, duration_ms=100.0)
            episode.end("success")
    return Home(place)


def change(home, sql):
    """Change the kept digests behind everyone's back."""
    with closing(sqlite3.connect(home.derived)) as connection, connection:
        return connection.execute(sql).fetchall()


def kept(home):
    """The episodes and how many events their digests are of."""
    return dict(change(home, "SELECT hex(episode), n_events FROM digests"))


def lose_events(home):
    """Make the events unreadable: whoever still counts them has not read them."""
    with closing(sqlite3.connect(home.store)) as connection, connection:
        connection.execute("UPDATE frames SET body = x'00'")
        connection.execute("UPDATE tail SET body = x'00'")


# --- kept -----------------------------------------------------------------------------------------------------------


def test_what_was_counted_is_not_read_again(home):
    """The second answer is the first one, to the byte, and takes no event."""
    first = stats()
    assert len(kept(home)) == first["episodes"] == 3
    lose_events(home)

    assert stats() == first
    assert first["calls"][0] | {"tool": 0} == {
        "tool": 0, "args": "ls", "times": 4, "episodes": 2, "again": 2, "failed": 4, "alike": 4,
    }  # fmt: skip


def test_filters_take_the_same_digests(home):
    """A part of the episodes is the sum of theirs."""
    stats()
    lose_events(home)

    assert [stats("--agent", each)["steps"] for each in "xyz"] == [4, 2, 0]
    assert stats("--task", "b")["calls"][0]["args"] == SECRET


def test_an_episode_that_has_grown_is_read_again(home):
    """A label is an event: its digest is of all events, and the others' are still what they were."""
    stats()
    before = kept(home)
    with open_store() as live:
        [episode] = [each.id for each in live.episodes() if each.task == "c"]
    cli("label", episode, "--outcome", "failure")

    assert stats()["outcomes"] == {"success": 2, "failure": 1}
    after = kept(home)
    assert sum(after.values()) == sum(before.values()) + 1
    assert len([each for each in after if after[each] != before[each]]) == 1


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE digests SET body = zeroblob(20)",
        "UPDATE digests SET body = 'text', words = 7",
        "UPDATE digests SET body = substr(body, 1, length(body) - 1)",
        "UPDATE digests SET n_events = n_events + 1",
        "UPDATE digests SET episode = zeroblob(3) WHERE id = 1",
        f"UPDATE digests SET version = {VERSION + 1}",
        "UPDATE digests SET body = (SELECT body FROM digests ORDER BY id LIMIT 1)",
        "PRAGMA user_version = 99",
        "DROP TABLE digests",
    ],
)
def test_what_cannot_be_believed_is_made_again(home, harm):
    """Damaged, of other events, of another version, another's: the answer is right, and the next one finds it kept."""
    first = stats()
    change(home, harm)

    assert stats() == first
    assert len([each for each in kept(home) if len(each) == 32]) == 3
    lose_events(home)
    assert stats() == first


@pytest.mark.parametrize("body", [b"", b"something else entirely" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_none_is_made_anew(home, body):
    """Whatever stands in its place."""
    first = stats()
    home.derived.write_bytes(body)

    assert stats() == first
    assert len(kept(home)) == 3


@pytest.mark.parametrize("way", ["a folder", "a full disk", "a link to nowhere", "busy"])
def test_where_nothing_can_be_kept_the_answer_is_the_same(home, way):
    """It takes longer, and that is all."""
    first = stats()
    home.derived.unlink()
    if way == "a folder":
        home.derived.mkdir()
    elif way == "a full disk":
        home.derived.symlink_to("/dev/full")
    elif way == "a link to nowhere":
        home.derived.symlink_to(home.path / "no" / "where")
    else:
        with closing(sqlite3.connect(home.derived, isolation_level=None)) as other:
            other.execute("CREATE TABLE x (y)")
            other.execute("BEGIN EXCLUSIVE")
            assert stats() == first
        return

    assert stats() == first


def test_only_the_owner_may_look(home):
    """It holds commands."""
    stats()

    assert home.derived.stat().st_mode & 0o777 == 0o600


def test_no_home_is_made_for_it(home, tmp_path):
    """Counting a store that lies elsewhere leaves nothing behind."""
    found = stats("--home", str(tmp_path / "none"), "--store", str(home.store))

    assert found["episodes"] == 3
    assert not (tmp_path / "none").exists()


def test_one_that_cannot_be_read_hides_no_other(home):
    """What can be counted is, and the answer says that it is not all."""
    stats()
    change(home, "DELETE FROM digests WHERE id = 1")
    lose_events(home)
    answer = cli("stats", "--json", code=1)

    assert json.loads(answer.stdout)["episodes"] == 2
    assert "damaged" in answer.stderr or "checksum" in answer.stderr


# --- catching up ----------------------------------------------------------------------------------------------------


def test_catching_up_makes_what_is_missing(home):
    """All, or those asked for; nothing twice; one that is not there is passed over."""
    with open_store() as live:
        there = [each.id for each in live.episodes()]
        told = []
        assert catch_up(live, [there[0], str(uuid.UUID(int=5))], lambda *each: told.append(each)) == 1
        assert [len(kept(home)), told] == [1, [("counting episodes", 1, 1)]]
        assert [catch_up(live), catch_up(live), len(kept(home))] == [2, 0, 3]


def test_what_is_redacted_stays_so(tmp_path):
    """Digests are made of what is stored, whoever asks and whatever they may see."""
    rules = {"word": re.compile("hunter2")}
    with trackway.Recorder(tmp_path) as recorder, recorder.start("t", redact=rules) as episode:
        for _ in range(2):
            episode.tool_call("login", {"password": "hunter2"})
    with open_store(home=tmp_path, lift=True) as live:
        [summary] = live.episodes()
        assert b"hunter2" in next(each.args for each in live.events(summary.id) if isinstance(each, AssistantToolCall))
        assert catch_up(live) == 1

    assert b"redacted:word" in Home(tmp_path).derived.read_bytes()
    assert b"hunter2" not in Home(tmp_path).derived.read_bytes()


def test_installed_prices_are_asked_once(tmp_path, monkeypatch):
    """A cost is kept with the digest, made again where it is by other prices, and the settings' hold over it."""
    pytest.importorskip("genai_prices")
    monkeypatch.setenv("TRACKWAY_HOME", str(tmp_path))
    with trackway.Recorder(tmp_path) as recorder, recorder.start("t") as episode:
        episode.model_call(model="gpt-4o").done(usage={"prompt_tokens": 1_000_000, "completion_tokens": 0})
    first = stats()["usage"]
    again = """
import sys
from trackway.cli import main
main(["stats"], standalone_mode=False)
sys.exit("genai_prices" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", again], capture_output=True, check=False).returncode == 0
    with open_store() as live:
        [(summary, digest)] = Digests(live).of(live.episodes())
        old = with_prices(digest, lambda *_: Cost(Decimal(1000), "old prices"), "genai_prices-0")
        derived.put_many(live.home, live.key, [row_of(summary.id, old, None)])

    assert first["cost"] > 0
    assert first["cost_from"][0].startswith("genai-prices")
    assert stats()["usage"] == first
    (tmp_path / "trackway.toml").write_text("[prices.gpt-4o]\ninput = 7\noutput = 7\n")
    assert (stats()["usage"]["cost"], stats()["usage"]["cost_from"]) == (7.0, ["settings"])


# --- several processes ----------------------------------------------------------------------------------------------


def many(home, episodes, size):
    """A store with so many events that processes share the work."""
    store = SqliteStore(home.store)
    for number in range(episodes):
        events = [EpisodeStart(header=Header(task=f"t{number}"), at=1)]
        for i in range(size // 2):
            events += [
                AssistantToolCall(name="bash", args=b'{"i": %d}' % (i % 50), call_id=str(i)),
                ToolResult(call_id=str(i), content="", is_error=i % 10 == 0, duration_ms=i),
            ]
        events = [msgspec.structs.replace(each, writer="w" * 16, n=n) for n, each in enumerate(events)]
        store.seal(Batch(records(str(uuid.UUID(int=number + 1)), events)))
    store.close()


def test_two_at_once_on_a_store_that_is_new_to_both(tmp_path, monkeypatch):
    """Each gets the whole answer, with work shared among processes of its own; what they keep is sound."""
    monkeypatch.setenv("TRACKWAY_HOME", str(tmp_path))
    home = Home(tmp_path)
    many(home, 7, 3_000)
    asked = [
        subprocess.Popen([sys.executable, "-m", "trackway", "stats", "--json"], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    first, second = (json.loads(each.communicate()[0]) for each in asked)
    with open_store() as live:
        counting = Counting()
        for summary in live.episodes():
            counting.add(summary, live.events(summary.id))
    plain = json.loads(json.dumps(msgspec.to_builtins(counting.stats(names=100))))

    assert first == second
    assert {name: first[name] for name in plain if name != "slots"} == {
        name: each for name, each in plain.items() if name != "slots"
    }
    lose_events(home)
    assert stats() == first


def test_a_process_that_is_killed_while_it_reads(tmp_path):
    """The one that it read for reads the rest itself."""
    many(Home(tmp_path), 7, 3_000)
    script = f"""
import os
from trackway.cli import _reading
from trackway.recording.settings import open_store

class Dying(_reading.Reader):
    own = os.getpid()
    def read(self, live, summary):
        if os.getpid() != self.own:
            os._exit(9)
        return super().read(live, summary)

live = open_store(home={str(tmp_path)!r})
summaries = list(live.episodes())
assert _reading._workers(live, summaries) == len(os.sched_getaffinity(0))
print(len([each for each in _reading.read_all(live, Dying({{}}), summaries) if each is not None]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert (done.stdout, done.returncode) == ("7\n", 0), done.stderr


# --- purged ---------------------------------------------------------------------------------------------------------


def test_what_is_pruned_is_purged(home):
    """Nothing of it is left in the file; the others' digests are."""
    stats()
    assert SECRET.encode() in home.derived.read_bytes()
    cli("prune", "--task", "b", "--yes")

    assert SECRET.encode() not in home.derived.read_bytes()
    assert len(kept(home)) == 2


def test_an_interrupted_prune_is_finished_here_too(home):
    """Killed after the episodes went and before their digests did: the next one purges them."""
    stats()

    def die(name):
        if name == "prune:dropped":
            raise KeyboardInterrupt

    nothing = Criteria(limits=Retention(max_episodes=0))
    with open_store() as live:
        with pytest.raises(KeyboardInterrupt):
            prune(live, nothing, now=2**62, failpoint=die)
        assert len(kept(home)) == 3
        prune(live, nothing, now=2**62)

    assert kept(home) == {}


def test_where_rows_cannot_be_deleted_the_file_goes(home):
    """A command that was to be forgotten is not kept because a file is damaged."""
    stats()
    body = home.derived.read_bytes()
    home.derived.write_bytes(b"not SQLite" + body[10:])
    cli("prune", "--task", "b", "--yes")

    assert not home.derived.exists()


def test_an_episode_that_goes_while_it_is_counted_is_not_kept(home):
    """Its prune has purged what was kept by then; what is kept later is purged by whoever keeps it."""
    with open_store() as live:
        digests = Digests(live)
        found = digests.of(list(live.episodes()))
        summary, _ = next(found)
        live.drop([summary.id])
        assert len(list(found)) == 2

    assert len(kept(home)) == 2


def test_what_another_home_pruned_is_forgotten_when_all_is_counted(home, tmp_path):
    """It knows the store, and not what is kept here."""
    stats()
    cli("prune", "--task", "b", "--yes", "--home", str(tmp_path / "other"), "--store", str(home.store))
    assert len(kept(home)) == 3

    assert stats("--task", "a")["episodes"] == 1
    assert len(kept(home)) == 3
    assert stats()["episodes"] == 2
    assert SECRET.encode() not in home.derived.read_bytes()


def test_nothing_to_purge_makes_nothing(tmp_path):
    """No file, no folder."""
    assert derived.purge(Home(tmp_path / "none"), "sqlite:x", [str(uuid.UUID(int=1))]) == 0
    assert not (tmp_path / "none").exists()
