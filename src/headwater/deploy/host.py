"""`Host`: the process that runs deployments, and owns the store that their provenance is in."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater import streams as registry
from headwater.capture.start import open_writer
from headwater.deploy.deployment import Deployment
from headwater.deploy.mailbox import HOST, Mailbox
from headwater.deploy.monitoring.seen import deployed
from headwater.errors import HeadwaterError, RunError
from headwater.session import adopt_or_start, jvm_has_ended
from headwater.streams.files import hold, try_hold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.compose import Composition
    from headwater.deploy.records import Since
    from headwater.store.embedded import EmbeddedWriter
    from headwater.store.lake.writer import LakeWriter
    from headwater.streams import Streams
    from headwater.streams.files import Held

DEFAULT = "flows"
"""The folder of deployments where none is named."""
_POLLING = "spark.sql.streaming.pollingDelay"
"""How often a query that waits looks for files: Spark's 10 ms cost a core for a dozen of them."""
_BREATH = 0.05
"""Seconds between two looks at streams."""
_WATCH = 1.0
"""Seconds between two measurements."""


class Host:
    """Runs the deployments of a folder; of a folder there is one host at a time.

    >>> with Host("flows") as host:  # doctest: +SKIP
    ...     host.deploy(hw.Composition.read("weather.yaml"))
    ...     host.wait()
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] = DEFAULT,
        *,
        streams: str | os.PathLike[str] | None = None,
        store: str | os.PathLike[str] | None = None,
        capture: str = "eager",
        live: bool = False,
        spark: SparkSession | None = None,
        lineage: bool | None = None,
    ) -> None:
        """`store` is by default the folder's own, `streams` as `headwater.streams.open` has it.

        The store may be a lake, `delta:…`.

        With `live`, units that begin from now on keep a live graph of their records and results.
        `lineage` tells of their runs in OpenLineage; by default it does where that is configured.
        """
        self.folder = Path(os.path.abspath(folder))
        self.streams: Streams = registry.open(streams)
        self.store = Path(store) if store is not None else self.folder / "store"
        self.capture, self.live = capture, live
        self.lineage = lineage
        self._spark = spark
        self.deployments: dict[str, Deployment] = {}
        self._mailbox = Mailbox(self.folder)
        self._held: list[Held | None] = []
        self._writer: EmbeddedWriter | LakeWriter | None = None
        self._polling: str | None = None
        self._ending, self._ended = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self.trouble: str | None = None
        """What went wrong with the host itself last."""
        self._fatal: RunError | None = None

    @property
    def spark(self) -> SparkSession:
        """The session that units run in."""
        if self._spark is None:
            self._spark = adopt_or_start()
        return self._spark

    # --- running ------------------------------------------------------------------------------

    def start(self) -> Host:
        """Start everything that is deployed here, going on where it was."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held = [try_hold(self.folder / ".hosting")]
        if self._held[0] is None:
            raise RunError(
                f"the flows of {self.folder} run in another process; it takes what "
                "`headwater flow deploy` gives it"
            )
        # Requests are for this host from here on; those before were for one that is gone.
        self._mailbox.open()
        self._held.append(hold(self.folder / HOST, 5.0))
        try:
            self._polling = self.spark.conf.get(_POLLING, None)
            if self._polling is None:
                self.spark.conf.set(_POLLING, "50ms")
            # Held as long as the host runs: units that come and go need not open it anew.
            self._writer = open_writer(str(self.store))
            for name in deployed(self.folder):
                deployment = self._deployment(name)
                try:
                    deployment.open()
                except HeadwaterError as error:  # the others are to run all the same
                    self.trouble = f"flow {deployment.name!r}: {error}"
                    deployment.broken[f"version {deployment.files.state()['target']}"] = str(error)
        except BaseException:
            self._let_go()
            raise
        self._ending.clear()
        self._ended.clear()
        for work in (self._feed, self._answer, self._watch):
            thread = threading.Thread(target=work, name=f"headwater{work.__name__}", daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def stop(self) -> None:
        """End all units for now; the next host goes on where they were."""
        self._ending.set()
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        for deployment in self.deployments.values():
            deployment.close()
            deployment.watch.tick()
        self.deployments.clear()
        self._let_go()

    def end(self) -> None:
        """Have `wait` and `drain` return; `stop` then ends the units."""
        self._ended.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the host is to end; false if that took too long. Raises why it can't go on."""
        ended = self._ended.wait(timeout)
        if ended and self._fatal is not None:
            raise self._fatal
        return ended

    def __enter__(self) -> Host:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- deployments --------------------------------------------------------------------------

    def deploy(
        self,
        composition: Composition,
        *,
        since: Since = "now",
        folder: str | None = None,
        tell: Any = None,
    ) -> Deployment:
        """Deploy a flow, or change the one of its name while it runs."""
        file = composition.origin.file
        if folder is None and file is not None:
            folder = str(Path(file).resolve().parent)
        deployment = self._deployment(composition.name)
        deployment.change(composition, since=since, folder=folder, tell=tell)
        return deployment

    def deployment(self, name: str) -> Deployment:
        """A flow that is deployed here."""
        found = self.deployments.get(name)
        if found is None or not found.files.exists:
            there = ", ".join(self.deployments) or "none"
            raise RunError(f"no flow {name!r} is deployed in {self.folder}; there is {there}")
        return found

    def remove(self, name: str) -> None:
        """Stop a flow and forget it; its streams, and its results in the store, stay."""
        self.deployment(name).remove()
        del self.deployments[name]

    def drain(self, timeout: float = 600.0) -> bool:
        """Wait until all events that are published have gone through; false if it took too long."""
        until = time.monotonic() + timeout
        while time.monotonic() < until and not self.wait(0):
            if self._is_idle():
                return True
            time.sleep(_BREATH)
        return False

    def status(self) -> dict[str, Any]:
        """All deployments as they are, by their names."""
        return {name: each.status() for name, each in list(self.deployments.items())}

    # --- inner --------------------------------------------------------------------------------

    def _deployment(self, name: str) -> Deployment:
        if name not in self.deployments:
            self.deployments[name] = Deployment(self, name)
        return self.deployments[name]

    def _is_idle(self) -> bool:
        """Whether nothing waits or is being worked on."""
        from headwater.deploy.monitoring.measuring import all_idle

        deployments = list(self.deployments.values())
        if any(deployment.doing is not None for deployment in deployments):
            return False
        return all_idle(unit for deployment in deployments for unit in deployment.units)

    def _let_go(self) -> None:
        self._mailbox.close()
        if self._polling is None:
            with suppress(Exception):  # Spark may be gone before us
                self.spark.conf.unset(_POLLING)
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        for held in self._held:
            if held is not None:
                held.close()
        self._held = []

    def _feed(self) -> None:
        while not self._ending.wait(_BREATH):
            for deployment in list(self.deployments.values()):
                try:
                    deployment.feed()
                    deployment.look()
                except Exception as error:  # noqa: BLE001 - one flow must not stop the others
                    self.trouble = f"flow {deployment.name!r}: {type(error).__name__}: {error}"

    def _watch(self) -> None:
        while not self._ending.wait(_WATCH):
            if jvm_has_ended():
                # Better to end, so that whoever looks after this process starts it again, than to
                # take events for flows that can't run any more.
                self._fatal = RunError(
                    "Spark's JVM has ended (killed, or out of memory); start this again, and every "
                    "flow goes on where it was"
                )
                self.end()
                return
            for deployment in list(self.deployments.values()):
                try:
                    deployment.watch.tick()
                except Exception as error:  # noqa: BLE001 - what is not measured still runs
                    self.trouble = f"watching {deployment.name!r}: {type(error).__name__}: {error}"

    def _answer(self) -> None:
        while not self._ending.wait(2 * _BREATH):
            for request in self._mailbox.requests():
                try:
                    self._mailbox.answer(request, {"done": self._done(request)})
                except HeadwaterError as error:
                    self._mailbox.answer(request, {"error": str(error)})
                except Exception as error:  # noqa: BLE001 - told to whoever asked
                    self._mailbox.answer(request, {"error": f"{type(error).__name__}: {error}"})

    def _done(self, request: dict[str, Any]) -> Any:
        from headwater.compose import Composition

        def tell(text: str) -> None:
            self._mailbox.tell(request, text)

        action, name = request["action"], request["flow"]
        if action == "deploy":
            composition = Composition.parse(request["text"])
            deployed = self.deploy(
                composition, since=request["since"], folder=request["folder"], tell=tell
            )
            return {"version": deployed.version}
        deployment = self.deployment(name)
        if action == "undo":
            return {"version": deployment.undo(tell).version}
        if action == "remove":
            self.remove(name)
            return {"version": 0}
        if action in ("stop", "resume"):
            getattr(deployment, action)()
        else:
            raise RunError(f"{action!r} is nothing that a host does")
        return {"version": deployment.version}
