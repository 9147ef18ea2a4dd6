"""What running deployed flows costs: Streamflow's Figures 51 (runtimes), 60 and 63.

All is measured in one process, warm, on flows of a node or a few that a host has deployed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.bench.paired import interval, rounded
from headwater.bench.report import Table
from headwater.compose import Composition
from headwater.deploy import Host
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from headwater.bench.harness import Progress

RATES = {
    "operators": (10, 100, 1_000, 10_000),
    "functions": (10, 100, 1_000, 10_000),
    "jobs": (1, 5, 10, 20),
}
"""Events a second that are published, by runtime."""
BACKLOG = {"operators": 200_000, "functions": 200_000, "jobs": 60}
"""Events that are there at once, to see how fast they go through."""
CHAINS = (1, 2, 4, 8, 16)
EVENTS = (1, 10, 40, 80)
STATIC = 0.02
"""Seconds of the static step."""

RUNTIMES = {
    "runtime": "",
    "published/s": ",",
    "results/s": ",.1f",
    "latency p50 ms": ",.0f",
    "p95 ms": ",.0f",
    "keeps up": "",
}
DEPLOY = {
    "nodes": ",",
    "units": ",",
    "deploy s": ",.2f",
    "a flow's start s": ",.2f",
    "times a start": ".2f",
    "95 %": ".2f",
    "change s": ",.2f",
    "plan ms": ",.1f",
}
REUSE = {"events": ",", "reused s": ",.2f", "each time s": ",.2f", "gain": ".2f", "95 %": ".2f"}

SCHEMA = "n bigint, at timestamp"
_HERE = "headwater.bench.deployed"

_ARROW = "keep: [n, at], batches: arrow"
FLOWS = {
    "operators": "{map: {from: events, columns: {twice: n * 2}, keep: [n, at]}}",
    "functions": f"{{function: {{from: events, call: '{_HERE}:twice', schema: twice bigint, "
    f"{_ARROW}}}}}",
    "jobs": "{job: {from: events, call: 'headwater.bench.nothing:job', slots: 2, "
    "schema: 'n bigint, at timestamp, twice bigint'}}",
}
"""A node of each runtime."""


def twice(events: pa.RecordBatch) -> pa.Table:
    """A function that does next to nothing."""
    return pa.table({"twice": pa.array(events["n"].to_numpy() * 2)})


def load(seconds: float) -> float:
    """A static step: it computes for so long."""
    until = time.perf_counter() + seconds
    value = 0.0
    while time.perf_counter() < until:
        value += float(np.linalg.norm(np.ones((50, 50))))
    return seconds


def use(events: pa.RecordBatch, loaded: float) -> pa.Table:
    """What a function makes of events and the static step's value."""
    return pa.table({"used": pa.array(np.full(len(events), loaded))})


def load_and_use(events: pa.RecordBatch, seconds: float) -> pa.Table:
    """The same where the static step runs for each event, as a workflow that is triggered does."""
    return pa.table({"used": pa.array([load(seconds) for _ in range(len(events))])})


def flow_of(name: str, **nodes: str) -> Composition:
    """A flow from the stream `<name>-in` through nodes, given as YAML, to `<name>-out`."""
    source = f'stream: {name}-in, schema: "{SCHEMA}", event_time: at, watermark: 1 second, id: n'
    text = "\n".join(f"  {node}: {told}" for node, told in nodes.items())
    last = list(nodes)[-1]
    return Composition.parse(
        f"flow: {name}\nnodes:\n  events: {{source: {{{source}}}}}\n{text}\n"
        f"  out: {{sink: {{from: {last}, stream: {name}-out}}}}\n"
    )


# --- runtimes ---------------------------------------------------------------------------------


def runtimes(
    seconds: float,
    folder: Path | None,
    progress: Progress,
    rates: Mapping[str, Sequence[int]] = RATES,
    backlog: Mapping[str, int] = BACKLOG,
) -> Table:
    """Events a second and latency of each runtime (Figure 51)."""
    table = Table(f"One node in each runtime; {seconds:g} s at each rate", RUNTIMES)
    total = sum(len(each) + 1 for each in rates.values())
    done = 0
    for runtime, all_rates in rates.items():
        with hosting(folder) as host:
            host.deploy(flow_of(runtime, work=FLOWS[runtime]))
            _at_rate(host, runtime, min(100, all_rates[-1]), seconds)  # warm
            for rate in all_rates:
                progress(f"{runtime}, {rate}/s", done, total)
                table.rows.append(_at_rate(host, runtime, rate, seconds))
                done += 1
            progress(f"{runtime}, all at once", done, total)
            size = backlog[runtime]
            took = _through(host, runtime, size)
            table.rows.append({"runtime": runtime, "published/s": None, "results/s": size / took})
            done += 1
    progress("done", total, total)
    table.notes.append(
        "latency: from an event's publishing to that of its result; the last row of a runtime is "
        "of events that were all there at once; it keeps up if results came as fast as events"
    )
    return table


def _at_rate(host: Host, runtime: str, rate: int, seconds: float) -> dict[str, Any]:
    """Publish at a rate, some twenty times a second at most, and see when results come."""
    stream = f"{runtime}-out"
    first = int(host.streams.log(stream).bounds()[1])
    every = max(1, round(rate / 20))
    begun, sent = time.perf_counter(), 0
    number = int(host.streams.log(f"{runtime}-in").bounds()[1])
    while (now := time.perf_counter() - begun) < seconds:
        due = int(now * rate)
        if due - sent >= every:
            _publish(host, runtime, number + sent, due - sent)
            sent = due
        time.sleep(0.005)
    kept_up = int(host.streams.log(stream).bounds()[1]) - first
    _wait(host, stream, first + sent)
    latencies, results = [], 0
    for batch in host.streams.read(stream, first):
        sent_at = batch.table["at"].cast(pa.int64()).to_numpy() / 1e3
        latencies.append(batch.at - sent_at)
        results += len(batch.table)
    took = time.perf_counter() - begun
    found = np.concatenate(latencies) if latencies else np.zeros(1)
    waits = float(np.percentile(found, 95)) / 1e3 * rate
    return {
        "runtime": runtime,
        "published/s": rate,
        "results/s": round(results / took, 1),
        "latency p50 ms": round(float(np.median(found))),
        "p95 ms": round(float(np.percentile(found, 95))),
        "keeps up": "yes"
        if sent - kept_up <= 2 * max(waits, every) and took < 1.5 * seconds + 1
        else "no",
    }


def _through(host: Host, runtime: str, events: int) -> float:
    """Seconds until so many events that come at once have their results."""
    stream = f"{runtime}-out"
    first = int(host.streams.log(stream).bounds()[1])
    number = int(host.streams.log(f"{runtime}-in").bounds()[1])
    begun = time.perf_counter()
    for at in range(0, events, 50_000):
        _publish(host, runtime, number + at, min(50_000, events - at))
    _wait(host, stream, first + events)
    return time.perf_counter() - begun


def _publish(host: Host, flow: str, first: int, events: int) -> None:
    now = datetime.now(UTC)
    host.streams.publish(
        f"{flow}-in",
        pa.table(
            {
                "n": pa.array(np.arange(first, first + events)),
                "at": pa.array([now] * events, pa.timestamp("us", "UTC")),
            }
        ),
    )


def _wait(host: Host, stream: str, events: int, timeout: float = 300.0) -> None:
    until = time.perf_counter() + timeout
    while int(host.streams.log(stream).bounds()[1]) < events:
        if time.perf_counter() > until:
            raise HeadwaterError(f"stream {stream!r} did not get its {events} events in time")
        for deployment in host.deployments.values():
            for unit in deployment.units:
                if unit.state == "failed":
                    raise HeadwaterError(f"unit {unit.record.id}: {unit.error}")
        time.sleep(0.005)


# --- deploying --------------------------------------------------------------------------------


def deploying(
    pairs: int, folder: Path | None, progress: Progress, chains: Sequence[int] = CHAINS
) -> Table:
    """The time to deploy a chain of nodes, beside that of starting it as a flow (Figure 60)."""
    table = Table(f"Deploying chains of functions and filters; medians of {pairs}", DEPLOY)
    took: dict[int, list[tuple[float, float, float, float]]] = {}
    units: dict[int, int] = {}
    with hosting(folder) as host:
        for turn in range(pairs + 1):  # the first warms up
            for at, nodes in enumerate(chains):
                progress(f"{nodes} nodes", turn * len(chains) + at, (pairs + 1) * len(chains))
                flow = _chain(f"chain-{nodes}-{turn}", nodes, 0)
                begun = time.perf_counter()
                flow.plan()
                planned = time.perf_counter() - begun
                deployment, deployed = _timed(partial(host.deploy, flow))
                units[nodes] = len(deployment.units)
                changed = _chain(flow.name, nodes, 1)
                _, change = _timed(partial(host.deploy, changed))
                deployment.stop()
                started = _started(host, flow, nodes, turn)
                if turn:
                    took.setdefault(nodes, []).append((deployed, started, change, planned))
    for nodes, all_times in took.items():
        deployed, started, change, planned = (
            statistics.median(times) for times in zip(*all_times, strict=True)
        )
        table.rows.append(
            {
                "nodes": nodes,
                "units": units[nodes],
                "deploy s": deployed,
                "a flow's start s": started,
                "times a start": deployed / started,
                "95 %": rounded(interval([one / other for one, other, *_ in all_times])),
                "change s": change,
                "plan ms": planned * 1e3,
            }
        )
    table.notes.append(
        "change: the last node is another, so that its unit alone is replaced; a flow's start: the "
        "operators of the chain, without its functions, as one query started from Python"
    )
    return table


def _chain(name: str, nodes: int, turn: int) -> Composition:
    """Filters in a row, every fourth node a function, so that units grow in number too."""
    told, above = {}, "events"
    for number in range(nodes):
        last = number == nodes - 1
        if number % 4 == 3 and not last:
            text = FLOWS["functions"].replace("from: events", f"from: {above}")
        else:
            text = f"{{filter: {{from: {above}, where: 'n >= {-turn if last else 0}'}}}}"
        above = f"n{number}"
        told[above] = text
    return flow_of(name, **told)


def _started(host: Host, flow: Composition, nodes: int, turn: int) -> float:
    import headwater as hw

    made = hw.Flow(f"plain-{nodes}-{turn}", host.spark)
    frame = made.source(
        "events",
        format="parquet",
        path=host.streams.path(f"{flow.name}-in"),
        schema=SCHEMA,
        event_time="at",
        watermark="1 second",
        id="n",
    )
    begun = time.perf_counter()
    for number in range(nodes):
        if number % 4 != 3:
            frame = frame.filter("n >= 0")
    made.sink("out", frame)
    run = made.start(host.store, capture="eager")
    took = time.perf_counter() - begun
    run.stop()
    return took


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.perf_counter()
    found = action()
    return found, time.perf_counter() - begun


# --- static reuse -----------------------------------------------------------------------------


def reusing(
    pairs: int,
    folder: Path | None,
    progress: Progress,
    events: Sequence[int] = EVENTS,
    seconds: float = STATIC,
) -> Table:
    """A static step that is run once, against one that is run for each event (Figure 63)."""
    reused = flow_of(
        "reused",
        loaded=f"{{static: {{call: '{_HERE}:load', static: {{seconds: {seconds}}}}}}}",
        work=f"{{function: {{from: {{events: events, loaded: loaded}}, call: '{_HERE}:use', "
        f"schema: used double, {_ARROW}}}}}",
    )
    each = flow_of(
        "each",
        work=f"{{function: {{from: events, call: '{_HERE}:load_and_use', "
        f"static: {{seconds: {seconds}}}, schema: used double, {_ARROW}}}}}",
    )
    took: dict[tuple[str, int], list[float]] = {}
    total = (pairs + 1) * len(events)
    with hosting(folder) as host:
        for flow in (reused, each):
            host.deploy(flow)
        for turn in range(pairs + 1):  # the first warms up
            for at, number in enumerate(events):
                progress(f"{number} events", turn * len(events) + at, total)
                for flow in (reused, each):
                    found = _through(host, flow.name, number)
                    if turn:
                        took.setdefault((flow.name, number), []).append(found)
    progress("done", total, total)
    table = Table(
        f"A static step of {seconds * 1e3:g} ms before a function; medians of {pairs}", REUSE
    )
    for number in events:
        once = statistics.median(took["reused", number])
        again = statistics.median(took["each", number])
        both = zip(took["reused", number], took["each", number], strict=True)
        gains = [slow / fast for fast, slow in both]
        table.rows.append(
            {
                "events": number,
                "reused s": once,
                "each time s": again,
                "gain": again / once,
                "95 %": rounded(interval(gains)),
            }
        )
    table.notes.append("from the first event's publishing to the last result's; deploying excluded")
    return table


@contextmanager
def hosting(folder: Path | None) -> Iterator[Host]:
    """A host in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as place:
        home = Path(place)
        host = Host(home / "flows", streams=home / "streams")
        with host:
            yield host
