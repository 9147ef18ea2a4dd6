"""What the papers measured, as far as their text says it: what our figures are drawn beside.

Values are those of a paper's text or tables; what only a plot shows is not here, as it could only
be guessed. An overhead of 20 % in time is told as a rate of 1 / 1.20.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ANANKE = "Ananke"
ARIADNE = "Ariadne"
SAF = "SAF"
BIG = "Big Provenance"
STREAMFLOW = "Streamflow"


@dataclass(frozen=True, slots=True)
class Told:
    """One value of a paper, and the row of ours that it stands beside."""

    paper: str
    where: str
    """Its figure or table, and the section whose text has the value."""
    run: str
    """The run whose rows it is compared with."""
    case: Mapping[str, Any]
    """What such a row has in its columns."""
    column: str
    """The column that has the same quantity."""
    value: float
    said: str
    """What the paper says, in few words."""
    high: float | None = None
    """Where the paper gives a range: its upper end."""


def _rate(overhead: float) -> float:
    """The rate that an overhead in time leaves, as a share.

    >>> _rate(0.25)
    0.8
    """
    return 1 / (1 + overhead)


def _ananke() -> list[Told]:
    run = "live-throughput"
    backward = (
        ("linear_road", "Figure 10", 0.97, "GeneaLog: rate 3 % lower than without provenance"),
        ("smart_grid", "Figure 11", 0.91, "GeneaLog: rate 9 % lower than without provenance"),
        ("object_annotation", "Figure 14", 0.79, "GeneaLog: rate 21 % lower than without"),
    )
    forward = (
        ("linear_road", "Figure 10", 0.98, None, "ANK-1: a further drop of 2 %"),
        ("smart_grid", "Figure 11", 0.973, None, "ANK-1: a further drop of 2.7 %"),
        ("vehicle_tracking", "Figure 13", 0.955, 0.98, "ANK-1: 2 to 4.5 % more than GeneaLog"),
        ("object_annotation", "Figure 14", 0.934, 0.961, "a further drop of 3.9 to 6.6 %"),
    )
    told = [
        Told(ANANKE, f"{where}, 6.1", run, {"domain": name, "mode": "eager"}, "ratio", value, said)
        for name, where, value, said in backward
    ]
    told += [
        Told(
            ANANKE,
            f"{where}, 6.1",
            run,
            {"domain": name, "mode": "live"},
            "of eager",
            low,
            said,
            high,
        )
        for name, where, low, high, said in forward
    ]
    # Table 2: tuples a second of the synthetic query, on demand over ANK-1's 131.3.
    streaming = 131.3
    rates = {
        "SQLite, memory /R": (211.4, "SQL-I/R, of which 40 % can be sustained"),
        "SQLite, memory /A": (209.72, "SQL-I/A, of which 40 % can be sustained"),
        "PostgreSQL /R": (54.43, "SQL-P/R"),
        "PostgreSQL /A": (54.80, "SQL-P/A"),
    }
    return told + [
        Told(
            ANANKE,
            "Table 2, 6.4",
            "live-alternatives",
            {"graph": graph},
            "ratio",
            rate / streaming,
            f"{said}: {rate} t/s, ANK-1: {streaming} t/s",
        )
        for graph, (rate, said) in rates.items()
    ]


def _ariadne() -> list[Told]:
    overheads = (
        ("capture-basic", "Figure 13, 6.3", {"window": 10}, "eager", 0.20),
        ("capture-basic", "Figure 13, 6.3", {"window": 100}, "eager", 1.13),
        ("capture-basic", "Figure 13, 6.3", {"window": 10}, "intervals", 0.03),
        ("capture-basic", "Figure 13, 6.3", {"window": 100}, "intervals", 0.16),
        ("capture-windows", "Figure 15, 6.4", {"window": 100, "slide": 1}, "eager", 0.50),
        *(
            ("capture-windows", "6.4", {"window": size, "slide": size // 10}, mode, overhead)
            for size in (20_000, 100_000, 500_000)
            for mode, overhead in (("eager", 1.00), ("intervals", 0.60))
        ),
        ("capture-complex", "Figure 19, 6.6", {"front window": 2}, "eager", 1.00),
        ("capture-complex", "Figure 19, 6.6", {"front window": 2}, "intervals", 0.40),
    )
    told = [
        Told(
            ARIADNE,
            where,
            run,
            {**case, "mode": mode},
            "ratio",
            _rate(overhead),
            f"{overhead:.0%} more time".replace("%", " %"),
        )
        for run, where, case, mode, overhead in overheads
    ]
    # Figure 14: seconds by the number of aggregations, from 1 on.
    none = (3.1, 3.9, 4.8, 5.7)
    seconds = {"eager": (3.9, 7.4, 14.7, 48.6), "intervals": (3.1, 4.4, 5.2, 6.3)}
    for mode, spent in seconds.items():
        for number, (base, took) in enumerate(zip(none, spent, strict=True), start=1):
            case = {"aggregations": number, "mode": mode}
            said = f"{took} s, without provenance {base} s"
            told.append(
                Told(ARIADNE, "Figure 14, 6.3", "capture-nested", case, "ratio", base / took, said)
            )
    return told


def _saf() -> list[Told]:
    saved = (
        (1_024, 85.0, "Figure 11(b), V.A", "almost"),
        (100, 60.0, "Figure 10(b), V.A", "about"),
    )
    stored = {"components": 10, "stored": "keys, first input whole"}
    told = [
        Told(
            SAF,
            where,
            "storage",
            {"payload": payload, **stored},
            "saved %",
            percent,
            f"{word} {percent:g} percent, 10 components, {payload:,} bytes",
        )
        for payload, percent, where, word in saved
    ]
    # An overhead of a throughput: it fell by more than half at any number of components.
    said = "about 70 percent overhead on average, assertions stored, no delay in processing"
    case = {"components": 10, "mode": "eager"}
    return [*told, Told(SAF, "Figure 12(a), V.B", "capture-chain", case, "ratio", 0.30, said)]


def _big_provenance() -> list[Told]:
    edges, size = (127.73, 32.98, 17.13), (28.43, 8.11, 1.47)
    run, case = "reduce-partitions", {"partition": "vertical"}
    return [
        Told(
            BIG,
            "Table I, VI",
            run,
            case,
            "edges ratio",
            7.46,
            f"{edges[0]} million edges in, {edges[2]} million out",
        ),
        Told(
            BIG,
            "Table I, VI",
            run,
            case,
            "MB ratio",
            19.34,
            f"{size[0]} GB in, {size[2]} GB out",
        ),
        Told(
            BIG,
            "Figure 15, VI",
            "reduce-throughput",
            {"cores": 1},
            "MB/s per core",
            6.044,
            "at most 6.044 MB/s for each partition, on a cluster of six nodes",
        ),
        Told(
            BIG,
            "Figure 14, VI",
            "reduce-disorder",
            {"algorithm": "grouping, Headwater"},
            "50 %",
            100.0,
            "Grouping stays 100 % accurate out of order",
        ),
    ]


def _streamflow() -> list[Told]:
    return [
        Told(
            STREAMFLOW,
            "Figure 57, 5.4.2",
            "flow-publish",
            {"publishers": 128},
            "events/s",
            2_000.0,
            "saturates just over 2000 messages a second, by up to 128 publishers",
        ),
        Told(
            STREAMFLOW,
            "Figure 53, 5.4.1",
            "flow-runtimes",
            {"runtime": "operators"},
            "results/s",
            1_114.0,
            "at most 1114 events a second in the CEP engine",
        ),
        Told(
            STREAMFLOW,
            "Figure 53, 5.4.1",
            "flow-runtimes",
            {"runtime": "jobs"},
            "results/s",
            2.0,
            "no more than 2 events a second in the BPEL engine",
        ),
        Told(
            STREAMFLOW,
            "Figure 76, 6.3",
            "flow-window",
            {"window": 3},
            "ratio",
            3.0,
            "in theory: a window of 3 maps each file three times if nothing is kept",
        ),
    ]


TOLD = (*_ariadne(), *_saf(), *_ananke(), *_big_provenance(), *_streamflow())


def told_of(run: str, column: str) -> list[Told]:
    """What papers say of a quantity that a run measures.

    >>> [f"{each.paper}, {each.where}: {each.value}" for each in told_of("storage", "saved %")]
    ['SAF, Figure 11(b), V.A: 85.0', 'SAF, Figure 10(b), V.A: 60.0']
    """
    return [each for each in TOLD if (each.run, each.column) == (run, column)]
