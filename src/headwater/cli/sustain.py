"""`headwater flow sustain`: whether a flow can keep up with its sources, before it is deployed."""

from __future__ import annotations

import json as encoder
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headwater.cli.output import Json, print_json, print_table
from headwater.plain import plain

if TYPE_CHECKING:
    from headwater.sustain import Forecast, Outcome

T = TypeVar("T")
_SHOWN = ("arrivals", "service", "slots", "utilisation", "waiting", "in_transit", "time")


def sustain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A flow file.", show_default=False)],
    rates: Annotated[
        list[str],
        typer.Option("--rates", metavar="NODE=RATE,…", help="Events of each source: `radar=5/s`."),
    ] = [],  # noqa: B006 - typer's way of taking none
    service: Annotated[
        list[str],
        typer.Option("--service", metavar="NODE=TIME,…", help="Time for one task: `storms=200ms`."),
    ] = [],  # noqa: B006
    slots: Annotated[
        list[str],
        typer.Option("--slots", metavar="NODE=N,…", help="Tasks at the same time: `storms=4`."),
    ] = [],  # noqa: B006
    cardinality: Annotated[
        list[str],
        typer.Option("--cardinality", metavar="NODE=X,…", help="Events out for each in."),
    ] = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Say whether each node of a flow can keep up, as a network of M/M/c queues.

    What is given here goes before `rate`, `takes`, `slots` and `cardinality` in the file. Exit code
    1 when a node can't keep up.

    Example: `headwater flow sustain weather.yaml --rates radar=5/s --service storms=200ms`
    """
    from headwater.compose import Composition
    from headwater.sustain import units
    from headwater.sustain.flows import forecast_of

    given = {
        "rates": _pairs("--rates", rates, units.per_second),
        "service": _pairs("--service", service, units.seconds),
        "slots": _pairs("--slots", slots, int),
        "cardinality": _pairs("--cardinality", cardinality, float),
    }
    flow = Composition.read(file)
    made = forecast_of(flow, **given)  # type: ignore[arg-type]
    if json:
        told = plain({"flow": flow.name, "outlook": made.outlook, **asdict(made)})
        print_json([encoder.dumps(told, ensure_ascii=False, indent=1), "\n"])
    else:
        print_table(_table(made), False)
        typer.echo(_verdict(flow.name, made))
    if made.outlook == "unsustainable":
        raise typer.Exit(1)


def _pairs(option: str, texts: list[str], read: Callable[[str], T]) -> dict[str, T]:
    """`radar=5/s,gauge=2/s` as a mapping."""
    from headwater.errors import FlowError

    found: dict[str, T] = {}
    for text in ",".join(texts).split(",") if texts else ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or name in found:
            what = "is there twice" if name in found else "is not NODE=VALUE"
            raise typer.BadParameter(f"{text!r} {what}", param_hint=option)
        try:
            found[name] = read(value)
        except (FlowError, ValueError) as error:
            said = str(error) if isinstance(error, FlowError) else f"{value!r} is not a number"
            raise typer.BadParameter(said, param_hint=option) from error
    return found


def _table(made: Outcome) -> Any:
    import pyarrow as pa

    columns: dict[str, list[str]] = {"node": [each.node for each in made.forecasts]}
    for name in _SHOWN:
        columns[name.replace("_", " ")] = [_cell(each, name) for each in made.forecasts]
    columns["outlook"] = [each.outlook for each in made.forecasts]
    columns["because"] = [each.reason for each in made.forecasts]
    return pa.table(columns)


def _cell(each: Forecast, name: str) -> str:
    value = getattr(each, name)
    if value is None:
        return "" if each.slots is None else "?"
    most = "" if each.exact or name in ("service", "slots") else "≤ "
    unit = {"arrivals": "/s", "service": " s", "time": " s"}.get(name, "")
    return f"{most}{value:.3g}{unit}".replace("inf", "∞")


def _verdict(flow: str, made: Outcome) -> str:
    lines = [f"flow {flow}: {made.outlook}"]
    if made.factor is not None:
        times = f"{made.factor:.3g} times as much"
        lines.append(f"  node {made.bottleneck} is full when all sources send {times}")
    lines += [
        f"  source {source} has to stay below {rate:.3g}/s while the others are as given"
        for source, rate in made.largest.items()
    ]
    if made.unmeasured:
        lines.append(f"  without a service time: {', '.join(made.unmeasured)}")
    return "\n".join(lines)
