"""The journal: what is appended is there, in order, whole; what is not whole is not shown."""

import contextlib
import errno
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trackway
from trackway.recording.recorder import Recorder
from trackway.schema import ids
from trackway.schema.codec import Encoded, decode
from trackway.schema.events import AssistantToolCall, Event, FileChange, Note, ToolResult, User
from trackway.store import record, tail
from trackway.store.home import Home
from trackway.store.journal import Journal, Pending
from trackway.store.large import BIG, Payload
from trackway.store.live import LiveStore
from trackway.store.sealer import Sealer
from trackway.store.segment import SMALLEST
from trackway.store.sqlite import SqliteStore
from trackway.testing.events import any_args, any_event

JOURNALS = pytest.mark.parametrize("mapped", [True, False], ids=["mmap", "append"])
EPISODE = ids.to_bytes(ids.uuid7(1_800_000_000_000_000_000, bytes(10)))


def journal_in(home: Path, *, mapped: bool = True, key: str = "sqlite:x") -> Journal:
    """A journal without a recorder around it."""
    return Journal(Home(home), store_key=key, clock=time.time_ns, entropy=os.urandom, mapped=mapped)


def pending(event: Event) -> Pending:
    """An event on its way in, as the recorder hands it over."""
    skipped = ("writer", "n", "seq", "unknown_fields")
    fields = {name: getattr(event, name) for name in event.__struct_fields__ if name not in skipped}
    return Pending(EPISODE, type(event), fields)


def open_files() -> int:
    """How many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def read_all(journal: Journal) -> list[record.Record]:
    """Every record on disk, as a reader in another process sees it."""
    assert journal.folder is not None
    found: list[record.Record] = []
    for activation, path, size, _ in tail.segments(journal.folder):
        found += record.live_records(tail.read(tail.Piece(activation, path, 64, size)), 64)
    return found


@JOURNALS
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(events=st.lists(any_event, min_size=1, max_size=4), args=any_args)
def test_any_event_survives_journal_and_store(tmp_path_factory, mapped: bool, events: list[Event], args: bytes) -> None:
    """Encoded, journalled, read as a tail, sealed, read from the store: equal every time; arguments byte for byte."""
    home = Home(tmp_path_factory.mktemp("path"))
    store = SqliteStore(home.store)
    journal = journal_in(home.path, mapped=mapped, key=store.key)
    given_events = [*events, AssistantToolCall(name="x", args=args, call_id="c")]
    for each in given_events:
        journal.append(*pending(each))
    live, name = LiveStore(home, store), ids.from_bytes(EPISODE)
    expected = [msgspec.structs.replace(each, writer=journal.writer, n=n) for n, each in enumerate(given_events)]

    assert list(live.events(name)) == expected
    Sealer(home, store).seal(journal)
    journal.remove()

    assert [msgspec.structs.replace(each, seq=None) for each in live.events(name)] == expected
    last = list(live.events(name))[-1]
    assert isinstance(last, AssistantToolCall)
    assert last.args == args
    store.close()
    shutil.rmtree(home.path)


@JOURNALS
def test_segments_roll_and_order_holds(tmp_path: Path, mapped: bool) -> None:
    """Thousands of events over many segments, one larger than any segment: all there, in order, numbered densely."""
    journal = journal_in(tmp_path, mapped=mapped)
    for i in range(3000):
        journal.append(*pending(Note(topic=f"{i}", detail=["x" * 1000] * 10_000 if i == 1500 else "x" * (i % 900))))

    found = [decode(Encoded(each.body, each.flags, each.schema)) for each in read_all(journal)]

    assert [each.topic for each in found if isinstance(each, Note)] == [f"{i}" for i in range(3000)]
    assert [each.n for each in found] == list(range(3000))
    journal.remove()
    assert list((tmp_path / "journals").iterdir()) == []


def test_a_nearly_idle_journal_is_small(tmp_path: Path) -> None:
    """A hundred idle children must not cost a gigabyte."""
    journal = journal_in(tmp_path)
    journal.append(*pending(Note(topic="one")))
    journal.prepare()

    sizes = [each.stat().st_size for each in (tmp_path / "journals").glob("*/*.seg")]
    assert sizes == [SMALLEST]


@JOURNALS
def test_a_torn_tail_at_every_byte(tmp_path: Path, mapped: bool) -> None:
    """Cut anywhere inside the last record, the ones before it are read and nothing else is."""
    journal = journal_in(tmp_path, mapped=mapped)
    for i in range(3):
        journal.append(*pending(Note(topic=f"{i}")))
    [path] = (tmp_path / "journals").glob("*/*.seg")
    whole = path.read_bytes()
    first, second, third = read_all(journal)

    for cut in range(second.end, third.end):
        torn = whole[64:cut] + bytes(len(whole) - cut if mapped else 0)
        assert list(record.live_records(torn, 64))[:2] == [first, second]
        seen = record.scan(torn, 64).records
        assert seen[:2] == [first, second]
        assert seen[2:] in ([], [third])


@JOURNALS
def test_a_flipped_bit_costs_one_record(tmp_path: Path, mapped: bool) -> None:
    """Damage in the middle of a dead writer's journal: that record is set aside, all others are sealed."""
    home = Home(tmp_path)
    store = SqliteStore(home.store)
    journal = journal_in(tmp_path, mapped=mapped, key=store.key)
    for i in range(20):
        journal.append(*pending(Note(topic=f"{i}")))
    victim = read_all(journal)[7]
    journal.release()
    [path] = home.journals.glob("*/*.seg")
    damaged = bytearray(path.read_bytes())
    damaged[victim.start + 30] ^= 4
    path.write_bytes(damaged)

    done = Sealer(home, store).adopt()

    topics = [each.topic for each in store.events(ids.from_bytes(EPISODE)) if isinstance(each, Note)]
    assert topics == [f"{i}" for i in range(20) if i != 7]
    assert (done.events, done.quarantined, done.adopted) == (19, 1, 1)
    assert len(list(home.quarantine.glob("*.bin"))) == 1


@JOURNALS
def test_large_payloads_go_in_parts(tmp_path: Path, mapped: bool) -> None:
    """A payload of several megabytes, lone surrogates in it, is read back from the tail and from the store."""
    home = Home(tmp_path)
    store = SqliteStore(home.store)
    journal = journal_in(tmp_path, mapped=mapped, key=store.key)
    text = "é\ud83d" * BIG
    journal.append(EPISODE, ToolResult, {"call_id": "c"}, (Payload(text, "content"),))
    live = LiveStore(home, store)

    [waiting] = live.events(ids.from_bytes(EPISODE))
    Sealer(home, store).seal(journal)
    [sealed] = live.events(ids.from_bytes(EPISODE))

    assert isinstance(waiting, ToolResult)
    assert isinstance(sealed, ToolResult)
    assert waiting.content == sealed.content == text


def test_file_contents_are_kept_by_hash(home: Path) -> None:
    """What a file was before and after can be read by its hash, sealed or not."""
    with Recorder(home) as recorder:
        episode = recorder.start("files")
        call = episode.tool_call("edit", {})
        episode.file_change("a.py", before="old", after=b"new" * 100_000, mode=0o644)
        episode.tool_result(call, "ok")
        store = trackway.open_store(home=home)
        [change] = [each for each in store.events(episode.id) if isinstance(each, FileChange)]
        assert change.before is not None
        assert change.after is not None
        assert (change.op, change.cause, change.after.size) == ("modify", call.call_id, 300_000)
        assert b"".join(store.blob(change.before.hash)) == b"old"
        recorder.flush()
        assert b"".join(store.blob(change.after.hash)) == b"new" * 100_000


def test_a_full_disk_is_counted_and_never_raised(home: Path, capsys) -> None:
    """No segment to be had: the agent goes on, the loss is counted, told once, kept in the summary and in the home."""
    recorder = Recorder(home, journal="mmap")
    episode = recorder.start("full")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))  # every segment is larger than any file may be
    try:
        for i in range(2000):
            episode.text(f"{i}" + "x" * 500)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    lost = episode.lost
    episode.end("success")
    recorder.close()

    assert 0 < lost < 2000
    assert os.strerror(errno.EFBIG) in capsys.readouterr().err
    summary = trackway.open_store(home=home).episode(episode.id)
    assert summary.lost == lost
    assert summary.n_events == 2002 - lost
    assert f'"lost": {lost}' in (home / "losses.jsonl").read_text()


def test_an_unwritable_home_is_counted_and_never_raised(tmp_path: Path, capsys) -> None:
    """A home that cannot be made stops nothing but the recording, and says so."""
    (tmp_path / "file").write_text("in the way")
    with trackway.record("nowhere", home=tmp_path / "file" / "home") as episode:
        episode.user("hi")

    assert "could not be recorded" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt-get install strace)")
def test_ack_disk_returns_after_fdatasync_did(home: Path, tmp_path: Path) -> None:
    """A system-call trace: between one acknowledgement and the next an fdatasync has returned 0."""
    program = """
import os, sys
from trackway.recording.recorder import Recorder
recorder = Recorder(sys.argv[1], ack="disk")
episode = recorder.start("durable")
for i in range(20):
    episode.user(str(i))
    os.write(1, b"acknowledged\\n")
"""
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-e", "trace=fdatasync,fsync,write", "-o", str(trace), sys.executable, "-c", program]
    subprocess.run([*command, str(home)], check=True, stdout=subprocess.DEVNULL)

    began, synced, acknowledged = set(), False, 0
    for line in trace.read_text().splitlines():
        thread, _, call = line.partition(" ")
        if "fdatasync(" in call:  # the keeper's will do as well: one call serves all threads that wait for it
            began.add(thread)
        if "fdatasync" in call and call.rstrip().endswith("= 0") and thread in began:
            synced = True
        elif '"acknowledged' in call:
            assert synced, "acknowledged before fdatasync had returned"
            synced, acknowledged = False, acknowledged + 1
            began.clear()
    assert acknowledged == 20


def test_ack_store_returns_when_it_is_committed(home: Path) -> None:
    """With ack="store" every event is in the database file when the call returns."""
    recorder = Recorder(home, ack="store")
    episode = recorder.start("committed")
    for i in range(5):
        episode.user(f"{i}")
        sealed = [each.content for each in SqliteStore(home / "store.db").events(episode.id) if isinstance(each, User)]
        assert sealed == [f"{k}" for k in range(i + 1)]
    recorder.close()


def test_home_is_for_its_owner_only(home: Path) -> None:
    """Folders 0700, files 0600, whatever the umask."""
    before = os.umask(0)
    try:
        recorder = Recorder(home)
        recorder.start("private").user("secret")
        recorder.flush()
    finally:
        os.umask(before)

    for path in [home, *home.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    recorder.close()


def test_golden_segment_reads_the_same_forever() -> None:
    """A journal segment of version 1, as first written, is read by today's code."""
    stored = Path(__file__).parent / "golden" / "journal-1.hex"
    segment = bytes.fromhex("".join(stored.read_text().split()))

    header = record.read_segment_header(segment)
    events = [decode(Encoded(each.body, each.flags, each.schema)) for each in record.live_records(segment[64:], 64)]

    assert header is not None
    assert (header.version, header.activation, header.writer) == (1, 1, "0123456789abcdef")
    assert events == [User(content="hello", writer="0123456789abcdef", n=0, at=1, turn=1)]


def test_a_segment_that_cannot_be_read_stays_in_the_journal(home: Path) -> None:
    """No descriptor to be had while sealing: it fails and says so; nothing is taken for sealed."""
    recorder = Recorder(home)
    recorder._wake = recorder._journal._wake = lambda: None  # no keeper: this test seals when it says so
    episode = recorder.start("full table")
    for i in range(100):
        episode.note("k", str(i))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 2, hard))
    taken: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        with pytest.raises((OSError, trackway.TrackwayError)):
            recorder.flush()
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    recorder.close()

    assert trackway.open_store(home=home).episode(episode.id).n_events == 101


def test_events_that_find_no_room_leak_nothing(home: Path) -> None:
    """Where not even the first segment can be made, each event is counted and no file or folder stays behind."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    before = open_files()
    try:
        recorder = Recorder(home, journal="mmap")
        episode = recorder.start("no room")
        for _ in range(50):
            episode.user("hi")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert episode.lost == 51
    assert open_files() <= before + 1
    assert not any((home / "journals").iterdir())
    recorder.close()


def test_a_handler_that_flushes_does_not_cut_a_payload(home: Path) -> None:
    """Sealing from inside an append sees nothing of the event being written: it is whole or not yet there."""
    import signal

    recorder = Recorder(home)
    episode = recorder.start("payload")
    before = signal.signal(signal.SIGALRM, lambda *_: recorder.flush())
    try:
        for i in range(5):
            signal.setitimer(signal.ITIMER_REAL, 0.001 * (i + 1))  # once each: a flush takes longer than the pause
            episode.tool_result("c", "y" * 6_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    recorder.close()

    results = [each for each in trackway.open_store(home=home).events(episode.id) if isinstance(each, ToolResult)]
    assert [len(each.content) for each in results] == [6_000_000] * 5
