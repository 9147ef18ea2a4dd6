"""service: one call for each event, however many sinks; answers and dead letters, traced."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import functions as F

import headwater as hw
from headwater.capture.choosing import choose
from tests.service.endpoint import Reply, ok, serving
from tests.support.oracle import interpreted
from tests.support.streams import Lab

RECORDS = """
1 | 0 | 1 | 5
2 | 1 | 2 | -
3 | 1 | 1 | 5
--
4 | 2 | 1 | 7
5 | 3 | 2 | 9
5 | 3 | 2 | 9
--
6 | 9 | 2 | 8
--
6 | 9 | 2 | 8
"""


def reply(event: Any, before: int) -> Reply:
    match event["v"]:
        case None:
            return 422, b""
        case 7:
            return 200, b"sorry"
        case 9 if before % 2 == 0:
            return 500, b""
    return ok({"score": event["v"] * event["factor"]})


def test_a_service_is_called_once_for_each_event(flow: hw.Flow, lab: Lab) -> None:
    # Records 1 and 3 are equal but for their ids, which the service does not see.
    a = lab.source(flow, "a", RECORDS).select("ts", "v")
    with serving(reply) as endpoint:
        scored = a.service(
            endpoint.url,
            request=["v"],
            response="score int",
            static={"factor": 10},
            backoff=0.01,
        )
        assert scored.columns == ["ts", "v", "score"]
        assert scored.failures.columns == ["ts", "v", "reason", "attempts"]
        flow.sink("good", scored.drop("ts"))
        flow.sink("bad", scored.failures.drop("ts"))
        window = F.window("ts", "2 seconds")
        flow.sink("sums", scored.groupBy(window).agg(F.sum("score").alias("sum")))
        told = lab.tell(flow)
    assert told == {
        "good": [
            ((5, 50), {"a": {1}}),
            ((5, 50), {"a": {3}}),
            ((8, 80), {"a": {6}}),
            ((8, 80), {"a": {6}}),
            ((9, 90), {"a": {5}}),
            ((9, 90), {"a": {5}}),
        ],
        "bad": [
            ((7, "the answer is not JSON: b'sorry'", 1), {"a": {4}}),
            ((None, "HTTP 422 Unprocessable Entity", 1), {"a": {2}}),
        ],
        "sums": [(((0.0, 2.0), 100), {"a": {1, 3}}), (((2.0, 4.0), 180), {"a": {5}})],
    }
    # Each run has three sinks. Record 5 comes twice in one batch and is one event, whose first call
    # fails; record 6 comes in two batches and is two.
    calls = Counter(event["v"] for event in endpoint.seen)
    in_a_run = {5: 2, None: 1, 7: 1, 9: 2, 8: 2}
    assert calls == {value: lab.runs * times for value, times in in_a_run.items()}
    assert choose(flow, "auto")["good"].mode == "eager"
    with pytest.raises(
        hw.UnsupportedError, match="a service may answer otherwise when it is asked"
    ):
        choose(flow, "intervals")


@hw.deterministic
def rated(event: dict[str, Any], least: int) -> dict[str, Any]:
    if event["number"] < least:
        raise LookupError(f"{event['number']} is too little")
    return {"rate": event["number"] / event["weight"], "of": [event["weight"]]}


def test_a_deterministic_function_is_traced_in_every_mode(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    answered = a.filter("v is not null").service(
        rated,
        request={"number": "v + 1", "weight": F.col("k") * 2},
        response="rate double, of array<int>",
        static={"least": 8},
        retries=1,
        backoff=0.0,
    )
    flow.sink("good", answered.select("id", "rate", "of"))
    flow.sink("bad", answered.failures.select("id", "reason", "attempts"))
    told = lab.tell(flow)
    assert told == {
        "good": [
            ((4, 4.0, (2,)), {"a": {4}}),
            ((5, 2.5, (4,)), {"a": {5}}),
            ((5, 2.5, (4,)), {"a": {5}}),
            ((6, 2.25, (4,)), {"a": {6}}),
            ((6, 2.25, (4,)), {"a": {6}}),
        ],
        "bad": [
            ((1, "LookupError: 6 is too little", 2), {"a": {1}}),
            ((3, "LookupError: 6 is too little", 2), {"a": {3}}),
        ],
    }
    assert interpreted(flow, lab, 2) == told
    assert choose(flow, "auto")["good"].mode == lab.taken("ancestors")


def test_sinks_with_and_without_capture_share_the_calls(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    with serving(reply) as endpoint:
        scored = a.filter("v < 7").service(
            endpoint.url, response="score int", request=["id", "v"], static={"factor": 1}
        )
        flow.sink("good", scored.select("id", "score"))
        flow.sink("again", scored.select("score"))
        lab.run(flow, {"eager": ["good"]})
    assert Counter(event["id"] for event in endpoint.seen) == {1: 1, 3: 1}
