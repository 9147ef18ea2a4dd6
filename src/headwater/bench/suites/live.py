"""What the live graph costs in flows, and when it knows: Ananke's Figures 10 to 16.

Both queries of a domain run together in one flow, as in the paper. Input runs through Spark here;
the graph alone is measured by `headwater.bench.graphs`.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.bench.graphs import EDGE_RATES, KEYS, OVERLAPS, SIZES, verdict, with_edges
from headwater.bench.harness import BASELINE, Case
from headwater.bench.lab import LIVE, OPTIONS
from headwater.bench.report import RATES, Table, rates, reasons
from headwater.errors import HeadwaterError
from headwater.examples import load, synthetic
from headwater.flow.reach_rules import longest_wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from headwater import Flow
    from headwater.bench.harness import Outcome
    from headwater.bench.lab import Lab
    from headwater.live.graph import Expiry
    from headwater.query.graph import Graph

Floats: TypeAlias = npt.NDArray[np.float64]
Watermarks: TypeAlias = dict[Any, float]
"""By vertex: a watermark in microseconds."""

DOMAINS = ("linear_road", "smart_grid", "vehicle_tracking", "object_annotation")
"""The paper's use cases, two queries each."""

EAGER = "eager"
GOAL = 0.90
"""The least share of eager's rate that is to be left with the live graph."""

RECORDS = {
    "linear_road": 1_000_000,
    "smart_grid": 1_000_000,
    "vehicle_tracking": 300_000,
    "object_annotation": 40_000,
}
"""Records of a run, so that it takes seconds; frames of Object Annotation have 2 KB each."""

# --- throughput -------------------------------------------------------------------------------

_OF_EAGER, _OF_EAGER_95 = "of eager", "of eager, 95 %"


def throughput(lab: Lab, domains: Sequence[str] = DOMAINS) -> Iterator[Table]:
    """One table: each domain's flow without capture, with edges, and with the live graph."""
    cases = []
    for domain in domains:
        records = lab.records or RECORDS[domain]
        lab.writing(f"{records:,} records of {domain}")
        data = lab.folder / domain
        load(domain).generate(data, records, files=lab.files)
        make = partial(flow, lab.spark, domain, data, OPTIONS)
        labels = {"domain": domain, "queries": " + ".join(load(domain).SINKS)}
        cases.append(Case(labels, records, lab.captured(make)))
    table = Table(
        f"Figures 10 to 14, whole flows through Spark, both queries at once, medians of "
        f"{lab.pairs}",
        {"domain": "", **_with_eager(RATES)},
        notes=[
            f"live: eager with the live graph; goal: at least {GOAL:.2f} of the rate of eager",
        ],
    )
    for outcome in lab.compare(cases):
        table.rows.extend(_compared(outcome))
        table.notes.extend(reasons(outcome))
    yield table


def flow(spark: SparkSession, domain: str, data: Path, options: dict[str, str]) -> Flow:
    """Both queries of a domain over its stream in a folder."""
    import headwater as hw

    made = hw.Flow(domain, spark)
    load(domain).sinks(made, data, options=options)
    return made


def _with_eager(columns: dict[str, str]) -> dict[str, str]:
    """The columns of rates, with those that compare to eager before the goal."""
    at = list(columns).index("goal")
    items = list(columns.items())
    return dict([*items[:at], (_OF_EAGER, ".3f"), (_OF_EAGER_95, ".3f"), *items[at:]])


def _compared(outcome: Outcome) -> Iterator[dict[str, Any]]:
    for row in rates(outcome):
        if row["mode"] != LIVE or not {LIVE, EAGER} <= set(outcome.samples):
            yield dict(row)
            continue
        ratio = outcome.ratio(LIVE, EAGER)
        known = outcome.interval(LIVE, EAGER)
        met = f"met: ≥ {GOAL:.2f}" if ratio >= GOAL else f"missed: < {GOAL:.2f}"
        interval = None if known is None else [round(known.low, 4), round(known.high, 4)]
        yield {**row, _OF_EAGER: round(ratio, 4), _OF_EAGER_95: interval, "goal": met}


# --- the synthetic grid -----------------------------------------------------------------------


def grid(
    lab: Lab, sizes: Sequence[int] = SIZES, overlaps: Sequence[int] = OVERLAPS
) -> Iterator[Table]:
    """One table: Figure 16's grid through Spark, with the live graph and without capture."""
    records = lab.records or RECORDS["linear_road"]
    lab.writing(f"{records:,} synthetic records")
    data = lab.folder / "synthetic"
    # A result's records don't depend on the sizes: all run over one stream.
    synthetic.generate(data, records, keys=min(KEYS, records // 100), files=lab.files)
    cases = []
    for size, overlap in itertools.product(sizes, overlaps):
        make = partial(_synthetic, lab, data, size, overlap)
        variants = {m: v for m, v in lab.captured(make).items() if m in (BASELINE, LIVE)}
        cases.append(Case({"size": size, "overlap %": overlap}, records, variants))
    table = Table(
        f"Figure 16, whole flows through Spark, {records:,} records, medians of {lab.pairs}",
        {"size": ",", "overlap %": ",", **EDGE_RATES},
        notes=["none: the same flow without capture, to compare with"],
    )
    for outcome in lab.compare(cases):
        for row in with_edges(outcome, LIVE):
            if row["mode"] == BASELINE:
                del row["edges/s"], row["edges/CPU s"]
            table.rows.append(row)
        table.notes.extend(reasons(outcome))
    table.notes.append(verdict(table.rows))
    yield table


def _synthetic(lab: Lab, data: Path, size: int, overlap: int) -> Flow:
    import headwater as hw

    made = hw.Flow("synthetic", lab.spark)
    synthetic.sinks(made, data, size=size, overlap=overlap, options=OPTIONS)
    return made


# --- provenance latency -----------------------------------------------------------------------

STEPS = 10
"""Watermarks in a time of U: a batch reads that much of the stream."""
SPAN = 3
"""The stream that is read is so many times U."""
LATENCY_RECORDS = {
    "linear_road": 60_000,
    "smart_grid": 24_000,
    "vehicle_tracking": 40_000,
    "object_annotation": 2_400,
}
"""Records of which the first are read: as many as come within the span."""

_KINDS = ("source", "result", "edge", "source label", "result label")


@dataclass(frozen=True, slots=True)
class Delays:
    """When the components of a graph were delivered, in multiples of U, and the labels by id."""

    means: dict[str, float]
    labels: Watermarks
    """Of the records."""
    vertices: Watermarks
    edges: int


def latency(
    lab: Lab, domains: Sequence[str] = DOMAINS, steps: int = STEPS, span: int = SPAN
) -> Iterator[Table]:
    """One table: Figure 15, for the tight rule and for Ananke's, on the same input."""
    table = Table(
        "Figure 15: provenance latency in multiples of U, means, whole flows through Spark",
        {"domain": "", "expiry": "", "U s": ",.1f", **dict.fromkeys(_KINDS, ".3f")}
        | {"records": ",", "edges": ",", "labels": ","},
        notes=[
            "vertex: watermark of its batch - its time; edge: its own - that of its later vertex",
            "label: its own - that of its vertex, for records that both rules have labelled",
            f"a batch reads 1/{steps} of U: between two watermarks nothing is delivered",
        ],
    )
    for done, domain in enumerate(domains):
        lab.progress(f"latency of {domain}", done, len(domains))
        data, wait = _slices(lab, domain, steps, span)
        graphs = {rule: _graph(lab, domain, data, rule) for rule in _RULES}
        tight, ananke = (_delays(graphs[rule], wait) for rule in _RULES)
        both = tight.labels.keys() & ananke.labels.keys()
        for rule, found in zip(_RULES, (tight, ananke), strict=True):
            late = [found.labels[key] - found.vertices[key] for key in both]
            means = {**found.means, "source label": _mean(np.array(late), wait)}
            table.rows.append(
                {
                    "domain": domain,
                    "expiry": rule,
                    "U s": wait / 1e6,
                    **{kind: _rounded(means[kind]) for kind in _KINDS},
                    "records": len(found.vertices),
                    "edges": found.edges,
                    "labels": len(found.labels),
                }
            )
        table.notes.append(f"{domain}: {earlier(tight.labels, ananke.labels, wait)}")
    lab.progress("done", len(domains), len(domains))
    yield table


_RULES: tuple[Expiry, ...] = ("tight", "ananke")


def earlier(tight: Watermarks, ananke: Watermarks, wait: int) -> str:
    """By how much the tight rule labels earlier; refused where it labels anything later.

    >>> earlier({1: 10, 2: 10, 3: 30}, {1: 20, 2: 10}, 100)
    'no tight label is later; of 2 by both rules 1 are earlier, by 0.05 U on average; 1 only tight'
    """
    late = [key for key, at in ananke.items() if tight.get(key, at + 1) > at]
    if late:
        raise HeadwaterError(
            f"{len(late)} labels are later by the tight rule than by Ananke's, the first of record "
            f"{min(late)}: the measurement is void"
        )
    gained = [at - tight[key] for key, at in ananke.items()]
    mean = float(np.mean(gained)) / wait if gained else 0.0
    return (
        f"no tight label is later; of {len(ananke):,} by both rules "
        f"{sum(g > 0 for g in gained):,} are earlier, by {mean:.2g} U on average; "
        f"{len(tight) - len(ananke):,} only tight"
    )


def _slices(lab: Lab, domain: str, steps: int, span: int) -> tuple[Path, int]:
    """The first part of a domain's stream, a file for each step of the watermark; and U in µs."""
    example = load(domain)
    records = lab.records or LATENCY_RECORDS[domain]
    data = lab.folder / f"slices-{domain}"
    (whole,) = example.generate(data, records, files=1)
    times = pq.read_table(whole, columns=["ts"])["ts"].cast(pa.int64()).to_numpy()
    made = flow(lab.spark, domain, data, {})
    (source,) = made.sources.values()
    wait = longest_wait(list(made.sinks.values()), source)
    if wait is None:
        raise HeadwaterError(f"the flow of {domain} has no U: its records reach without bound")
    shutil.rmtree(data)
    files = round(float(times.max() - times.min()) * steps / wait)
    files = min(records, max(1, files))
    for file in sorted(example.generate(data, records, files=files))[steps * span :]:
        file.unlink()
    return data, wait


def _graph(lab: Lab, domain: str, data: Path, expiry: Expiry) -> Graph:
    """The live graph of a run with a batch for each file."""
    import headwater as hw

    with tempfile.TemporaryDirectory(prefix="run-", dir=lab.folder) as name:
        store = Path(name) / "store"
        flow(lab.spark, domain, data, {"maxFilesPerTrigger": "1"}).start(
            store=store,
            checkpoint=Path(name) / "checkpoint",
            capture=EAGER,
            live=True,
            expiry=expiry,
            available_now=True,
        ).wait()
        with hw.open(store) as opened:
            return opened.graph()


def _delays(graph: Graph, wait: int) -> Delays:
    """The latencies by the definitions of the paper's section 3."""
    vertices, labels = graph.vertices, graph.labels
    means: dict[str, float] = {}
    at: dict[str, Watermarks] = {}
    for kind in ("source", "result"):
        mine = vertices.filter(pc.equal(vertices["kind"], kind))
        delivered, time = _micros(mine["delivered"]), _micros(mine["event_time"])
        means[kind] = _mean(delivered - time, wait)
        # Results of two sinks, and they alone, may share an id.
        at[kind] = dict(zip(_keys(mine, kind), delivered.tolist(), strict=True))
    edges = graph.edges
    sources = np.array([at["source"][key] for key in edges["source_id"].to_pylist()], np.float64)
    sinks = zip(edges["sink"].to_pylist(), edges["result_id"].to_pylist(), strict=True)
    results = np.array([at["result"][key] for key in sinks], np.float64)
    means["edge"] = _mean(_micros(edges["delivered"]) - np.maximum(sources, results), wait)
    labelled: dict[str, Watermarks] = {}
    for kind in ("source", "result"):
        mine = labels.filter(pc.equal(labels["kind"], kind))
        found = dict(zip(_keys(mine, kind), _micros(mine["delivered"]).tolist(), strict=True))
        labelled[kind] = found
        late = np.array([when - at[kind][key] for key, when in found.items()], np.float64)
        means[f"{kind} label"] = _mean(late, wait)
    return Delays(means, labelled["source"], at["source"], edges.num_rows)


def _keys(rows: pa.Table, kind: str) -> list[Any]:
    ids = rows["id"].to_pylist()
    return ids if kind == "source" else list(zip(rows["name"].to_pylist(), ids, strict=True))


def _micros(times: pa.ChunkedArray) -> Floats:
    """Microseconds; not a number where there is no time, as before the first watermark."""
    numbers: Floats = times.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def _mean(delays: Floats, wait: int) -> float:
    known = delays[~np.isnan(delays)]
    return float(known.mean()) / wait if len(known) else float("nan")


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 4)
