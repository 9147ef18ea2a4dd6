"""A version made ready: which units stay, which are new, and that the new ones can be built.

Nothing that runs is touched here, and nothing that is there already is changed; what is wrong with
a version is found before its first unit is stopped.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.compose.graph import Graph
from headwater.compose.planning import deployable
from headwater.deploy.building.calls import Calls, commands_of
from headwater.deploy.building.channels import Channels
from headwater.deploy.building.frames import Frames
from headwater.deploy.building.pieces import Piece, pieces
from headwater.deploy.building.statics import Statics
from headwater.deploy.records import InputRecord, UnitRecord
from headwater.deploy.units.publishing import Publishing
from headwater.errors import FlowError
from headwater.flow import nodes as steps
from headwater.streams.declaration import Producer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from headwater.compose import Composition
    from headwater.compose.plan import Plan
    from headwater.deploy.building.carried import Carried
    from headwater.deploy.records import DeploymentFiles
    from headwater.flow.flow import Flow
    from headwater.streams import Streams


@dataclass(slots=True)
class Built:
    """A unit that can be started: its record, and its query if it is one."""

    record: UnitRecord
    flow: Flow | None = None
    """Of a unit of operators or functions."""


@dataclass(slots=True)
class Prepared:
    """A version: its units in order, of which some run already."""

    channels: Channels
    units: list[Built] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    """The ids of units that stay as they are."""


class Preparing:
    """Makes versions of one deployment ready."""

    def __init__(self, files: DeploymentFiles, streams: Streams, spark: SparkSession) -> None:
        self._files, self._streams, self._spark = files, streams, spark

    def version(
        self,
        composition: Composition,
        version: int,
        code: str | None,
        running: Iterable[UnitRecord] = (),
    ) -> Prepared:
        """The units of a composition, given those that run; raises what is wrong with it."""
        plan = deployable(composition)
        one = _Version(self, plan, Calls(code))
        known = {record.signature: record for record in running}
        made: list[str] = []
        try:
            for piece in pieces(plan):
                signature = one.signature(piece)
                record = known.get(signature)
                if record is None and not piece.inputs:
                    record = self._former(piece, signature)
                if record is not None:
                    one.keep(piece, record)
                    continue
                made.append(f"{piece.name}@{version}")
                one.add(piece, signature, version)
        except BaseException:
            self.forget(made)
            raise
        return one.prepared

    def _former(self, piece: Piece, signature: str) -> UnitRecord | None:
        """What copied the same source before: it goes on, or all would be read a second time."""
        copied = [r for r in self._files.units() if r.name == piece.name and not r.inputs]
        for record in reversed(copied):
            if record.signature == signature:
                return record
        if copied:
            raise FlowError(
                f"source {piece.name!r} of flow {copied[0].flow!r} reads from outside, and as "
                "another source it would read everything again; give the changed one another name"
            )
        return None

    def forget(self, units: Iterable[str]) -> None:
        """Remove what was made ready and never written down."""
        for unit in units:
            if not self._files.has_unit(unit):
                shutil.rmtree(self._files.unit_folder(unit), ignore_errors=True)

    def rebuild(self, record: UnitRecord) -> Built:
        """A unit that was written down, as it is to be started again."""
        one, piece = self._again(record)
        return Built(record, one.built(piece, record) if record.is_query else None)

    def given(self, record: UnitRecord) -> tuple[Carried, dict[str, Any]]:
        """What a job or an alert reads: its stream, and the values of static inputs."""
        one, piece = self._again(record)
        carried = one.channels.carried(piece.inputs[0], record.inputs[0].stream)
        return carried, one.values(record.name)

    def _again(self, record: UnitRecord) -> tuple[_Version, Piece]:
        """The version that brought a unit, and the unit's piece of it."""
        plan = self._files.composition(record.version).plan()
        one = _Version(self, plan, Calls(self._files.change(record.version).code))
        for each in record.inputs:
            one.known_from(each.stream)
        return one, next(each for each in pieces(plan) if each.name == record.name)


class _Version:
    """One version in the making."""

    def __init__(self, owner: Preparing, plan: Plan, calls: Calls) -> None:
        self._files, self._streams, self._spark = owner._files, owner._streams, owner._spark
        self._plan, self._calls = plan, calls
        self._graph = Graph(plan.composition)
        self._statics = Statics(plan, calls, self._files.folder / "statics", self._spark)
        self.channels = Channels(self._streams, plan)
        self.prepared = Prepared(self.channels)

    # --- what a unit is made of ---------------------------------------------------------------

    def signature(self, piece: Piece) -> str:
        """What may not change of a unit without its being another."""
        flow = self._plan.composition
        told: list[Any] = [flow.name, piece.name, piece.runtime]
        for name in (each for each in piece.nodes if each in flow):
            node = flow[name]
            told.append([name, node.kind, _ordered(node.written())])
            given = [getattr(node, key, None) for key in ("call", "target", "spark")]
            told += [self._calls.content(call) for call in given if call and ":" in call]
            told += [self._calls.content_of_command(each) for each in commands_of(node)]
            told += [
                [edge.port.name, self._statics.print_of(edge.source)]
                for edge in self._graph.into[name]
                if self._statics.is_static(edge.source)
            ]
        for end in piece.inputs:
            stream, carried = self.channels.input(end)
            told.append([end.name, stream, carried.as_json()])
        told.append([[end.name, end.stream] for end in piece.outputs])
        return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()

    def keep(self, piece: Piece, record: UnitRecord) -> None:
        """A unit that stays."""
        self.prepared.kept.add(record.id)
        self.prepared.units.append(Built(record))
        self.channels.keep(piece, record)

    def add(self, piece: Piece, signature: str, version: int) -> None:
        """A unit that is new."""
        inputs = [InputRecord(end.name, self.channels.input(end)[0]) for end in piece.inputs]
        record = UnitRecord(
            flow=self._plan.composition.name,
            name=piece.name,
            version=version,
            runtime=piece.runtime,
            nodes=list(piece.nodes),
            signature=signature,
            inputs=inputs,
            outputs={},
            carried={},
        )
        if piece.runtime == "alerts":
            record.sinks = [piece.name]
            self.prepared.units.append(Built(record))
            return
        if piece.runtime == "jobs":
            carried = self.channels.of_job(piece)
            self.channels.publish(record, piece, carried)
            record.sinks = list(record.outputs)
            self.prepared.units.append(Built(record))
            return
        frames = self._frames(piece, record)
        self.channels.publish(
            record, piece, {end.name: frames.carried(end.name) for end in piece.outputs}
        )
        self._end_in_sinks(frames, piece, record)
        record.sinks = list(frames.flow.sinks)
        record.stateful = any(map(_keeps_state, _steps(frames.flow)))
        self.prepared.units.append(Built(record, frames.flow))

    def built(self, piece: Piece, record: UnitRecord) -> Flow:
        """The query of a unit that was written down."""
        frames = self._frames(piece, record)
        self._end_in_sinks(frames, piece, record)
        return frames.flow

    def known_from(self, stream: str) -> None:
        """Have what a unit that was written down has said of a stream."""
        for record in reversed(self._files.units()):
            for end, streams in record.outputs.items():
                if stream in streams:
                    self.channels.known[stream] = record.stream_of(end)
                    return

    def values(self, node: str) -> dict[str, Any]:
        """The values of a node's static inputs, by port."""
        return {
            edge.port.name: self._statics.value(edge.source).value
            for edge in self._graph.into.get(node, ())
            if self._statics.is_static(edge.source)
        }

    # --- queries ------------------------------------------------------------------------------

    def _frames(self, piece: Piece, record: UnitRecord) -> Frames:
        frames = Frames(
            self._plan.composition,
            piece,
            record.flow_name,
            self._statics,
            self._calls,
            self._spark,
        )
        if not piece.inputs:
            frames.read_outside(piece.name)
        for end, given in zip(piece.inputs, record.inputs, strict=True):
            folder = self._files.unit_folder(record.id) / "inputs" / given.stream
            folder.mkdir(parents=True, exist_ok=True)
            carried = self.channels.carried(end, given.stream)
            frames.read(end.name, carried, folder)
            frames.flow.notes[end.name] = {"streams": [given.stream]}
        frames.build()
        return frames

    def _end_in_sinks(self, frames: Frames, piece: Piece, record: UnitRecord) -> None:
        taken = {each.node for each in record.inputs} | {piece.name if not piece.inputs else ""}
        for name, streams in record.outputs.items():
            writer = Publishing(
                self._streams,
                tuple(streams),
                str(record.carried[name]["schema"]),
                Producer(f"{record.flow}/{name}", "flow", record.version),
            )
            sink = f"{name}.out" if name in taken else name
            frames.flow.sink(sink, frames.frame(name), write=writer)
            frames.flow.notes[sink] = {
                "node": name,
                "version": record.version,
                "streams": list(streams),
            }


def _ordered(written: Mapping[str, Any]) -> list[Any]:
    return sorted(written.items(), key=lambda item: item[0])


def _steps(flow: Flow) -> list[steps.Node]:
    return [node for sink in flow.sinks.values() for node in sink.upstream()]


def _keeps_state(node: steps.Node) -> bool:
    if isinstance(node, steps.Join):
        return not any(isinstance(side, steps.Static) for side in node.inputs)
    kinds = (steps.Aggregate, steps.GroupFunction, steps.Deduplicate, steps.Ordered)
    return isinstance(node, kinds)
