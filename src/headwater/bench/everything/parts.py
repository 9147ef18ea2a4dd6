"""What `headwater bench all` runs: each part of each benchmark, and how much in which size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.bench.everything.sizes import made
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.bench.everything.sizes import Run


def _suite(name: str, small: tuple[str, float], medium: tuple[str, float], full: float) -> Run:
    """A suite of `bench capture`; in full it takes its own sizes."""
    return made(
        f"capture-{name}",
        f"capture --suite {name}",
        quick=("--quick", 5),
        small=small,
        medium=medium,
        full=("", full),
    )


RUNS = (
    _suite(
        "linear-road",
        ("--format parquet --state memory --records 200000 --batches 4", 65),
        ("--format parquet --records 1000000", 330),
        1_500,
    ),
    _suite(
        "basic",
        ("--at 10 --at 100 --records 10000 --batches 4", 65),
        ("--records 30000", 220),
        600,
    ),
    _suite(
        "nested",
        ("--at 2 --records 5000 --batches 4", 60),
        ("--at 1 --at 2 --records 20000", 200),
        1_800,
    ),
    _suite(
        "windows",
        ("--at 1000 --records 10000 --batches 4", 35),
        ("--at 100 --at 20000 --records 100000", 250),
        2_400,
    ),
    _suite(
        "slides",
        ("--at 10 --records 10000 --batches 4", 35),
        ("--at 1 --at 10 --at 100 --records 30000", 180),
        700,
    ),
    _suite(
        "complex",
        ("--at 2 --records 20000 --batches 4", 40),
        ("--at 2 --at 10 --records 100000", 160),
        800,
    ),
    _suite("retrieval", ("--records 5000 --batches 4", 60), ("--records 30000", 200), 2_000),
    _suite(
        "chain",
        ("--at 10 --records 20000 --batches 4", 35),
        ("--at 2 --at 10 --records 100000", 150),
        500,
    ),
    made(
        "storage",
        "storage",
        quick=("--quick", 8),
        small=("--events 20000 --components 10", 45),
        medium=("--components 10", 120),
        full=("", 600),
    ),
    made(
        "operators",
        "operators",
        quick=("--quick", 8),
        small=("--records 20000 --keys 1000 --operator window --operator count_window", 60),
        medium=("--records 100000 --keys 1000", 600),
        full=("", 3_600),
    ),
    made(
        "live-throughput",
        "live --part throughput",
        quick=("--quick", 6),
        small=("--records 20000 --batches 4", 100),
        medium=("--records 100000", 280),
        full=("", 900),
    ),
    made(
        "live-latency",
        "live --part latency",
        quick=("--quick", 8),
        small=("--domain linear-road", 35),
        medium=("--domain linear-road --domain smart-grid", 80),
        full=("", 250),
    ),
    made(
        "live-grid",
        "live --part grid",
        quick=("--quick", 4),
        small=("--size 50 --overlap 25 --records 50000 --batches 4", 35),
        medium=("--size 10 --size 50 --overlap 25 --records 200000", 110),
        full=("", 1_200),
    ),
    made(
        "live-graph",
        "live --part graph",
        quick=("--quick", 2),
        small=("--size 10 --size 50 --overlap 25 --edges 200000", 9),
        medium=("--overlap 0 --overlap 50 --edges 1000000", 90),
        full=("", 700),
    ),
    made(
        "live-alternatives",
        "live --part alternatives",
        quick=("--quick", 6),
        small=("--size 10 --edges 50000", 60),
        medium=("--size 10 --size 50 --edges 200000", 260),
        full=("", 1_500),
    ),
    made(
        "live-memory",
        "live --part memory",
        quick=("--quick", 4),
        small=("--cap 16", 14),
        medium=("--cap 32", 30),
        full=("--cap 128", 120),
    ),
    made(
        "reduce-throughput",
        "reduce --part throughput",
        quick=("--quick", 12),
        small=("--edges 100000", 110),
        medium=("--edges 500000", 200),
        full=("", 800),
    ),
    made(
        "reduce-memory",
        "reduce --part memory",
        small=("--edges 200000", 20),
        medium=("--edges 1000000", 45),
        full=("", 150),
    ),
    made(
        "reduce-ceiling",
        "reduce --part ceiling",
        quick=("--quick", 1),
        small=("--edges 100000", 10),
        medium=("--edges 500000", 35),
        full=("", 70),
    ),
    made(
        "reduce-partitions",
        "reduce --part partitions",
        quick=("--quick", 3),
        small=("--edges 200000", 12),
        medium=("--edges 500000", 30),
        full=("", 60),
    ),
    made(
        "reduce-disorder",
        "reduce --part disorder",
        quick=("--quick", 2),
        small=("--edges 5000", 14),
        medium=("--edges 10000", 40),
        full=("", 150),
    ),
    made(
        "reduce-entities",
        "reduce --part entities",
        quick=("--quick", 1),
        small=("--edges 400000", 13),
        medium=("--edges 2000000", 30),
        full=("", 120),
    ),
    made(
        "flow-publish",
        "flow --part publish",
        quick=("--quick", 2),
        small=("--seconds 0.3", 50),
        medium=("--seconds 1", 120),
        full=("", 220),
    ),
    made(
        "flow-labels",
        "flow --part labels",
        quick=("--quick", 1),
        small=("", 8),
        medium=("", 8),
        full=("", 8),
    ),
    made(
        "flow-runtimes",
        "flow --part runtimes",
        quick=("--quick", 6),
        small=("--seconds 0.4", 60),
        medium=("--seconds 1", 110),
        full=("", 200),
    ),
    made(
        "flow-deploy",
        "flow --part deploy",
        quick=("--quick", 4),
        small=("", 60),
        medium=("", 60),
        full=("", 60),
    ),
    made(
        "flow-static",
        "flow --part static",
        quick=("--quick", 4),
        small=("", 40),
        medium=("", 40),
        full=("", 40),
    ),
    made(
        "flow-window",
        "flow --part window",
        quick=("--quick", 3),
        small=("--mib 1", 80),
        medium=("--mib 4", 150),
        full=("", 450),
    ),
    made(
        "serve-publish",
        "serve --part publish",
        quick=("--quick", 4),
        small=("--seconds 0.4 --clients 1 --clients 8 --clients 32 --clients 128", 25),
        medium=("--seconds 0.5", 50),
        full=("", 95),
    ),
    made(
        "serve-ask",
        "serve --part ask",
        quick=("--quick", 6),
        small=("--seconds 0.4 --edges 1000000", 60),
        medium=("--edges 2000000", 80),
        full=("", 130),
    ),
    made(
        "scale-growth",
        "scale --part growth",
        quick=("--quick", 8),
        small=("--steps 1 --limit 0 --records 10000 --axis records --axis overlap", 80),
        medium=("--steps 1 --limit 0", 360),
        full=("--limit 30", 2_400),
    ),
    made(
        "scale-stores",
        "scale --part stores",
        quick=("--quick", 4),
        small=("--records 1000 --records 100000", 70),
        medium=("--records 1000 --records 10000 --records 100000 --records 300000", 180),
        full=("", 500),
    ),
    made(
        "scale-cores",
        "scale --part cores",
        small=("--records 50000", 100),
        medium=("", 140),
        full=("", 140),
    ),
    made(
        "scale-workers",
        "scale --part workers",
        small=("--records 50000", 110),
        medium=("", 150),
        full=("", 150),
    ),
    made(
        "scale-lake",
        "scale --part lake",
        quick=("--quick", 8),
        small=("--edges 1000000 --edges 3000000", 60),
        medium=("--edges 1000000 --edges 5000000", 100),
        full=("--edges 10000000 --edges 100000000", 3_000),
    ),
    made(
        "replay",
        "replay",
        quick=("--quick", 5),
        small=("--records 200000 --asked 100", 35),
        medium=("--records 1000000", 70),
        full=("", 300),
    ),
    made(
        "queries",
        "queries",
        quick=("--quick", 3),
        small=("--edges 1000000", 10),
        medium=("--edges 3000000", 30),
        full=("", 120),
    ),
)
"""In the order in which they run."""

BENCHMARKS = tuple(dict.fromkeys(run.benchmark for run in RUNS))


def chosen(only: Sequence[str] = ()) -> list[Run]:
    """The runs of some benchmarks, or single ones, by their names; without any, all.

    >>> [run.name for run in chosen(["storage", "flow-labels"])]
    ['storage', 'flow-labels']
    """
    for name in only:
        if name not in BENCHMARKS and name not in {run.name for run in RUNS}:
            known = ", ".join(
                [*BENCHMARKS, *(run.name for run in RUNS if run.name != run.benchmark)]
            )
            raise HeadwaterError(f"there is no benchmark {name!r}; there are {known}")
    return [run for run in RUNS if not only or run.name in only or run.benchmark in only]
