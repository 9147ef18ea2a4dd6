"""`headwater flow watch`: deployed flows as they run, from what their host writes down."""

from __future__ import annotations

import json as encoder
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.deploy import DEFAULT, Flows
from headwater.cli.output import Json, console, print_json, print_rich

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

    from headwater.deploy.monitoring.seen import Seen

BARS = "▁▂▃▄▅▆▇█"
_SPARK = 30
"""Pieces of time in a sparkline."""
_OLD = 5.0
"""Seconds without a measurement after which that is said."""
_COLOURS = {"healthy": "green", "bursting": "yellow", "growing": "red", "unknown": "dim"}
_COLUMNS = (
    *("node", "kind", "unit", "in", "out", "in/s", "out/s", "out/in", "in transit", "length"),
    *("expected", "forecast", "service", "efficiency", "verdict", "because"),
)
_TEXTS = ("node", "kind", "unit", "length", "verdict", "because")
_SPARE = ("because", "kind", "forecast", "expected", "efficiency", "unit", "service", "out/s")
"""Columns that a narrow terminal does without, one after another."""


def watch(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A flow; all by default.", show_default=False),
    ] = None,
    flows: Flows = DEFAULT,
    once: Annotated[bool, typer.Option("--once", help="Show it as it is now, and end.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    matrix: Annotated[
        bool,
        typer.Option("--matrix", help="Print the queue lengths: a line a node, a column a second."),
    ] = False,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print metrics in Prometheus' format, and end.")
    ] = False,
    json: Json = False,
) -> None:
    """Watch deployed flows: events, rates, queue lengths and a verdict for each node.

    It reads what the process that runs the flows writes down every second, until Ctrl-C. With
    `--json` it prints a line for each look.

    Example: `headwater flow watch weather`
    """
    if sum((matrix, prometheus, json)) > 1:
        raise typer.BadParameter("give one of --matrix, --prometheus and --json")
    if matrix or prometheus or once:
        _print(name, flows, matrix, prometheus, json)
        return
    try:
        _follow(name, flows, every, json)
    except KeyboardInterrupt:
        return


def _print(name: str | None, flows: Path, matrix: bool, prometheus: bool, json: bool) -> None:
    seen, hosted = _look(name, flows)
    if json:
        told = _told(seen, hosted, history=True)
        print_json([encoder.dumps(told, ensure_ascii=False, indent=1), "\n"])
    elif prometheus:
        from headwater.deploy.monitoring.exporting import text

        print_json([text(each.status for each in seen)])
    elif matrix:
        print_json(_matrix(seen, console()))
    else:
        out = console()
        for line in _news(flows, seen, hosted):
            out.print(line, style="yellow", markup=False)
        for each in seen:
            for part in _parts(each):
                out.print(part, markup=False) if isinstance(part, str) else print_rich(out, part)


def _follow(name: str | None, flows: Path, every: float, json: bool) -> None:
    if json:
        while True:
            print_json([encoder.dumps(_told(*_look(name, flows)), ensure_ascii=False), "\n"])
            time.sleep(every)
    out = console()
    if not out.is_terminal:
        while True:
            _print(name, flows, False, False, False)
            time.sleep(every)
    from rich.live import Live

    with Live(console=out, auto_refresh=False) as live:
        while True:
            live.update(_group(out, flows, *_look(name, flows)), refresh=True)
            time.sleep(every)


def effect(name: str, flows: Path, units: list[str], seconds: float) -> None:
    """Print the nodes of some units as they are a moment after a change."""
    time.sleep(seconds)
    seen, _ = _look(name, flows)
    for each in seen:
        nodes = [row for row in each.status["nodes"] if row["unit"] in units]
        if nodes:
            alone = type(each)({**each.status, "nodes": nodes}, each.history)
            print_rich(console(), _table(alone, _SPARE[:6]))


def _look(name: str | None, flows: Path) -> tuple[list[Seen], bool]:
    from headwater.deploy.mailbox import is_hosted
    from headwater.deploy.monitoring.seen import look

    return look(flows, name), is_hosted(flows)


def _told(seen: list[Seen], hosted: bool, *, history: bool = False) -> dict[str, Any]:
    flows = [{**each.status, **({"history": each.history} if history else {})} for each in seen]
    return {"hosted": hosted, "flows": flows}


# --- for people -------------------------------------------------------------------------------


def _news(flows: Path, seen: list[Seen], hosted: bool) -> Iterator[str]:
    """What is to be known before the tables are believed."""
    if not hosted:
        yield (
            f"no process runs the flows of {flows}: this is how they were last; "
            f"`headwater flow run --flows {flows}` goes on with them"
        )
    elif not seen:
        yield "the process that runs them has just begun; nothing is measured yet"
    elif (age := max(each.age for each in seen)) > _OLD:
        yield f"measured {age:.0f} s ago: the process that runs them is busy, or hangs"


def _group(out: Console, flows: Path, seen: list[Seen], hosted: bool) -> Group:
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = [Text(line, style="yellow") for line in _news(flows, seen, hosted)]
    for each in seen:
        parts += [Text(part) if isinstance(part, str) else part for part in _parts(each, out)]
    return Group(*parts)


def _parts(seen: Seen, fits: Console | None = None) -> Iterator[str | Table]:
    status = seen.status
    states = [unit["state"] for unit in status["units"]]
    counts = ", ".join(f"{states.count(each)} {each}" for each in dict.fromkeys(states))
    doing = f", {status['doing']}" if status["doing"] else ""
    wanted = "" if status["wanted"] == "running" else f" · {status['wanted']}"
    yield f"flow {seen.flow} · version {status['version']}{wanted}{doing} · units: {counts}"
    yield _table(seen) if fits is None else _fitting(seen, fits)
    for unit in status["units"]:
        if unit["error"] is not None:
            yield f"unit {unit['id']} {unit['state']}: {unit['error']}"
    for job, left in status.get("finishing", {}).items():
        yield f"job {job} is no longer in the flow, and still does {left:,.0f} events"
    yield ""


def _fitting(seen: Seen, out: Console) -> Table:
    """The table without columns for which there is no room."""
    from rich.measure import Measurement

    for spared in range(len(_SPARE) + 1):
        made = _table(seen, _SPARE[:spared])
        if Measurement.get(out, out.options.update(max_width=10_000), made).maximum <= out.width:
            break
    return made


def _table(seen: Seen, without: tuple[str, ...] = ()) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    shown = [column for column in _COLUMNS if column not in without]
    for column in shown:
        words = column in _TEXTS
        made.add_column(column, justify="left" if words else "right", no_wrap=column != "because")
    first = {unit["nodes"][0] for unit in seen.status["units"]}
    for row in seen.status["nodes"]:
        cells = _cells(row, sparkline(seen.lengths(row["node"])) if row["node"] in first else "")
        colour = _COLOURS.get(row["verdict"], "")
        texts = dict(zip(_COLUMNS, cells, strict=True))
        styles = {"verdict": colour}
        made.add_row(*(Text(texts[column], style=styles.get(column, "")) for column in shown))
    return made


def _cells(row: dict[str, Any], spark: str) -> tuple[str, ...]:
    expects = row["forecast"]
    length = None if expects is None else expects["in_transit"]
    return (
        row["node"],
        row["kind"],
        row["unit"] or "",
        _count(row["in"]),
        _count(row["out"]),
        _number(row["rate_in"]),
        _number(row["rate_out"]),
        _number(row["cardinality"]),
        _count(row["in_transit"]),
        spark,
        _number(row["expected"]),
        "∞" if expects is not None and length is None else _number(length),
        _seconds(row["service"]),
        "" if row["efficiency"] is None else f"{row['efficiency']:.0%}",
        row["verdict"] or "",
        _because(row),
    )


def _because(row: dict[str, Any]) -> str:
    left = row["exhaustion"]
    return (row["reason"] or "") + ("" if left is None else f"; full in {_seconds(left)}")


def sparkline(lengths: list[int]) -> str:
    """The last lengths of a queue as small bars, the highest of them a whole one.

    >>> sparkline([0, 1, 2, 4, 8])
    '▁▁▂▄█'
    """
    recent = lengths[-_SPARK:]
    top = max(recent, default=0)
    return "".join(BARS[(len(BARS) - 1) * each // top if top else 0] for each in recent)


def _matrix(seen: list[Seen], out: Console) -> Iterator[str]:
    """Lines of lengths, the present last; a terminal gets as many columns as it has room for."""
    for each in seen:
        rows = each.history.get("nodes", {})
        every = each.history.get("every", 1.0)
        size = max(map(len, rows.values()), default=0)
        if out.is_terminal:
            size = min(size, max(1, (out.width - 24) // 8))
        ago = [f"{every * (place + 1 - size):g}" for place in range(size)]
        yield "\t".join([f"{each.flow} seconds", *ago]) + "\n"
        for node, lengths in rows.items():
            yield "\t".join([node, *map(str, lengths[len(lengths) - size :])]) + "\n"


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def _seconds(value: float | None) -> str:
    """A length of time in a few characters."""
    if value is None:
        return ""
    for size, unit in ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min")):
        if value >= 2 * size:
            return f"{value / size:.3g} {unit}"
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"
