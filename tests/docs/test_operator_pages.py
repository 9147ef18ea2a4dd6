"""The page of each operator: its shape, its parameters, and the reach that it tells."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.flow.grouped import GroupedFrame
from headwater.flow.nodes import KINDS
from headwater.flow.ordering import WindowedFrame
from headwater.lowering import support

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "operators").glob("*.md"))

SECTIONS = [
    "Which records a result comes from",
    "Late and duplicate rows",
    "Reach",
    "Captures",
    "Parameters",
    "Refused",
]
OWNERS: dict[str, Any] = {
    "F": F,
    "Flow": hw.Flow,
    "Frame": hw.Frame,
    "GroupedFrame": GroupedFrame,
    "WindowedFrame": WindowedFrame,
}
REACH = {
    "As the steps below say.": "start",
    "At once.": "pass",
    "At the end of its last window.": "window",
    "Once its time is past.": "group",
    "When its session closes.": "session",
    "When no partner can come any more.": "pair",
    "Never.": "endless",
}
"""How a page begins to tell a step's reach, and the kind of rule that it must have."""


def section(page: Path, title: str) -> str:
    return page.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_has_the_same_shape(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem}\n\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    shown = text.partition("## ")[0]
    assert "<!-- run -->\n```pycon\n" in shown
    assert "store.backward(" in shown
    assert "\nSee also: " in text
    assert "[all operators](../operators.md)" in text


def test_every_kind_of_step_has_a_page() -> None:
    told = {kind for page in PAGES for kind in support.kinds_of(page.read_text())}
    assert told == {kind.kind for kind in KINDS}


def test_every_page_is_linked_from_the_rules() -> None:
    rules = (DOCS / "operators.md").read_text().partition("\n## What each capture supports\n")[0]
    assert set(re.findall(r"\(operators/(\w+)\.md", rules)) == {page.stem for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_parameters_are_those_of_the_methods(page: Path) -> None:
    tables = re.findall(
        r"^\| `(\w+)\.(\w+)` \| default \|[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)",
        section(page, "Parameters"),
        re.MULTILINE,
    )
    assert tables, "a table | `Frame.method` | default | | for each method"
    for owner, method, rows in tables:
        listed = re.findall(r"^\| `([^`]+)` \| (?:`([^`]+)` )?\|", rows, re.MULTILINE)
        assert len(listed) == rows.count("\n"), f"{method}: a row is not | `name` | `default` | … |"
        told = {
            name: ast.literal_eval(default) if default else inspect.Parameter.empty
            for name, default in listed
        }
        assert told == parameters(getattr(OWNERS[owner], method)), f"{owner}.{method}"


def parameters(method: Any) -> dict[str, Any]:
    """The parameters of a method with their defaults, as a page writes them."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return {
        f"{stars.get(p.kind, '')}{p.name}": p.default
        for p in inspect.signature(method).parameters.values()
        if p.name != "self"
    }


@pytest.fixture(scope="module")
def rules(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The kind of rule that each page's step has where its source streams."""
    place = str(tmp_path_factory.mktemp("stream"))
    flow = hw.Flow("all-steps")

    def source(name: str, columns: str = "id bigint, at timestamp, k string, v int") -> hw.Frame:
        more = {"event_time": "at", "watermark": "0 seconds", "id": "id"}
        return flow.source(name, format="csv", path=place, schema=columns, **more)

    rows, others = source("rows"), source("others")
    right = others.selectExpr("id AS other", "at AS since", "k AS name", "v AS w")
    near = F.expr("since BETWEEN at - INTERVAL 1 MINUTE AND at")
    window, count = F.window("at", "10 seconds"), F.count("*").alias("n")
    made = {
        "source": rows,
        "filter": rows.filter("v > 0"),
        "select": rows.select("k"),
        "withWatermark": rows.withWatermark("at", "5 seconds"),
        "explode": rows.select(F.explode(F.array("v"))),
        "flat_map": rows.flat_map(lambda row: [], "w int"),
        "map": rows.map(lambda batch: batch, "w int"),
        "service": rows.service(lambda event: {}, response="w int"),
        "union": rows.union(others),
        "merge": rows.merge(others),
        "groupBy": rows.groupBy("at").agg(count),
        "window": rows.groupBy(window).agg(count),
        "session_window": rows.groupBy("k", F.session_window("at", "9 seconds")).agg(count),
        "concise": rows.groupBy(window).min("v", concise=True),
        "applyInPandas": rows.groupBy(window).applyInPandas(lambda group: group, "w int"),
        "join": rows.join(right, near),
        "dropDuplicates": rows.dropDuplicates(["k"]),
        "count_window": rows.count_window(2).agg(count),
        "value_window": rows.value_window(5, 5, on="v").agg(count),
        "b_sort": rows.b_sort(1, on="v"),
        "join_latest": rows.join_latest(right),
        "join_last": rows.join_last(right, left=1, right=1),
        "join_value": rows.join_value(right, "v", "w", 5),
        "match": rows.match("A", measures={"n": "count(*)"}),
        "sql": flow.sql("SELECT k FROM rows WHERE v > 0"),
    }
    sinks = {name: flow.sink(f"{name}-made", frame) for name, frame in made.items()}
    made["sink"], sinks["sink"] = sinks["filter"], sinks["filter"]
    found = {}
    for name, frame in made.items():
        reach = flow.reach(flow.sources["rows"], [sinks[name]._node])
        (rule,) = [rule for rule in reach.rules if rule.step == frame.step]
        found[name] = rule.kind
    return found


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_reach_is_that_of_the_code(page: Path, rules: dict[str, str]) -> None:
    (said,) = re.findall(r"^\*\*([^*]+)\*\*", section(page, "Reach").strip())
    assert REACH[said] == rules[page.stem]
