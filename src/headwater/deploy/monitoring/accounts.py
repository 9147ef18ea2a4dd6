"""Accounts: what came into each node of a unit, what it has done and what went out."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.deploy.monitoring.counting import Counts, gives_all
from headwater.deploy.units.alert import AlertUnit
from headwater.deploy.units.job import JobUnit
from headwater.runtimes.jobs.states import State
from headwater.streams.files import write_json
from headwater.sustain import Totals

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headwater.compose.graph import Graph
    from headwater.deploy.making import Unit
    from headwater.deploy.records import UnitRecord
    from headwater.deploy.units.query import QueryUnit

FILE = "measured.json"
"""In a unit's folder."""


class Passed(NamedTuple):
    """The events of a node."""

    came: int = 0
    """That came in, also those that wait in a stream or a queue."""
    done: int = 0
    """Of these, the ones that it is finished with."""
    out: int = 0

    def plus(self, other: Passed) -> Passed:
        """Both together."""
        return Passed(*(mine + its for mine, its in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class Account:
    """A unit's numbers since it began."""

    nodes: dict[str, Passed] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    """Of the whole unit: events of its streams in, events of its streams out."""
    counts: Counts = field(default_factory=Counts)

    @property
    def settled(self) -> Account:
        """The same after its end: what it had not done, others do."""
        nodes = {name: passed._replace(came=passed.done) for name, passed in self.nodes.items()}
        return replace(self, nodes=nodes, totals=replace(self.totals, taken=self.totals.done))

    def save(self, folder: Path) -> None:
        """Write it into the unit's folder; a power cut may cost the last second."""
        write_json(folder / FILE, asdict(self), sync=False)


def load(folder: Path) -> Account:
    """What was written down of a unit; nothing where that can't be read."""
    try:
        told: dict[str, Any] = json.loads((folder / FILE).read_bytes())
        return Account(
            {name: Passed(*passed) for name, passed in told["nodes"].items()},
            Totals(**told["totals"]),
            Counts(**told["counts"]),
        )
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return Account()


def account_of(unit: Unit, graph: Graph, ends: Mapping[str, int]) -> Account:
    """A unit's account, given where its streams end; `graph` is that of its version."""
    if isinstance(unit, JobUnit):
        return _job_account(unit, graph, ends)
    if isinstance(unit, AlertUnit):
        return _alert_account(unit, ends)
    return _query_account(unit, graph, ends)


def _query_account(unit: QueryUnit, graph: Graph, ends: Mapping[str, int]) -> Account:
    record, counts = unit.record, unit.counter.take()
    given = {each.node: _read(unit, each.stream, ends) for each in record.inputs}
    if not record.inputs:  # a source that copies what Spark reads
        read = counts.out.get(record.name, 0)
        given[record.name] = Passed(read, read, read)
    observed = set(unit.flow.observed.values())
    nodes = {} if record.inputs else dict(given)
    for name in record.nodes[len(nodes) :]:
        came = done = 0
        for target in [edge.port.target for edge in graph.into[name]]:
            if target in given:
                came, done = came + given[target].came, done + given[target].done
            else:  # a node above in the same query, or a value that is no stream
                above = counts.out.get(target, nodes.get(target, Passed()).out)
                came, done = came + above, done + above
        passes = gives_all(graph.nodes[name]) or name not in observed
        nodes[name] = Passed(came, done, done if passes else counts.out.get(name, 0))
    made = sum(counts.out.get(end, nodes.get(end, Passed()).out) for end in record.outputs)
    totals = Totals(
        taken=sum(each.came for each in given.values()),
        done=sum(each.done for each in given.values()),
        made=made,
        compute=counts.compute,
        framework=counts.framework,
    )
    return Account(nodes, totals, replace(counts, out=dict(counts.out)))


def _read(unit: QueryUnit, stream: str, ends: Mapping[str, int]) -> Passed:
    """The events of a stream that count: positions number them, those before the cut don't."""
    record = unit.record.input(stream)
    assert record is not None
    done = max(0, unit.position[stream] - record.cut)
    end = ends.get(stream, unit.position[stream])
    if record.until is not None:
        end = min(end, record.until)
    return Passed(max(done, end - record.cut), done)


def _job_account(unit: JobUnit, graph: Graph, ends: Mapping[str, int]) -> Account:
    record, queue = unit.record, unit.line.queue
    totals = queue.totals()
    (given,) = record.inputs
    waiting = 0 if record.ended else max(0, ends.get(given.stream, 0) - unit.position)
    totals = replace(totals, taken=totals.taken + waiting)
    nodes = {record.name: Passed(int(totals.taken), int(totals.done), int(totals.made))}
    failed = queue.counts()[State.failed]
    for name in record.nodes[1:]:  # its sinks
        (edge,) = graph.into[name]
        read = failed if edge.port.output == "failures" else int(totals.made)
        nodes[name] = Passed(read, read, read)
    return Account(nodes, totals)


def _alert_account(unit: AlertUnit, ends: Mapping[str, int]) -> Account:
    (given,) = unit.record.inputs
    done = max(0, unit.position - given.start)
    end = ends.get(given.stream, unit.position)
    came = max(done, (end if given.until is None else min(end, given.until)) - given.start)
    return Account({unit.record.nodes[0]: Passed(came, done, done)}, Totals(came, done, done))


def is_shared(record: UnitRecord) -> bool:
    """Whether the numbers are those of all its versions: a job has one queue."""
    return record.runtime == "jobs"
