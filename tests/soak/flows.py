"""The flows of the soak, and hot changes of them that keep what their results mean."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from headwater.compose import Composition
from headwater.compose.kinds import Aggregate, Filter, Sink
from headwater.examples.linear_road import SCHEMA as REPORTS
from headwater.examples.live_traffic import FLOW as TRAFFIC_FILE
from headwater.examples.smart_grid import FEW, HIGH
from headwater.examples.smart_grid import SCHEMA as READINGS

WILD = "n bigint, at timestamp, text string, v double"

GRID = f"""
flow: grid
nodes:
  readings: {{source: {{stream: readings, schema: "{READINGS}", event_time: ts, watermark: 2 hours, id: id}}}}
  days:     {{aggregate: {{from: readings, window: {{time: 1 day}}, by: [meter], columns: {{total: sum(value)}}}}}}
  unused:   {{filter: {{from: days, where: total = 0}}}}
  dark:     {{aggregate: {{from: unused, window: {{time: 1 day}}, columns: {{meters: count(*)}}}}}}
  many:     {{filter: {{from: dark, where: meters > {FEW}}}}}
  blackout: {{sink: {{from: many, stream: blackout}}}}
  high:     {{filter: {{from: days, where: total > {HIGH}}}}}
  last:     {{filter: {{from: readings, where: hour = 23}}}}
  ended:    {{map: {{from: high, columns: {{window: window_time(window)}}, keep: [meter, total]}}}}
  pairs:    {{join: {{from: [ended, last], policy: window, on: [meter], within: 1 hour}}}}
  odd:      {{filter: {{from: pairs, where: abs(total - value) > {HIGH}}}}}
  anomaly:  {{sink: {{from: odd, stream: anomaly}}}}
"""

TAMING = f"""
flow: taming
nodes:
  wild:    {{source: {{stream: wild, schema: "{WILD}", event_time: at, watermark: 10 seconds, id: n}}}}
  spoken:  {{filter: {{from: wild, where: length(text) > 0}}}}
  tamed:   {{sink: {{from: spoken, stream: tamed}}}}
  counts:  {{aggregate: {{from: wild, window: {{time: 10 seconds}}, columns: {{c: count(*)}}}}}}
  counted: {{sink: {{from: counts, stream: counted}}}}
"""

STREAMS = {
    "reports": {"schema": REPORTS, "event_time": "ts", "id": "tid"},
    "readings": {"schema": READINGS, "event_time": "ts", "id": "id"},
    "wild": {"schema": WILD, "event_time": "at", "id": "n"},
}
"""Streams from outside, as the service declares them."""

FLOWS = {"traffic": Path(TRAFFIC_FILE).read_text(), "grid": GRID, "taming": TAMING}
CHANGED = ("traffic", "grid")
"""Flows that are changed while they run."""


def changed(flow: Composition, turn: int, chance: random.Random) -> Composition:
    """Another version of a flow, whose results are the same ones."""
    kind = chance.choice(["filter", "window", "extra", "several"])
    if flow.name == "traffic":
        if kind in ("filter", "several"):
            where = f"type = 0 and speed = 0 and tid >= -{turn}"
            flow = flow.replace("standing", Filter(inputs="reports", where=where))
        if kind in ("window", "several"):
            columns = {"n": f"count(*) + {turn} - {turn}", "lo": "min(pos)", "hi": "max(pos)"}
            flow = flow.replace("positions", _aggregate(flow, "positions", columns))
        if kind == "extra":
            flow = _extra(flow, "reports", f"speed > 90 and tid >= -{turn}")
        return flow
    if kind in ("filter", "several"):
        where = f"abs(total - value) > {HIGH} and meter >= -{turn}"
        flow = flow.replace("odd", Filter(inputs="pairs", where=where))
    if kind in ("window", "several"):
        columns = {"total": f"sum(value) + {turn} - {turn}"}
        flow = flow.replace("days", _aggregate(flow, "days", columns))
    if kind == "extra":
        flow = _extra(flow, "readings", f"value > 200 and id >= -{turn}")
    return flow


def _aggregate(flow: Composition, name: str, columns: dict[str, str]) -> Aggregate:
    node = flow[name]
    assert isinstance(node, Aggregate)
    return replace(node, columns=columns)


def _extra(flow: Composition, source: str, where: str) -> Composition:
    """With one more sink, or without it again."""
    if "extra" in flow:
        return flow.remove("extra", "extras")
    flow = flow.add("extra", Filter(inputs=source, where=where))
    return flow.add("extras", Sink(inputs="extra", stream=f"{flow.name}-extras"))
