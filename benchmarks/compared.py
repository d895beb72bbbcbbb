"""Tables of a comparison, from what `side_by_side` measured: values, ratios, and the design's targets.

A value is the median over rounds; a ratio the median of each round's own, in which both sides saw the same machine.
"""

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from benchmarks import machine
from benchmarks.measure import short
from benchmarks.peers import NAMES, OURS
from benchmarks.report import Beside, Row, Target, markdown
from benchmarks.sustained import BYTES_A_STEP, BYTES_WITH_HISTORY, share_row, speed_target, weight_target

Found = dict[str, Any]
_NONE = "–"


def text(results: Found) -> str:
    """The whole part of the page."""
    found = results["peers"]
    parts = [_about(results), _values(found), _RATIOS, _ratios(found), _targets(results)]
    return "\n\n".join(filter(None, parts))


def _about(results: Found) -> str:
    size = results["sizes"]
    steps, history = (size[each] * size["episode"] for each in ("episodes", "history"))
    quick = "**A quick look: too few samples to judge anything by.** " if results["quick"] else ""
    return (
        f"{quick}{machine.line(results['machine'])}. {steps:,} steps ({history:,} with history), "
        f"rounds: {size['rounds']}, slow ones once; killed after {size['killed']:,} acknowledged steps at full speed, "
        f"and after {size['paced']} at {size['pace']} a second; {results['minutes']:.0f} min in all."
    )


# --- values -----------------------------------------------------------------------------------------------------------

_VALUES = (
    "recorder", "version", "steps/s, stored", "caller p50 / p99, µs", "bytes a step", "with full history", "open, s",
    "memory, MB", "lost, no kill", "lost, kill -9", "lost, paced, kill -9",
)  # fmt: skip


def _values(found: dict[str, Found]) -> str:
    return markdown(_VALUES, [_value_row(name, each) for name, each in found.items()])


def _value_row(name: str, found: Found) -> list[str]:
    rounds = [each["theirs"] for each in found["rounds"]]
    history = found.get("history")
    told: dict[str, str] = {}
    if rounds:
        waits = " / ".join(short(_middle(rounds, each)) for each in ("p50", "p99"))
        told = {
            "version": rounds[0]["version"],
            "rate": f"{_middle(rounds, 'rate'):,.0f}",
            "waits": waits,
            "bytes": short(median(map(weight, rounds))),
            "open": f"{_middle(rounds, 'open'):.2f}",
            "memory": f"{max(_middle(rounds, 'memory'), 0):.0f}",
            "closed": _lost([_closed(each) for each in [*rounds, *filter(None, [history])]]),
        }
    told["history"] = short(weight(history)) if history else _NONE
    told |= {each: _lost(found[each]) for each in ("killed", "paced")}
    version = told.get("version", _NONE)
    if reason := found.get("left_out"):
        version = f"left out: {reason}"
    columns = ("rate", "waits", "bytes", "history", "open", "memory", "closed", "killed", "paced")
    return [f"**{name}**" if NAMES[name].is_ours else name, version, *(told.get(each, _NONE) for each in columns)]


def _middle(rounds: list[Found], key: str) -> float:
    return median(each[key] for each in rounds)


def weight(one: Found) -> float:
    """Bytes a step that is there: whoever lost steps does not weigh less for it."""
    return one["bytes"] / (one["kept"] or one["steps"])


def _closed(one: Found) -> tuple[int, int]:
    """Lost although it was closed, of how many."""
    return one["steps"] - one["kept"], one["steps"]


def _lost(outcomes: list[tuple[int, int]]) -> str:
    if not outcomes:
        return _NONE
    lost, recorded = (sum(column) for column in zip(*outcomes, strict=True))
    return f"{lost:,} of {recorded:,}" if lost else "0"


# --- ratios -----------------------------------------------------------------------------------------------------------

_RATIOS = (
    "How trackway compares with each, measured next to it in the same round (`2.00x better`: twice as fast, half as "
    "long, half as large):"
)
_COMPARED: dict[str, Callable[[Found, Found], float]] = {
    "steps/s": lambda theirs, ours: ours["rate"] / theirs["rate"],
    "caller p50": lambda theirs, ours: theirs["p50"] / ours["p50"],
    "caller p99": lambda theirs, ours: theirs["p99"] / ours["p99"],
    "bytes a step": lambda theirs, ours: weight(theirs) / weight(ours),
    "open": lambda theirs, ours: theirs["open"] / ours["open"],
    "memory": lambda theirs, ours: max(theirs["memory"], 0) / max(ours["memory"], 0.1),
}


def _ratios(found: dict[str, Found]) -> str:
    header = ("trackway beside", *_COMPARED, "bytes, full history")
    others = {name: each for name, each in found.items() if name != OURS and each["rounds"]}
    return markdown(header, [_ratio_row(name, each, found[OURS].get("history")) for name, each in others.items()])


def _ratio_row(name: str, found: Found, ours: Found | None) -> list[str]:
    cells = [name]
    for each in _COMPARED.values():
        ratio = median(each(pair["theirs"], pair["ours"]) for pair in found["rounds"])
        cells.append(Beside(name, "", ratio).told() or _NONE)
    history = found.get("history")
    cells.append(Beside(name, "", weight(history) / weight(ours)).told() if history and ours else _NONE)
    return cells


# --- what the design asks for -----------------------------------------------------------------------------------------


def _targets(results: Found) -> str:
    rows = [*map(_event_row, results["events"]), *_step_rows(results["peers"])]
    cells = [(each.what, each.target.text, each.value, each.target.told()) for each in rows if each.target]
    return "What the design asks for, and what was measured here:\n\n" + markdown(
        ("what", "target", "measured", "verdict"), cells
    )


def _event_row(plain: Found) -> Row:
    """The event's own figures, and how they compare with a plain write."""
    beside = [Beside(**each) for each in plain["beside"]]
    told = "".join(f"; {each.name} {each.value}, {each.told()}" for each in beside)
    target = Target(**plain["target"]) if plain["target"] else None
    return Row(f"record an event: {plain['what']}", f"{plain['value']} µs (p50 / p99 / p999){told}", target=target)


def _step_rows(found: dict[str, Found]) -> Iterator[Row]:
    ours = found[OURS]
    rounds = [each["theirs"] for each in ours["rounds"]]
    if rounds:
        rate, whole = _middle(rounds, "rate"), not any(_closed(each)[0] for each in rounds)
        target = speed_target(rate, whole=whole)
        yield Row("sustained, sealed into the store, one core", f"{rate:,.0f} steps/s", target=target)
    outcomes = [each for name in found if NAMES[name].is_ours for each in _outcomes(found[name])]
    if outcomes:
        none = not any(lost for lost, _ in outcomes)
        recorded = sum(count for _, count in outcomes)
        told = f"{sum(lost for lost, _ in outcomes):,} of {recorded:,} acknowledged, {len(outcomes)} kills"
        yield Row("lost at kill -9, all journals", told, target=Target("0, none twice", none))
    if rounds:
        each = median(map(weight, rounds))
        yield Row("bytes a step", short(each), target=weight_target(each, BYTES_A_STEP, whole=whole))
    if history := ours.get("history"):
        whole = not _closed(history)[0]
        target = weight_target(weight(history), BYTES_WITH_HISTORY, whole=whole)
        yield Row("bytes a step, full history", short(weight(history)), target=target)
        yield share_row(weight(history) / history["raw"])


def _outcomes(found: Found) -> list[tuple[int, int]]:
    return [*found["killed"], *found["paced"]]
