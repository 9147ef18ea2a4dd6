"""Each suite of the capture benchmark, at a size that says nothing about speed."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.bench.harness import Case, Outcome, Sample
from headwater.bench.lab import Lab
from headwater.bench.meter import Meter, Usage
from headwater.bench.suites import nested, retrieval, rewrite
from headwater.bench.suites.network import Network
from headwater.errors import HeadwaterError

MODES = ("none", "eager")


def test_a_rewritten_query_that_takes_too_long_is_given_up(spark, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, Meter(spark), batches=1)
    network = Network(10, 1, aggregations=3)
    run = rewrite.variant(lab, network, network.data(lab, 2_000), limit=1)
    with pytest.raises(HeadwaterError, match="the rewritten query was given up after 1 s"):
        run(lab.meter)


def test_a_rewritten_query_that_spark_refuses(spark, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, Meter(spark), batches=1)
    run = rewrite.variant(lab, Network(10, 0), tmp_path)
    with pytest.raises(HeadwaterError, match="the rewritten query failed: .*slide"):
        run(lab.meter)


def test_figure_14_says_what_did_not_run() -> None:
    case = Case({"aggregations": 3}, 1_000, dict.fromkeys(["none", "rewrite"], lambda meter: None))
    none = Sample({"generation": Usage(2.0, 3.0, 1 << 20)}, results=10)
    figure = nested.figure("", [Outcome(case, {"none": [none]}, {"rewrite": "no memory"})])
    assert list(figure.cells()) == [
        ["none", "generation s", "2.00"],
        ["none", "generation CPU s", "3.00"],
        ["none", "generation peak MiB", "1.00"],
        ["rewrite", "generation s", "–"],
        ["rewrite", "generation CPU s", "–"],
        ["rewrite", "generation peak MiB", "–"],
        ["rewrite", "rows of provenance", "–"],
    ]
    assert figure.notes == ["aggregations 3: rewrite did not run: no memory"]


def test_the_crossover_of_eager_and_lazy() -> None:
    def sample(generation: float, **asked: float) -> Sample:
        parts = {"generation": generation, **asked}
        return Sample({name: Usage(s, s, 1) for name, s in parts.items()}, results=10)

    samples = {
        "none": [sample(10)],
        "intervals": [sample(10, few=1, all=21)],
        "ancestors": [sample(10, few=1, all=2)],
        "eager": [sample(20, few=1, all=1)],
    }
    outcome = Outcome(Case({}, 1_000, {}), samples)
    assert list(retrieval.crossovers(outcome, {"few": 0.01, "all": 1.0})) == [
        "intervals is cheaper than eager up to 50.50% of the results",
        "ancestors is cheaper than eager at every share measured",
    ]
