"""The replay (Figure 5 of the paper): operations composed forwards, from recorded contents."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import TableError
from headwater.saf.execution import Event, Made, execute
from headwater.saf.keys import COLUMNS, Key, key_list
from headwater.saf.tracing import INTERMEDIATE, RESULT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.saf.assertions import Assertions
    from headwater.saf.flow import Flow


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """What a replay made."""

    table: pa.Table
    """The replay table: `index`, `assertion_id`, the key, `event_content`, `trace_status`.

    Contents are text here, since those of different streams have different types.
    """
    contents: tuple[Any, ...]
    """The contents of the table's rows as the operations made them."""
    results: dict[int, list[Any]]
    """The contents of the streams at which the replay stopped."""


@dataclass(slots=True)
class Replayer:
    """One replay: the events that it has made so far, and the rows that it shows."""

    flow: Flow
    assertions: Assertions
    until: frozenset[int]
    known: dict[int, list[Key]]  # keys by stream that the assertions table lacks
    present: dict[int, list[Event]] = field(default_factory=dict)
    rows: list[tuple[int, Event]] = field(default_factory=list)

    def run(self, given: dict[int, list[Event]]) -> Replay:
        """Carry out every operation between the given events and `until`, once each."""
        waiting = self.flow.between(frozenset(given), self.until, "the inputs of the replay")
        self._add(given)
        while waiting:
            # Figure 5 keeps the one input of a join that is there (line 21 of the figure stores
            # the missing one, surely a slip) until a later level has made the other.
            ready = [each for each in waiting if self.present.keys() >= set(each.inputs)]
            waiting = tuple(each for each in waiting if each not in ready)
            made = {}
            for operation in ready:
                events = execute(operation, [self.present[each] for each in operation.inputs])
                for stream in operation.outputs:
                    if stream not in self.present:
                        made[stream] = self._keyed(stream, events)
            self._add(made)
        return self._replay()

    def _add(self, made: dict[int, list[Event]]) -> None:
        for stream, events in made.items():
            self.present[stream] = sorted(events, key=lambda event: event.time)
            self.rows += [(stream, event) for event in self.present[stream] if event.shown]

    def _keyed(self, stream: int, made: Sequence[Made]) -> list[Event]:
        """The events with the keys that the original run gave them.

        The key is the one that was set off by the same event: with the same number, or, where an
        operation numbers anew, in the same order.
        """
        recorded = stream in self.assertions.streams
        keys = self._keys(stream, {each.since for each in made})
        together = defaultdict[int, list[Made]](list)
        for each in made:
            together[each.since].append(each)
        events = list[Event]()
        for since, group in together.items():
            there = keys.get(since, [])
            numbers = {key.seqno: (key, line) for key, line in there}
            # Another number of events than recorded: no telling which is which.
            ordered = there if len(there) == len(group) else []
            for place, each in enumerate(group):
                if each.seqno is not None:
                    found = numbers.get(each.seqno)
                else:
                    found = ordered[place] if ordered else None
                if found is not None:
                    key, line = found
                    events.append(
                        Event(key.timestamp, key.seqno, each.content, each.shown, key, line)
                    )
                elif not recorded and (there or stream not in self.known):
                    events.append(Event(since, each.seqno, each.content, each.shown))
                # Else the original run made no such event: here a window lacked some of its
                # events, since they are not behind the result that is replayed.
        return events

    def _keys(self, stream: int, times: Iterable[int]) -> dict[int, list[tuple[Key, int | None]]]:
        keys = defaultdict[int, list[tuple[Key, int | None]]](list)
        found = self.assertions.made_since(stream, times)
        lines = found["line"].to_pylist()
        for key, line in zip(key_list(found), lines, strict=True):
            keys[key.timestamp - key.delay].append((key, line))
        for key in self.known.get(stream, ()):
            same = keys[key.timestamp - key.delay]
            if key not in [each for each, _ in same]:
                same.append((key, None))
                same.sort(key=lambda each: each[0].seqno)
        return keys

    def _replay(self) -> Replay:
        results: dict[int, list[Any]] = {stream: [] for stream in sorted(self.until)}
        for stream, event in self.rows:
            if stream in results:
                results[stream].append(event.content)
        events = [event for _, event in self.rows]
        lines = pa.chunked_array([pa.array([event.line for event in events], pa.int64())])
        keys = [event.key for event in events]
        status = [RESULT if stream in self.until else INTERMEDIATE for stream, _ in self.rows]
        columns = {
            "timestamp": [key and key.timestamp for key in keys],
            "seqno": [event.seqno for event in events],
            "stream_id": [stream for stream, _ in self.rows],
            "delay": [key.delay if key else None for key in keys],
        }
        table = pa.table(
            {
                "index": pa.array(range(1, len(events) + 1), pa.int64()),
                "assertion_id": self.assertions.ids(lines),
                **{name: pa.array(columns[name], pa.int64()) for name in COLUMNS},
                "event_content": pa.array([str(event.content) for event in events], pa.string()),
                "trace_status": pa.array(status, pa.int8()),
            }
        )
        return Replay(table, tuple(event.content for event in events), results)


def given_events(
    assertions: Assertions, inputs: pa.Table, history: pa.Table
) -> dict[int, list[Event]]:
    """The events to start from, by stream; those of the history alone are not shown."""
    events: dict[Key, Event] = {}
    for table, shown in ((inputs, True), (history, False)):
        lines = assertions.lines(table)
        own = "event_content" in table.column_names
        contents = table["event_content"] if own else assertions.contents(lines)
        rows = zip(key_list(table), lines.to_pylist(), contents.to_pylist(), strict=True)
        for key, line, content in rows:
            if content is None:
                raise TableError(
                    f"event {key.seqno} of stream {key.stream_id} has no content; "
                    "a replay starts from events whose content was recorded"
                )
            event = Event(key.timestamp, key.seqno, content, shown, key, line)
            events.setdefault(key, event)
    by_stream = defaultdict[int, list[Event]](list)
    for key in sorted(events, key=lambda key: (key.stream_id, key.timestamp, key.seqno)):
        by_stream[key.stream_id].append(events[key])
    return dict(by_stream)
