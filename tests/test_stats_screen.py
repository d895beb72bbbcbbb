"""``trackway stats`` as people see it: one screen, 80 columns, plain where it is piped, nothing that is not known."""

import json
import re
import uuid
from datetime import date

import msgspec
import pytest
from click.testing import CliRunner

from trackway.cli import main
from trackway.cli._days import Day, begins, days_of, hours_of, sparkline
from trackway.cli._stats_tables import compact, hours, share
from trackway.cli._text import width
from trackway.schema import events as kinds
from trackway.store.base import Batch
from trackway.store.home import Home
from trackway.store.sqlite import SqliteStore
from trackway.testing.events import records

SECOND = 1_000_000_000
NOON = 1_800_000_000 * SECOND
HOSTILE = "\x1b]0;owned\x07\u202egnp\x1b[31m 日本語 \r\n\u200b" + "x" * 300


def ask(*args, columns=80):
    """What trackway answers on a screen of that width."""
    answer = CliRunner().invoke(main, ["stats", *args], catch_exceptions=False, env={"COLUMNS": str(columns)})
    assert answer.exit_code == 0, answer.stderr
    return answer


@pytest.fixture
def seal(tmp_path, monkeypatch):
    """Puts episodes into a home's store."""
    home = Home(tmp_path / "trackway")
    monkeypatch.setenv("TRACKWAY_HOME", str(home.path))
    monkeypatch.setenv("TZ", "UTC")
    store = SqliteStore(home.store)

    def put(number, events):
        whole = [msgspec.structs.replace(each, writer=f"i{number:015}", n=n) for n, each in enumerate(events)]
        store.seal(Batch(records(str(uuid.UUID(int=number + 1)), whole)))

    yield put
    store.close()


def episode(at, *, name="", tools=12, task="fix it"):
    """Something of everything, again and again."""
    tick = SECOND if at else 0
    model, usage = f"model{name}", {"input_tokens": 9_000, "output_tokens": 700, "cache_read_input_tokens": 400_000}
    yield kinds.EpisodeStart(header=kinds.Header(task=task + name, agent=f"agent{name}", model=model), at=at)
    yield kinds.User(content="go", at=at, turn=1)
    for i in range(tools):
        yield kinds.ModelCall(id=f"m{i}", at=at + i * tick)
        yield kinds.ModelResult(id=f"m{i}", usage=usage | {"cache_creation_input_tokens": 5}, at=at + i * tick)
        for again in range(2):
            args = json.dumps({"command": f"make {name}", "n": i}).encode()
            call = f"c{i}-{again}"
            yield kinds.AssistantToolCall(name=f"tool{i}{name}", args=args, call_id=call, at=at + i * tick)
            yield kinds.ToolResult(call_id=call, content=f"line {i}", is_error=i < 3, at=at + (i + 40) * tick)
            yield kinds.FileChange(op="modify", path=f"/home/me/a/rather/long/way/to/{i}/{name}/file.py", cause=call)
        yield kinds.FileChange(op="modify", path=f"src/{i}{name}.py", cause="external")


@pytest.mark.parametrize("name", ["", HOSTILE])
@pytest.mark.parametrize("columns", [80, 120, 40])
def test_no_line_is_longer_than_the_screen(seal, columns, name):
    """Whatever names are made of: they are cut, and nothing in them moves a cursor or changes a colour."""
    for number in range(6):
        seal(number, list(episode(NOON + number * 40 * 86_400 * SECOND, name=name)))
    for by in ((), *(("--by", each) for each in ("task", "tool", "model", "call", "file", "day"))):
        shown = ask(*by, columns=columns).stdout
        assert shown
        assert not set(shown) & set("\x1b\x07\r\u202e\u200b")
        if columns >= 80:
            assert max(map(width, shown.splitlines())) <= columns, by


def test_one_screen(seal):
    """Many episodes, tools, models and files: the most of each, and everything that is worth a line."""
    for number in range(12):
        seal(number, list(episode(NOON + number * 86_400 * SECOND, name=str(number % 8), tools=12)))
    shown = ask(columns=80).stdout
    lines = shown.splitlines()

    assert len(lines) < 50
    assert lines[0] == "episodes  12 · 2027-01-15 – 2027-01-26"
    assert "agents    agent0 2 · agent1 2 · agent2 2 · agent3 2 · 4 more" in lines
    assert "steps     288 · 72 failed (25%) · 12 turns · 1,320 events" in lines
    assert "worked    10m 12s on 12 days · most on 2027-01-15: 51.0 s" in lines
    assert "days      ████████████ since 2027-01-15" in lines
    assert "tokens    58,997,520 · 98% of the input from cache" in lines
    assert "          cache read   57.6M  ███████████████████████▌ 98%" in lines
    for title in ("MODEL ", "TOOL ", "CALL MADE AGAIN ", "FILE ", "TASK "):
        assert sum(line.startswith(title) for line in lines) == 1
    assert re.search(r"^tool\d+ make \d n=\d+ +4  ████████ +2 ", shown, re.MULTILINE)


def test_what_is_not_known_is_not_shown(seal):
    """Episodes of a dataset: no time, no model, no tool; no day of 1970, no line about nothing."""
    seal(0, [kinds.EpisodeStart(header=kinds.Header(task="a", source="rows")), kinds.User(content="x", turn=1)])
    answer = ask()

    assert answer.stdout.splitlines() == ["episodes  1", "sources   rows 1", "steps     0 · 1 turn · 2 events"]
    assert json.loads(ask("--json").stdout)["days"] == []


def test_some_know_their_time_and_some_do_not(seal):
    """The span is that of those that do, and the others are counted beside it."""
    seal(0, list(episode(0)))
    seal(1, list(episode(NOON)))
    shown = ask().stdout

    assert "episodes  2 · 2027-01-15 · 1 of them at a time nobody knows" in shown
    assert "1970" not in shown


def test_nothing_is_nothing(seal):
    """No table, no head: a word on stderr."""
    answer = ask()

    assert answer.stdout == ""
    assert "nothing is recorded" in answer.stderr


@pytest.mark.parametrize("by", ["task", "tool", "model", "call", "file", "day"])
def test_one_table(seal, by):
    """As many rows as asked for, and how many more there are."""
    for number in range(3):
        seal(number, list(episode(NOON + number * 86_400 * SECOND, name=str(number))))
    answer = ask("--by", by, "--limit", "2")

    assert len(answer.stdout.splitlines()) == 3
    assert "more (--limit 0 shows all)" in answer.stderr
    assert ask("--by", by, "--limit", "0").stderr == ""


def test_json_has_as_many_names_as_asked_for(seal):
    """Of calls and files a hundred, unless told; how many there are is said."""
    seal(0, list(episode(NOON, tools=150)))
    counts = [(), ("--limit", "3"), ("--limit", "0")]
    found = [json.loads(ask("--json", *each).stdout) for each in counts]

    assert [(len(each["calls"]), len(each["files"]), len(each["tools"])) for each in found] == [
        (100, 100, 150), (3, 3, 150), (150, 256, 150),
    ]  # fmt: skip
    assert {(each["n_calls"], each["n_files"], each["unlisted"]) for each in found} == {(150, 256, 44)}


# --- figures --------------------------------------------------------------------------------------------------------


def test_days_are_those_of_a_clock():
    """Quarters of an hour, by day and by hour; a time that no calendar has is left out."""
    slots = {0: (1, 10), 3: (1, 20), 96: (2, 5), 10**15: (9, 9), -(10**15): (9, 9)}

    assert days_of(slots, utc=True) == [Day(date(1970, 1, 1), 2, 30), Day(date(1970, 1, 2), 2, 5)]
    assert hours_of(slots, utc=True)[:2] == [35, 0]


@pytest.mark.parametrize(("span", "columns"), [(1, 8), (7, 8), (8, 8), (9, 8), (400, 56), (3_000_000, 56)])
def test_bars_of_days_fit(span, columns):
    """However many days there are, none is left out, and the last bar ends with the last day."""
    last = date.max
    days = [Day(date.fromordinal(last.toordinal() - span + 1), 1, 5), *([Day(last, 1, 50)] if span > 1 else [])]
    bars, each = sparkline(days, columns)

    assert 0 < len(bars) <= columns
    assert len(bars) * each >= span
    assert bars[-1] == "█"
    assert begins(days, columns) <= days[0].day or span > 2_000_000


def test_figures_are_short():
    """Nothing rounds to all or none that is not."""
    assert [compact(each) for each in (0, 9_999, 10_000, 999_499, 999_999, 99_950_000, 2 * 10**13)] == [
        "0", "9,999", "10.0k", "999k", "1.00M", "100M", "20.0T",
    ]  # fmt: skip
    assert [share(*each) for each in ((0, 9), (1, 9_999), (9_998, 9_999), (9, 9), (0, 0))] == [
        "0%", "<1%", ">99%", "100%", "-",
    ]  # fmt: skip
    assert [hours(each) for each in (0, 59_000, 3_600_000, 400 * 3_600_000)] == [
        "<1 ms",
        "59.0 s",
        "1h 00m",
        "400h 00m",
    ]
