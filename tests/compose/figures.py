"""The graphs of Streamflow's figures, as its text describes them."""

from __future__ import annotations

from headwater.compose import Composition

WEATHER = """\
flow: weather
nodes:
  radar:        {source: {stream: radar, schema: "scan bigint, at timestamp, station string, dbz array<double>", event_time: at, watermark: 10 seconds, id: scan}}
  indianapolis: {filter: {from: radar, where: "station = 'KIND'"}}
  evansville:   {filter: {from: radar, where: "station = 'KVWX'"}}
  indiana:      {merge: {from: [indianapolis, evansville]}}
  storms:       {function: {from: indiana, call: "weather:find_storms", schema: "scan bigint, at timestamp, cells int"}}
  rate:         {aggregate: {from: storms, window: {time: 10 minutes, slide: 1 minute}, by: [], columns: {storms: "sum(cells)"}}}
  strong:       {sql: {from: [storms], query: "select * from storms where cells > 3"}}
  forecast:     {job: {from: strong, run: "python forecast.py", slots: 2}}
  alerts:       {sink: {from: strong, stream: alerts}}
"""  # noqa: E501
"""The example of the design, as it stands."""


def service(flow: Composition, name: str, inputs: str | list[str]) -> Composition:
    """A web service: one answer for each event."""
    return flow.service(
        name, inputs, target=f"https://example.org/{name}", response=f"{name}_said double"
    )


def figure_9() -> Composition:
    """A generator, a streamflow node with a static input, a filter, an aggregator, a join."""
    flow = Composition("figure-9").source("V1", stream="events").static("d", value=42)
    flow = service(flow, "V2", ["V1", "d"]).filter("V3", "V2", where="V2_said > 1")
    flow = flow.aggregate("V4", "V2", window={"count": 5}, columns={"n": "count(*)"})
    flow = flow.join("V5", ["V3", "V4"], policy="latest")
    return flow.sink("out", "V5", stream="out")


def figure_12(streaming: bool) -> Composition:
    """A pure workflow of three steps; then with a stream in place of its input."""
    flow = Composition("figure-12")
    flow = (
        flow.source("input", stream="events") if streaming else flow.static("input", value="file-1")
    )
    for name, above in (("first", "input"), ("second", "first"), ("third", "second")):
        flow = service(flow, name, above)
    return flow.sink("out", "third", stream="out") if streaming else flow


def figure_17(ten: str = "filter") -> Composition:
    """Nodes 1–4 pure, 5–9 behind a stream, 10 a filter, 11–13 behind both rates."""
    flow = Composition("figure-17").static("input_1", value=1).static("input_2", value=2)
    flow = flow.source("events", stream="events")
    for name, inputs in (
        ("n1", ["input_1"]),
        ("n2", ["input_2"]),
        ("n3", ["n1", "n2"]),
        ("n4", ["n3"]),
        ("n5", ["n4", "events"]),
        ("n6", ["n5"]),
        ("n7", ["n5"]),
        ("n8", ["n6", "n7"]),
        ("n9", ["n8"]),
    ):
        flow = service(flow, name, inputs)
    flow = (
        flow.filter("n10", "n7", where="n7_said > 0")
        if ten == "filter"
        else service(flow, "n10", "n7")
    )
    for name, inputs in (("n11", ["n8", "n9", "n10"]), ("n12", ["n11"]), ("n13", ["n12"])):
        flow = service(flow, name, inputs)
    return flow


def figure_21(joined: bool) -> Composition:
    """Two workflows with two streams each, a third that reads both: a join is inserted."""
    flow = Composition("figure-21")
    for stream in ("s1", "s2", "s3", "s4"):
        flow = flow.source(stream, stream=stream)
    for number, (left, right) in (("1", ("s1", "s2")), ("2", ("s3", "s4"))):
        flow = flow.join(f"both_{number}", [left, right], policy="latest")
        flow = service(flow, f"p{number}1", f"both_{number}")
        flow = service(flow, f"p{number}2", f"both_{number}")
    inputs: str | list[str] = ["p11", "p22"]
    if joined:
        flow = flow.join("query_1", inputs, policy="latest", clock="p22")
        inputs = "query_1"
    return service(service(flow, "wf3", inputs), "wf3_next", "wf3")


def figure_31() -> Composition:
    """Radar stations of Indiana, storms at two intensities, alerts, and the forecast as a job."""
    flow = Composition("figure-31").source(
        "radar", stream="radar", bind="radarfilename := /radar/file : STRING"
    )
    for name, code in (("Indianapolis", "KIND"), ("Evensville", "KVWX"), ("FortWayne", "KIWX")):
        flow = flow.filter(name, "radar", where=f"radarfilename rlike 'Level2_{code}_'")
    flow = flow.merge("IndianaRadar", ["Indianapolis", "Evensville", "FortWayne"])
    for level in ("20", "35"):
        flow = flow.service(
            f"findStorm{level}",
            "IndianaRadar",
            target="https://example.org/find",
            response="places string",
            static={"dBZ": int(level)},
        )
        flow = flow.service(
            f"cluster{level}",
            f"findStorm{level}",
            target="https://example.org/cluster",
            response="clusters string",
            bind="numberOfStorms := count(/Cordinates/Cordinate) : NUMBER",
        )
        flow = flow.filter(f"IndianaStorm{level}dB", f"cluster{level}", where="numberOfStorms > 0")
        flow = flow.sink(
            f"mail{level}", f"IndianaStorm{level}dB", alert={"email": "weather@example.org"}
        )
    return flow.function(
        "WRF", "IndianaStorm35dB", call="wrf:forecast", schema="file string", runtime="jobs"
    )
