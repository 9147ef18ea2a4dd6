"""On random flows and delays, traces and replays equal what an interpreter of Table I recorded."""

from __future__ import annotations

from dataclasses import asdict
from itertools import cycle
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import headwater.saf as saf
from tests.saf.interpreter import Recorded, Streams, simulate
from tests.saf.tables import rows
from tests.support import amount

Draw = Any
SETTINGS = settings(
    deadline=None,
    max_examples=amount(40, 400),
    suppress_health_check=[HealthCheck.too_slow],
)


def total(content: Any) -> int:
    """A number for any content: windows and pairs by their sum."""
    return content if isinstance(content, int) else sum(total(each) for each in content)


def odd(*contents: Any) -> bool:
    return total(contents) % 2 == 1


@st.composite
def operations(draw: Draw, number: int, streams: list[int]) -> saf.Operation:
    """An operation over some of the streams there are."""
    stream = st.sampled_from(streams)
    new = len(streams) + 1
    time, length = st.integers(0, 12), st.integers(1, 4)
    joins = ["time join", "length join"]
    match draw(st.sampled_from(["map", "filter", "time window", "length window", *joins])):
        case "map":
            output = draw(st.sampled_from([new, (new, new + 1)]))
            return saf.Map(id=number, input=draw(stream), output=output, function=total)
        case "filter":
            return saf.Filter(id=number, input=draw(stream), output=new, predicate=odd)
        case "time window":
            return saf.TimeWindow(id=number, input=draw(stream), output=new, time=draw(time))
        case "length window":
            return saf.LengthWindow(id=number, input=draw(stream), output=new, length=draw(length))
        case "time join":
            return saf.TimeWindowJoin(
                id=number,
                left=draw(stream),
                right=draw(stream),
                output=new,
                left_time=draw(time),
                right_time=draw(time),
                condition=draw(st.sampled_from([odd, lambda *_: True])),
            )
        case _:
            return saf.LengthWindowJoin(
                id=number,
                left=draw(stream),
                right=draw(stream),
                output=new,
                left_length=draw(length),
                right_length=draw(length),
                condition=odd,
            )


@st.composite
def runs(draw: Draw) -> tuple[saf.Flow, Streams]:
    """A flow, and all the events of one run of it."""
    streams: Streams = {}
    for stream in range(1, draw(st.integers(1, 2)) + 1):
        clock, streams[stream] = 0, []
        for seqno, gap in enumerate(draw(st.lists(st.integers(1, 6), min_size=1, max_size=7)), 1):
            clock += gap
            content = draw(st.integers(0, 9))
            streams[stream].append(Recorded(saf.Key(clock, seqno, stream), content))
    # An operation's id says nothing about its place in the flow.
    numbers = draw(st.permutations(range(1, 6)))[: draw(st.integers(1, 5))]
    delays = cycle(draw(st.lists(st.integers(0, 5), min_size=1, max_size=20)))
    flow = list[saf.Operation]()
    for number in numbers:
        operation = draw(operations(number, list(streams)))
        after = simulate([operation], streams, delays)
        # Joins of joins multiply; enough is enough.
        if len(after[operation.outputs[0]]) <= 60:
            streams = after
            flow.append(operation)
    assume(flow)
    return saf.Flow(flow), streams


def provenance(flow: saf.Flow, streams: Streams) -> saf.Provenance:
    """The flow with an assertion for each event, and contents for source events only."""
    assertions = [
        {**asdict(event.key), "event_content": event.content if stream in flow.sources else None}
        for stream, events in streams.items()
        for event in events
    ]
    return saf.Provenance(flow, pa.Table.from_pylist(assertions))


def derived(flow: saf.Flow, streams: Streams) -> list[Recorded]:
    """The events that operations made."""
    return [event for each in sorted(flow.streams - flow.sources) for event in streams[each]]


@SETTINGS
@given(runs())
def test_the_sources_of_every_event(run: tuple[saf.Flow, Streams]) -> None:
    flow, streams = run
    events = derived(flow, streams)
    answer = provenance(flow, streams).retrieve_ancestors([event.key for event in events])
    expected = {(place, key) for place, event in enumerate(events, 1) for key in event.sources()}
    found = [(of, saf.Key(*key)) for of, *key in rows(answer.pairs())]
    assert len(found) == len(expected)
    assert set(found) == expected
    assert {saf.Key(*row[1:5]) for row in rows(answer.sources)} == {key for _, key in expected}


@SETTINGS
@given(runs())
def test_the_direct_inputs_of_every_event(run: tuple[saf.Flow, Streams]) -> None:
    flow, streams = run
    events = derived(flow, streams)
    answer = provenance(flow, streams).ancestors([event.key for event in events])
    expected = {(place, each.key) for place, event in enumerate(events, 1) for each in event.inputs}
    found = [(of, saf.Key(*key)) for of, _, *key in rows(answer)]
    assert len(found) == len(expected)
    assert set(found) == expected


@SETTINGS
@given(runs(), st.data())
def test_a_replay_from_the_sources_makes_the_event_again(
    run: tuple[saf.Flow, Streams], data: st.DataObject
) -> None:
    flow, streams = run
    events = derived(flow, streams)
    assume(events)
    event = data.draw(st.sampled_from(events))
    asked = provenance(flow, streams)
    sources = asked.retrieve_ancestors(event.key).sources
    replay = asked.replay(sources, until=[event.key.stream_id])
    made = [saf.Key(*row[2:6]) for row in rows(replay.table)]
    assert replay.contents[made.index(event.key)] == event.content


@SETTINGS
@given(runs())
def test_a_replay_of_everything_makes_everything(run: tuple[saf.Flow, Streams]) -> None:
    flow, streams = run
    start = [event.key for each in flow.sources for event in streams[each]]
    replay = provenance(flow, streams).replay(start)
    made = [saf.Key(*row[2:6]) for row in rows(replay.table)]
    contents = dict(zip(made, replay.contents, strict=True))
    for event in derived(flow, streams):
        assert contents[event.key] == event.content
    assert len(made) == len(start) + len(derived(flow, streams))
