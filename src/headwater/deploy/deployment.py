"""A flow at work, in versions: what is deployed, changed, undone, stopped."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headwater.compose.difference import difference
from headwater.deploy.building.calls import named_files
from headwater.deploy.building.carried import EVENT_ID, EVENT_TIME
from headwater.deploy.building.preparing import Built, Preparing
from headwater.deploy.making import Making, Unit
from headwater.deploy.monitoring.watching import Watch
from headwater.deploy.records import Change, DeploymentFiles
from headwater.deploy.units.cutting import Cutting
from headwater.deploy.units.query import can_be_live
from headwater.errors import HeadwaterError, RunError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.compose import Composition
    from headwater.deploy.building.preparing import Prepared
    from headwater.deploy.host import Host
    from headwater.deploy.records import Since, UnitRecord


class Deployment:
    """A composition at work. Its files say what is wanted; this makes it so, also after a crash."""

    def __init__(self, host: Host, name: str) -> None:
        self.name = name
        self._host = host
        self.files = DeploymentFiles(host.folder / name)
        self._preparing = Preparing(self.files, host.streams, host.spark)
        self._changing = threading.RLock()
        self._feeding = threading.Lock()
        self._units: dict[str, Unit] = {}
        self.making = Making(host, self.files, self._preparing)
        self.broken: dict[str, str] = {}
        """Units that can't even be built again, and why."""
        self.doing: str | None = None
        """What is being done to it at the moment."""
        self.watch = Watch(self)

    # --- what it is ---------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version that is there; 0 before the first."""
        return int(self.files.state()["version"])

    @property
    def composition(self) -> Composition:
        """The flow as it is deployed."""
        return self.files.composition(self.version)

    @property
    def wanted(self) -> str:
        """`running` or `stopped`."""
        return str(self.files.state()["wanted"])

    @property
    def units(self) -> list[Unit]:
        """Its units that are at work, those that make streams before those that read them."""
        return list(self._units.values())

    def status(self) -> dict[str, Any]:
        """Its units, nodes and streams as they are: counts, rates, lengths, verdicts."""
        return self.watch.status()

    # --- what can be done ---------------------------------------------------------------------

    def change(
        self,
        composition: Composition,
        *,
        since: Since = "now",
        folder: str | None = None,
        code: str | None = None,
        action: str | None = None,
        parent: int | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> Change:
        """Deploy a flow, or change it while it runs; what is wrong with it changes nothing.

        Units that stay as they are go on untouched. Of a unit that is new, `since` says which
        events it sees: those from now on, from the start of its streams, or from where one of the
        same nodes had left off (`left`). One that takes another's place always goes on there.
        """
        with self._changing, self._doing("changing"):
            state = self.files.state()
            if state["target"] != state["version"]:
                self._carry(self.files.change(state["target"]), None, tell)
                state = self.files.state()
            version = max([0, *self.files.versions()]) + 1
            before = self.files.change(state["version"]) if state["version"] else None
            running = [self.files.unit(unit) for unit in (before.units if before else ())]
            _say(tell, "checking")
            if code is None:
                code = self.files.save_code(version, folder, named_files(composition))
            try:
                prepared = self._preparing.version(composition, version, code, running)
            except BaseException:
                self.files.forget_code(version)
                raise
            first = before is None
            made = Change(
                version=version,
                at=time.time(),
                action=action or ("deploy" if first else "change"),
                units=[each.record.id for each in prepared.units],
                since="start" if first else since,
                folder=folder,
                code=code,
                parent=parent if action == "undo" else (state["version"] or None),
                difference={} if first else _difference(self.composition, composition),
            )
            self.files.save_version(made, composition)
            self.files.save_state(target=version, wanted="running")
            self._carry(made, prepared, tell)
            return made

    def undo(self, tell: Callable[[str], None] | None = None) -> Change:
        """Go back to the version before; units that return go on where they had left off."""
        with self._changing:
            if not self.version:
                raise RunError(f"flow {self.name!r} is not deployed here")
            now = self.files.change(self.version)
            if now.parent is None:
                raise RunError(f"flow {self.name!r}: there is nothing to undo; stop ends it")
            then = self.files.change(now.parent)
            return self.change(
                self.files.composition(now.parent),
                since="left",
                folder=then.folder,
                code=then.code,
                action="undo",
                parent=then.parent,
                tell=tell,
            )

    def stop(self) -> None:
        """End all units after what they are at; `resume` goes on from there."""
        with self._changing, self._doing("stopping"):
            self.files.save_state(wanted="stopped")
            self.close()

    def remove(self) -> None:
        """End all units and forget them; streams and results stay."""
        with self._changing, self._doing("removing"):
            self.files.save_state(wanted="stopped")
            self.close()
            for record in self.files.units():
                for each in record.inputs:
                    with suppress(HeadwaterError):
                        self._host.streams.forget(each.stream, record.flow_name)
            self.files.remove()

    def resume(self) -> None:
        """Go on after a stop."""
        with self._changing, self._doing("starting"):
            self.files.save_state(wanted="running")
            self.open()

    def pause(self, node: str, paused: bool = True) -> None:
        """Have a job start nothing more for now, or go on."""
        line = self.making.lines.get(node)
        if line is None:
            raise RunError(f"flow {self.name!r} has no job {node!r}")
        line.runtime.pause() if paused else line.runtime.resume()

    # --- by the host --------------------------------------------------------------------------

    def open(self) -> None:
        """Start what is wanted, and end what a crash interrupted."""
        with self._changing:
            state = self.files.state()
            if state["wanted"] != "running":
                return
            if state["version"]:
                for unit in self.files.change(state["version"]).units:
                    record = self.files.unit(unit)
                    if record.id not in self._units and not record.ended:
                        self._start_again(record)
            if state["target"] != state["version"]:
                self._carry(self.files.change(state["target"]), None, None)
            self.making.finish_old_jobs()

    def close(self) -> None:
        """End all units for now."""
        with self._feeding:
            units, self._units = dict(self._units), {}
        for unit in units.values():
            unit.stop()
        self.making.close()

    def feed(self) -> int:
        """Give the units what is new in their streams."""
        with self._feeding:
            return sum(unit.feed() for unit in self.units)

    def look(self) -> None:
        """See to it that the units run."""
        if self.doing is None:
            for unit in self.units:
                unit.look()

    # --- carrying a change through ------------------------------------------------------------

    def _carry(
        self, change: Change, prepared: Prepared | None, tell: Callable[[str], None] | None
    ) -> None:
        """Bring a version about: it can be interrupted anywhere, and done again to the end."""
        state = self.files.state()
        before = self.files.change(state["version"]) if state["version"] else None
        gone = [unit for unit in (before.units if before else ()) if unit not in change.units]
        if prepared is None:
            prepared = self._prepared_again(change, gone)
        old = [self._at_work(unit) for unit in gone]
        cutting = Cutting(self.files, self._host.streams, change)
        with self._feeding:
            cutting.cut_outside(old)
        for unit in old:
            _say(tell, f"ending {unit.record.id}")
            if not unit.record.ended:
                with self._feeding:
                    cutting.cut_inside(unit)
                unit.drain()
            self._forget(unit)
        self._make_streams(prepared)
        fresh = [b for b in prepared.units if b.record.id not in self._units]
        for built in fresh:
            if self.files.has_unit(built.record.id):
                built.record = self.files.unit(built.record.id)
                built.record.ended = False  # a source that comes back goes on
            else:
                cutting.begin(built, old)
                built.record.live = (
                    self._host.live
                    and built.flow is not None
                    and can_be_live(built.flow, self._host.capture, self._host.store)
                )
        for built in fresh:
            self.files.save_unit(built.record)
        for built in fresh:
            _say(tell, f"starting {built.record.id}")
            self._start(
                built
                if built.flow or not built.record.is_query
                else self._preparing.rebuild(built.record)
            )
        self.files.save_state(version=change.version, target=change.version)
        order = {unit: place for place, unit in enumerate(change.units)}
        with self._feeding:
            self._units = dict(sorted(self._units.items(), key=lambda u: order.get(u[0], -1)))

    def _prepared_again(self, change: Change, gone: list[str]) -> Prepared:
        """A version that a crash interrupted; one that can't be had any more is given up."""
        kept = [self.files.unit(unit) for unit in change.units if self.files.has_unit(unit)]
        composition = self.files.composition(change.version)
        try:
            return self._preparing.version(composition, change.version, change.code, kept)
        except HeadwaterError as error:
            given = [each for unit in gone for each in self.files.unit(unit).inputs]
            if all(each.until is None for each in given):
                self.files.save_state(target=self.version)
            raise RunError(
                f"version {change.version} of flow {self.name!r} could not be carried through: "
                f"{error}"
            ) from error

    def _at_work(self, unit: str) -> Unit:
        """A unit of the version that was; one that a crash ended is made ready to be drained."""
        if unit not in self._units:
            self._units[unit] = self.making.unit(self._preparing.rebuild(self.files.unit(unit)))
        return self._units[unit]

    def _forget(self, unit: Unit) -> None:
        self.watch.end(unit)
        with self._feeding:
            self._units.pop(unit.record.id, None)
        for each in unit.record.inputs:
            with suppress(HeadwaterError):
                self._host.streams.forget(each.stream, unit.consumer)

    def _make_streams(self, prepared: Prepared) -> None:
        for stream, producer in prepared.channels.producers.items():
            if stream not in self._host.streams:
                self._host.streams.create(
                    stream,
                    prepared.channels.known[stream].schema,
                    event_time=EVENT_TIME,
                    id=EVENT_ID,
                    producer=producer,
                )

    def _start_again(self, record: UnitRecord) -> None:
        try:
            self._start(self._preparing.rebuild(record))
        except HeadwaterError as error:  # a module or a stream that is gone, a damaged checkpoint
            self.broken[record.id] = str(error)
            return
        self.broken.pop(record.id, None)

    def _start(self, built: Built) -> None:
        unit = self.making.unit(built)
        with self._feeding:
            self._units[unit.record.id] = unit
        try:
            unit.start()
        except HeadwaterError as error:
            unit.error = str(error)

    def _doing(self, what: str) -> _Doing:
        return _Doing(self, what)


class _Doing:
    """What is being done to a deployment meanwhile."""

    def __init__(self, deployment: Deployment, what: str) -> None:
        self._deployment, self._what, self._before = deployment, what, deployment.doing

    def __enter__(self) -> None:
        self._deployment.doing = self._what

    def __exit__(self, *error: object) -> None:
        self._deployment.doing = self._before


def _say(tell: Callable[[str], None] | None, text: str) -> None:
    if tell is not None:
        tell(text)


def _difference(before: Composition, after: Composition) -> dict[str, Any]:
    return difference(before, after).as_json()
