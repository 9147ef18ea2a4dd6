"""The faults of a soak: each is done to a world, and says what became of it."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.compose import Composition
from headwater.deploy.records import DeploymentFiles
from tests.restart.serving import TOKEN
from tests.soak import corruption, hostile
from tests.soak.clock import Clock
from tests.soak.disk import fill
from tests.soak.flows import CHANGED, changed
from tests.soak.schedule import Fault
from tests.soak.world import World, signal_process

RECOVERY = 180.0
"""Seconds in which all flows must run again, and have caught up."""
BEHIND = 20.0
"""Seconds of events that a flow may be behind and still keep up."""
DAMAGED = 45.0
"""Seconds in which a flow that reads a damaged file must say so."""


@dataclass
class Outcome:
    """What became of a fault."""

    kind: str
    detail: str
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Faults:
    """Does faults to a world, one after the other."""

    def __init__(self, world: World, clock: Clock, disk: str | None) -> None:
        self.world, self._clock, self._no_disk = world, clock, disk
        self._turn, self._wild = 0, 0
        self._slow: list[socket.socket] = []
        self.hostile_events: list[dict[str, Any]] = []
        self.changes = 0
        self.reader_pid: int | None = None
        self._does: dict[str, Callable[[random.Random], str]] = {
            "kill the service": self._kill,
            "kill Spark's JVM": self._kill_jvm,
            "kill a publisher": self._kill_publisher,
            "kill in a change": self._kill_in_change,
            "hot change": self._change,
            "full disk": self._full_disk,
            "clock of the service": self._jump,
            "clock of a producer": self._producer_jumps,
            "corrupt store": lambda chance: self._corrupt("store", chance),
            "corrupt checkpoint": lambda chance: self._corrupt("checkpoint", chance),
            "corrupt stream": lambda chance: self._corrupt("stream", chance),
            "hostile events": self._hostile,
            "slow readers": self._slow_readers,
        }
        self._wrong: list[str] = []

    def impossible(self, kind: str) -> str | None:
        """Why a kind of fault can't be done here, if it can't."""
        if kind == "full disk" and self._no_disk is not None:
            return f"no disk could be mounted: {self._no_disk}"
        if kind == "clock of the service":
            return self._clock.why_not
        return None

    def do(self, fault: Fault) -> Outcome:
        """Do a fault, and wait until all is well again."""
        begun, self._wrong = time.monotonic(), []
        detail = self._does[fault.kind](random.Random(fault.seed))
        if (why := self.world.until_well(RECOVERY, BEHIND)) is not None:
            self._wrong.append(f"not well after {RECOVERY:.0f} s: {why}")
            self.world.restart()
            if (why := self.world.until_well(RECOVERY, BEHIND)) is not None:
                self._wrong.append(f"not well after a restart either: {why}")
        return Outcome(fault.kind, detail, time.monotonic() - begun, self._wrong)

    # --- processes ----------------------------------------------------------------------------

    def _kill(self, chance: random.Random) -> str:
        self.world.served.kill()
        time.sleep(chance.uniform(0, 2))
        self.world.restart()
        return "the service and its JVM"

    def _kill_jvm(self, chance: random.Random) -> str:
        jvm, service = self.world.jvm(), self.world.served.pid
        if jvm is None:
            self._wrong.append("there is no JVM to kill")
            return "nothing"
        said = self._said()
        signal_process(jvm)
        until = time.monotonic() + 30
        while self.world.served.pid is not None and time.monotonic() < until:
            time.sleep(0.2)
        if self.world.served.pid is None:
            self._judge("after its JVM was killed", _own(self._said(said)))
            told = "the service ended, and was started again"
        else:
            told = f"the service {service} stayed, {self.world.is_well() or 'and recovered'}"
            self._wrong.append(f"killed JVM: {told}")
        self.world.restart()
        return told

    def _kill_publisher(self, chance: random.Random) -> str:
        self.world.kill_publisher()
        time.sleep(chance.uniform(0, 1))
        self.world.publish_readings()
        return "the publisher of readings"

    # --- changes ------------------------------------------------------------------------------

    def _next(self, chance: random.Random) -> tuple[str, str, str | None]:
        """A flow, what is to be done to it, and its text."""
        name = chance.choice(CHANGED)
        files = DeploymentFiles(self.world.home / "flows" / name)
        target = int(files.state()["target"])
        self._turn += 1
        if chance.random() < 0.2 and files.change(target).parent:
            return name, "undo", None
        flow = changed(files.composition(target), self._turn, chance)
        assert isinstance(flow, Composition)
        return name, "change", flow.to_yaml()

    def _ask(self, name: str, text: str | None) -> None:
        if text is None:
            self.world.served.call("POST", f"/api/flows/{name}/undo", {})
        else:
            self.world.served.call("POST", "/api/flows", {"text": text, "since": "now"})

    def _change(self, chance: random.Random) -> str:
        name, what, text = self._next(chance)
        try:
            self._ask(name, text)
            self.changes += 1
        except (OSError, AssertionError) as error:
            self._wrong.append(f"{what} of {name}: {error}")
        return f"{what} of {name}"

    def _kill_in_change(self, chance: random.Random) -> str:
        name, what, text = self._next(chance)

        def asking() -> None:
            with contextlib.suppress(OSError, AssertionError):
                self._ask(name, text)

        thread = threading.Thread(target=asking, daemon=True)
        thread.start()
        time.sleep(chance.uniform(0.05, 3.0))
        self.world.served.kill()
        thread.join()
        self.world.restart()
        return f"in a {what} of {name}"

    # --- disk and clock -----------------------------------------------------------------------

    def _full_disk(self, chance: random.Random) -> str:
        ballast = fill(self.world.home, leave=chance.choice([0, 0, 64 << 10]))
        seconds = chance.uniform(3, 12)
        try:
            time.sleep(seconds)
        finally:
            ballast.unlink()
        if self.world.until_well(30.0) is not None:
            # A unit that has failed for too long stays so until someone looks after it.
            self.world.restart()
            return f"for {seconds:.0f} s, with a restart after it"
        return f"for {seconds:.0f} s"

    def _jump(self, chance: random.Random) -> str:
        hours = chance.choice([-720, -24, -1, 1, 24, 720])
        self._clock.jump(hours * 3_600)
        time.sleep(chance.uniform(5, 12))
        if (why := self.world.until_well(30.0)) is not None:
            self._wrong.append(f"a clock that is {hours:+d} h off: {why}")
        self._clock.jump(0)
        return f"{hours:+d} h, and back"

    def _producer_jumps(self, chance: random.Random) -> str:
        seconds = chance.choice([-3_600, -300, 90, 300, 600])
        self.world.publisher.jump(seconds)
        return f"{seconds:+d} s"

    # --- damaged files ------------------------------------------------------------------------

    def _corrupt(self, what: str, chance: random.Random) -> str:
        world, copy = self.world, self.world.folder / "copy"
        with world.quiet():
            world.served.kill()
            corruption.keep(world.home, copy)
            file = chance.choice(corruption.targets(world.home, what))
            done = corruption.damage(file, chance.choice(corruption.DAMAGES), chance)
            place = file.relative_to(world.home)
            said = self._said()
            try:
                world.served.start()
            except AssertionError:
                told, message = "refused", _own(self._said(said))
            else:
                message = self._complaint()
                told = "failed" if message else "not needed"
            if told != "not needed":
                self._judge(f"{done.how} {place}", message)
            with contextlib.suppress(ProcessLookupError):
                world.served.kill()
            corruption.put_back(world.home, copy)
            world.served.start()
        return f"{done.how} {_general(place)}: {told}"

    def _complaint(self) -> str:
        """What is said of a flow that can't go on; nothing once all that there is went through."""
        until = time.monotonic() + DAMAGED
        while time.monotonic() < until:
            why = self.world.is_well()
            if why is not None and "building up" not in why and "Error" not in why.split(":")[0]:
                return why
            if why is None and self.world.is_well(0.0) is None:
                return ""
            time.sleep(0.3)
        return ""

    # --- events and readers -------------------------------------------------------------------

    def _hostile(self, chance: random.Random) -> str:
        first = self._wild
        self._wild += 1_000
        sent = hostile.attacks(first, chance)
        if first >= 2_000 and not any(e["text"] == "far" for e in self.hostile_events):
            sent.append(hostile.far_future(first + 999))
        refused = 0
        for attack in sent:
            try:
                receipt = self._send(attack)
            except AssertionError as error:
                status = int(str(error).split(": ", 1)[1].split()[0])
                refused += 1
                if attack.admissible or not 400 <= status < 500:
                    self._wrong.append(f"hostile {attack.name}: {str(error)[:300]}")
            except OSError as error:
                refused += 1
                if not attack.may_be_cut_off:
                    self._wrong.append(f"hostile {attack.name}: no answer, {error}")
            else:
                if not attack.admissible:
                    self._wrong.append(f"hostile {attack.name} was taken: {receipt}")
                self.hostile_events += attack.events
        return f"{len(sent)} requests, {refused} refused"

    def _send(self, attack: hostile.Attack) -> Any:
        return self.world.served.call("POST", "/api/streams/wild/events", attack.body)

    def _slow_readers(self, chance: random.Random) -> str:
        """Followers that never read what they are sent, and a reader that stands still."""
        paths = ("/api/streams/reports/follow", "/api/graph/follow", "/api/flows/follow")
        for old in self._slow:
            old.close()
        self._slow = []
        for _ in range(12):
            made = socket.create_connection(("127.0.0.1", self.world.served.port), timeout=20)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            request = (
                f"GET {chance.choice(paths)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {TOKEN}\r\n\r\n"
            )
            made.sendall(request.encode())
            self._slow.append(made)
        if self.reader_pid is not None:
            signal_process(self.reader_pid, signal.SIGSTOP)
            time.sleep(chance.uniform(2, 6))
            signal_process(self.reader_pid, signal.SIGCONT)
        return f"{len(self._slow)} followers"

    # --- inner --------------------------------------------------------------------------------

    def _said(self, after: str = "") -> str:
        """What the service printed, after what it had printed."""
        log = self.world.served.log
        return (log.read_text(errors="replace") if log.exists() else "")[len(after) :]

    def _judge(self, where: str, message: str) -> None:
        if (why := corruption.unclear(message)) is not None:
            self._wrong.append(f"{where}: {why}: {' '.join(message.split())[-500:]}")


def _own(text: str) -> str:
    """The line in which Headwater itself says why it ends; all of it if there is none."""
    found = [line for line in text.splitlines() if line.startswith("headwater: ")]
    return found[-1] if found else text


def _general(place: Path) -> str:
    """A file's place without what differs from run to run."""
    parts = [part for part in place.parts if not part.isdigit()]
    return "/".join(parts[:3] + parts[-1:]) if len(parts) > 4 else "/".join(parts)
