"""A flow under load that is changed again and again, its host killed now and then."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headwater import streams
from headwater.compose import Composition
from headwater.compose.kinds import Aggregate, Filter, Function, Map, Sink
from headwater.deploy.mailbox import ask, is_hosted
from headwater.deploy.records import DeploymentFiles
from headwater.errors import HeadwaterError

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = 20
"""Events in a window: one a second."""
EVERY = 40
"""Every so many events there is a job."""

FLOW = f"""
flow: soak
nodes:
  nums: {{source: {{stream: nums, schema: "n bigint, at timestamp, v bigint", event_time: at, watermark: 5 seconds, id: n}}}}
  all: {{filter: {{from: nums, where: "n >= 0"}}}}
  scaled: {{function: {{from: all, call: "tests.restart.soaking:scale", static: {{factor: 1}}, schema: "s bigint", keep: [n, at, v]}}}}
  named: {{map: {{from: scaled, columns: {{w: "v + 1"}}, keep: [n, at, s]}}}}
  out: {{sink: {{from: named, stream: out}}}}
  sums: {{aggregate: {{from: nums, window: {{time: {WINDOW} seconds}}, columns: {{total: "sum(v)", c: "count(*)"}}}}}}
  summed: {{sink: {{from: sums, stream: summed}}}}
  few: {{filter: {{from: scaled, where: "n % {EVERY} = 0"}}}}
  worked: {{job: {{from: few, call: "tests.restart.soaking:work", schema: "n bigint, r bigint", slots: 2}}}}
  done: {{sink: {{from: worked, stream: done}}}}
"""


def scale(rows, factor):  # type: ignore[no-untyped-def]
    """Each event's value times a factor."""
    import pandas as pd

    return pd.DataFrame({"s": rows["v"] * factor})


def work(event, add=0):  # type: ignore[no-untyped-def]
    """A job."""
    return {"n": event["n"], "r": event["s"] + add}


def changed(flow: Composition, turn: int, random: random.Random) -> Composition:
    """Another composition that has the same events in its results."""
    kind = random.choice(["factor", "filter", "window", "map", "job", "extra", "several"])
    if kind in ("factor", "several"):
        node = flow["scaled"]
        assert isinstance(node, Function)
        flow = flow.replace("scaled", replace(node, static={"factor": turn + 2}))
    if kind in ("filter", "several"):
        flow = flow.replace("all", Filter(inputs="nums", where=f"n >= -{turn + 1}"))
    if kind in ("window", "several"):
        node = flow["sums"]
        assert isinstance(node, Aggregate)
        columns = {"total": f"sum(v) + {turn} - {turn}", "c": "count(*)"}
        flow = flow.replace("sums", replace(node, columns=columns))
    if kind == "map":
        node = flow["named"]
        assert isinstance(node, Map)
        flow = flow.replace("named", replace(node, columns={"w": f"v + 1 + 0 * {turn}"}))
    if kind == "job":
        node = flow["worked"]
        flow = flow.replace("worked", replace(node, static={"add": 1000 * turn}))
    if kind == "extra":
        if "extra" in flow:
            flow = flow.remove("extra", "extras")
        else:
            flow = flow.add("extra", Filter(inputs="named", where="n % 3 = 0"))
            flow = flow.add("extras", Sink(inputs="extra", stream="extras"))
    return flow


@dataclass
class Soak:
    """The load, the host and what was done to it."""

    home: Path
    seed: int
    rate: float = 40.0
    published: int = 0
    process: subprocess.Popen[bytes] | None = None
    _ending: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.streams = streams.open(self.home / "streams")
        self.flows = self.home / "flows"

    @contextmanager
    def load(self) -> Iterator[None]:
        """Events come all the time, a few at once, some of them out of order."""
        thread = threading.Thread(target=self._publish, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join()

    def _publish(self) -> None:
        chance = random.Random(self.seed + 1)
        while not self._ending.is_set():
            size = chance.randint(1, 8)
            rows = [_event(self.published + each) for each in range(size)]
            chance.shuffle(rows)
            self.streams.publish("nums", rows)
            self.published += size
            self._ending.wait(size / self.rate)

    def end_load(self) -> None:
        """A last event, long after the others, that closes their windows."""
        far = _event(self.published + 10 * WINDOW)
        self.streams.publish("nums", [far])

    def start(self) -> None:
        """Start the host."""
        with (self.home / "host.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.restart.hosting", str(self.home)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._until(lambda: is_hosted(self.flows), "the host did not start")

    def kill(self) -> None:
        """End the host and its JVM without a warning."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End the host."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)

    def ask(self, action: str, kill_after: float | None = None, **details: object) -> bool:
        """Have the host change the flow; with `kill_after`, kill it meanwhile. Whether it was done.

        Whatever was killed: the change is either carried through by the next host or not begun.
        """
        errors: list[str] = []

        def asking() -> None:
            try:
                ask(self.flows, action, "soak", **details)
            except HeadwaterError as error:
                errors.append(str(error))

        thread = threading.Thread(target=asking)
        thread.start()
        if kill_after is not None:
            time.sleep(kill_after)
            self.kill()
        thread.join()
        if kill_after is None:
            assert not errors, errors
        return not errors

    def deployed(self) -> DeploymentFiles:
        """The files of the flow."""
        return DeploymentFiles(self.flows / "soak")

    def wait_for(self, stream: str, events: int, seconds: float = 240.0) -> None:
        """Wait until a stream has so many events."""

        def there() -> bool:
            return stream in self.streams and self.streams.describe(stream).events >= events

        self._until(there, f"stream {stream} does not reach {events} events", seconds)

    def _until(self, done, complaint: str, seconds: float = 120.0) -> None:  # type: ignore[no-untyped-def]
        end = time.monotonic() + seconds
        while not done():
            assert self.process is None or self.process.poll() is None, self._log()
            assert time.monotonic() < end, f"{complaint}: {self._log()}"
            time.sleep(0.1)

    def _log(self) -> str:
        return (self.home / "host.log").read_text()[-3_000:]


def _event(number: int) -> dict[str, object]:
    return {"n": number, "at": BEGIN + timedelta(seconds=number), "v": number % 97}


def soak(home: Path, *, changes: int, kills: int, seed: int) -> Soak:
    """Change a flow so often under load, and kill its host so often."""
    flow = Composition.parse(FLOW)
    made = Soak(home, seed)
    made.streams.create("nums", "n bigint, at timestamp, v bigint", event_time="at", id="n")
    made.start()
    made.ask("deploy", text=flow.to_yaml(), folder=None, since="now")
    killed = set(made.random.sample(range(changes), kills))
    with made.load():
        for turn in range(changes):
            time.sleep(made.random.uniform(0, 0.6))
            kill_after = made.random.uniform(0.05, 1.5) if turn in killed else None
            if made.random.random() < 0.2 and made.deployed().change(turn_of(made)).parent:
                done = made.ask("undo", kill_after)
            else:
                flow = changed(made.deployed().composition(turn_of(made)), turn, made.random)
                text = flow.to_yaml()
                done = made.ask("deploy", kill_after, text=text, folder=None, since="now")
            if kill_after is not None:
                made.start()
            assert done or kill_after is not None
    made.end_load()
    return made


def turn_of(made: Soak) -> int:
    """The version that there is, or will be as soon as a host carries it through."""
    return int(made.deployed().state()["target"])
