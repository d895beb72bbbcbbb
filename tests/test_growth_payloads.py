"""Large values inside events, and contents of files: in parts into the journal, as blobs into the store, whole again.

Sizes are those at which something changes: a part, a segment, a chunk of the store.
"""

import multiprocessing
import os
import shutil
from pathlib import Path

import msgspec
import pytest

import trackway
from trackway.recording.recorder import Recorder
from trackway.schema.canonical import hash_bytes
from trackway.schema.events import FileChange, FileState
from trackway.store import verify
from trackway.store.home import Home
from trackway.store.large import BIG, PART, FileContent, Payload
from trackway.store.sealer import Sealer
from trackway.store.sqlite import SqliteStore

JOURNALS = pytest.mark.parametrize("journal", ["mmap", "append"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of its own."""
    return tmp_path / "home"


def last_of(home: Path, episode: str):
    """The last event of an episode, without what the store adds."""
    with trackway.open_store(home=home) as store:
        return msgspec.structs.replace(list(store.events(episode))[-1], seq=None)


@JOURNALS
@pytest.mark.parametrize(
    "detail",
    [
        {"a": [b"\0" * (BIG + 1), "small"], "b": "é" * (2 * BIG)},
        ["x" * (9 << 20), "\ud800", 2**70],
        {"deep": {"er": ({"est": b"1" * (PART + 5)},)}},
        [["x" * 1000] * 9000],
    ],
    ids=["text and bytes", "beside what msgpack has no word for", "in a tuple", "nothing large alone"],
)
def test_what_is_large_inside_a_value_comes_back_equal(home, journal, detail):
    """Before it is sealed and after: the same value, wherever in it the large part stands."""
    with Recorder(home, journal=journal) as recorder:
        episode = recorder.start("nested")
        episode.note("n", detail=detail)
        before = last_of(home, episode.id)
        recorder.flush()
        after = last_of(home, episode.id)

    expected = [*detail] if isinstance(detail, list) else detail
    if "deep" in detail:
        expected = {"deep": {"er": [{"est": b"1" * (PART + 5)}]}}
    assert before.detail == after.detail == expected
    assert before == after


def test_a_large_value_that_a_tool_returned_comes_back_equal(home):
    """What a tool returned beside what the model saw of it."""
    with Recorder(home) as recorder:
        episode = recorder.start("returned")
        episode.tool_result("c", "seen", returned={"rows": ["r" * BIG, 1]})
        episode.tool_result("c", {"rows": "r" * BIG})

    with trackway.open_store(home=home) as store:
        first, second = [each for each in store.events(episode.id) if each.kind == "tool_result"]
    assert first.returned == {"rows": ["r" * BIG, 1]}
    assert second.returned == {"rows": "r" * BIG}
    assert second.content == '{"rows":"' + "r" * BIG + '"}'


def test_secrets_are_hidden_in_large_values_too(home):
    """A value goes into the journal in parts only after its secrets have gone."""
    with Recorder(home) as recorder:
        episode = recorder.start("secret", redact=["hunter2"])
        episode.note("n", detail={"log": "a" * BIG + " hunter2 " + "b" * BIG})
        event = last_of(home, episode.id)

    assert "hunter2" not in event.detail["log"]
    assert event.redacted


@JOURNALS
@pytest.mark.parametrize("size", [0, 1, PART, PART + 1, 20 << 20])
def test_a_file_is_taken_piece_by_piece(home, tmp_path, journal, size):
    """A path instead of a content: hashed, sized and kept as the bytes themselves would be."""
    body = os.urandom(size)
    file = tmp_path / "big.bin"
    file.write_bytes(body)
    with Recorder(home, journal=journal) as recorder:
        episode = recorder.start("file")
        episode.file_change("big.bin", after=file, mode=0o644)
        waiting = last_of(home, episode.id)
        with trackway.open_store(home=home) as store:
            assert b"".join(store.blob(waiting.after.hash)) == body
        recorder.flush()
        assert last_of(home, episode.id) == waiting

    assert waiting.after == FileState(hash=hash_bytes(body), size=size, mode=0o644)
    assert waiting.op == "create"
    with trackway.open_store(home=home) as store:
        assert b"".join(store.blob(waiting.after.hash)) == body
        assert not verify.verify(store.store, Home(home)).damage


def test_a_file_is_read_whole_where_secrets_are_hidden(home, tmp_path):
    """Half a secret is found by no rule: with rules, a file's content goes through them whole."""
    file = tmp_path / ".env"
    file.write_text("PASSWORD=hunter2\n")
    with Recorder(home) as recorder:
        episode = recorder.start("file", redact=["hunter2"])
        episode.file_change(".env", before=b"", after=file)
        event = last_of(home, episode.id)
        with trackway.open_store(home=home) as store:
            assert b"hunter2" not in b"".join(store.blob(event.after.hash))


def test_a_file_that_cannot_be_read_is_counted(home, tmp_path, capsys):
    """The agent goes on; the loss is counted and named at the end."""
    with Recorder(home) as recorder:
        episode = recorder.start("file")
        episode.file_change("gone", after=tmp_path / "gone")
        episode.file_change("folder", after=tmp_path)
        episode.user("goes on")
        assert episode.lost == 2
        episode.end("success")

    assert "could not be recorded" in capsys.readouterr().err
    assert last_of(home, episode.id).lost == 2


READ = pytest.mark.parametrize("redact", [None, ["hunter2"]], ids=["as it is", "with rules"])


@READ
@pytest.mark.parametrize("what", ["pipe", "/dev/null", "/dev/zero", "a\0b"])
def test_what_is_no_regular_file_is_counted_and_never_waited_for(home, tmp_path, redact, what):
    """A pipe without a writer would hold every thread that records; an endless device, all memory."""
    if what == "pipe":
        os.mkfifo(tmp_path / what)
    with Recorder(home) as recorder:
        episode = recorder.start("file", redact=redact)
        episode.file_change("x", after=tmp_path / what)
        assert episode.lost == 1
        episode.user("goes on")
        assert last_of(home, episode.id).content == "goes on"


@READ
def test_a_file_that_does_not_know_its_size_is_read_to_its_end(home, redact):
    """As those of /proc, which say 0."""
    file = Path("/proc/self/maps")
    with Recorder(home) as recorder:
        episode = recorder.start("file", redact=redact)
        episode.file_change("maps", after=Path("/proc/version"))
        episode.file_change("maps", after=file)
        states = [each.after for each in episode.events() if each.kind == "file_change"]
        with trackway.open_store(home=home) as store:
            assert b"".join(store.blob(states[0].hash)) == Path("/proc/version").read_bytes()
            assert sum(map(len, store.blob(states[1].hash))) == states[1].size > 4096  # more than one read of it


def test_a_file_is_named_by_what_was_kept_where_the_journal_is_put_back_meanwhile(home, tmp_path):
    """Somebody removes the home, the file is begun again: its hash and size are of one reading, not of both."""
    body = os.urandom(9 << 20)
    file = tmp_path / "big.bin"
    file.write_bytes(body)
    with Recorder(home) as recorder:
        episode = recorder.start("file")
        shutil.rmtree(home)
        episode.file_change("big.bin", after=file)
        assert episode.lost == 0
        recorder.flush()
        state = last_of(home, episode.id).after
        with trackway.open_store(home=home) as store:
            assert b"".join(store.blob(state.hash)) == body

    assert state == FileState(hash=hash_bytes(body), size=len(body))


def test_a_file_that_grows_is_taken_as_it_was_when_it_was_opened(tmp_path):
    """Whoever appends to it meanwhile does not keep the reader at it for ever."""
    file = tmp_path / "log"
    file.write_bytes(b"a" * PART + b"b")
    content, found = FileContent(file), b""
    for part, _ in content.parts():
        found += part
        with file.open("ab") as more:
            more.write(b"c" * PART)

    assert found == b"a" * PART + b"b"
    assert content.stands_for().size == len(found)


def _die_in_a_payload(home: Path, journal: str) -> None:
    """Begin a large payload and be gone before its last part."""

    class Deadly:
        """Content whose reader does not live to its end."""

        def parts(self):
            yield os.urandom(PART), False
            yield os.urandom(PART), False
            os._exit(9)

    recorder = Recorder(home, journal=journal)
    episode = recorder.start("half")
    episode.file_change("whole", after=os.urandom(3 * BIG))
    recorder.put(episode._core.raw, FileChange, {"op": "create", "path": "x"}, (Payload(Deadly(), "after"),))


@pytest.mark.promise("killed in a payload", "no event of it is shown, no chunk of it stays in the store")
@JOURNALS
def test_half_a_payload_leaves_nothing_behind(home, journal):
    """A process that dies inside a large payload leaves no event of it, and no chunk of it in the store."""
    child = multiprocessing.get_context("fork").Process(target=_die_in_a_payload, args=(home, journal))
    child.start()
    child.join()
    assert child.exitcode == 9

    store = SqliteStore(Home(home).store)
    Sealer(Home(home), store).adopt()

    assert store._rows("SELECT count(*) FROM chunks", ()) == [(3,)]
    assert not verify.verify(store, Home(home)).damage
    store.close()


class Failing:
    """Content that cannot be read to its end."""

    def __init__(self, parts: int, meanwhile=lambda: None) -> None:
        self._parts = parts
        self._meanwhile = meanwhile

    def parts(self):
        """Some parts, then none."""
        for _ in range(self._parts):
            yield os.urandom(PART), False
        self._meanwhile()
        raise OSError(5, "no more of it")

    def stands_for(self):
        """Never asked for."""
        raise AssertionError


def _fail(recorder, episode, parts: int, meanwhile=lambda: None) -> None:
    payload = Payload(Failing(parts, meanwhile), "after")
    with pytest.raises(OSError, match="no more of it"):
        recorder.put(episode._core.raw, FileChange, {"op": "create", "path": "x"}, (payload,))


@JOURNALS
@pytest.mark.parametrize("parts", [0, 1, 2, 5])
def test_whoever_reads_along_misses_nothing_behind_a_payload_that_failed(home, journal, parts):
    """A reader that has read its parts reads on behind them: no event is put where they were."""
    with Recorder(home, journal=journal) as recorder, trackway.open_store(home=home) as store:
        episode = recorder.start("half")
        episode.file_change("whole", after=os.urandom(3 * BIG))
        seen = []
        for each in range(3):
            _fail(recorder, episode, parts, lambda: seen.append(len(list(store.events(episode.id)))))
            episode.user(f"{each}")
            assert list(store.events(episode.id))[-1].content == f"{each}"
        recorder.flush()
        assert [each.content for each in store.events(episode.id) if each.kind == "user"] == ["0", "1", "2"]

    assert seen == [2, 3, 4]
    assert not list(Home(home).journals.iterdir())


def _die_behind_a_failure(home: Path, journal: str, parts: int) -> None:
    recorder = Recorder(home, journal=journal)
    episode = recorder.start("half")
    episode.user("before")
    _fail(recorder, episode, parts)
    on_disk = sum(each.stat().st_size for each in home.rglob("*.seg") if each.read_bytes().strip(b"\0"))
    episode.user("after")
    os._exit(9 if on_disk < BIG else 1)


@JOURNALS
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_a_payload_that_failed_is_gone_from_the_journal(home, journal, parts):
    """Its bytes at once; and whoever adopts the journal finds the events around it, nothing else and no damage."""
    child = multiprocessing.get_context("fork").Process(target=_die_behind_a_failure, args=(home, journal, parts))
    child.start()
    child.join()
    assert child.exitcode == 9

    store = SqliteStore(Home(home).store)
    done = Sealer(Home(home), store).adopt()

    assert (done.events, done.quarantined, done.torn) == (3, 0, 0)
    assert store._rows("SELECT count(*) FROM chunks", ()) == [(0,)]
    assert not verify.verify(store, Home(home)).damage
    store.close()


@pytest.mark.parametrize("redact", [None, ["hunter2"]], ids=["as it is", "with rules"])
def test_a_large_message_is_kept_once_and_comes_back_equal(home, redact):
    """In the first call in parts, in the next by its place in the first; small ones beside it as ever."""
    large = {"role": "tool", "content": [{"type": "text", "text": "x" * (2 * BIG)}], "n": 1}
    history = [{"role": "user", "content": "go"}, large]
    with Recorder(home) as recorder:
        episode = recorder.start("history", redact=redact)
        episode.model_call(messages=history)
        episode.model_call(messages=[*history, {"role": "user", "content": "on"}])
        waiting, sealed = [], []
        for found in (waiting, sealed):
            calls = (each for each in episode.events() if each.kind == "model_call")
            found += [msgspec.structs.replace(each, seq=None) for each in calls]
            recorder.flush()

    assert sealed == waiting
    assert list(sealed[0].messages) == history
    assert sealed[1].base == sealed[0].id
    assert list(sealed[1].messages) == [{"role": "user", "content": "on"}]
