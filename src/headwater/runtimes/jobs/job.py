"""`Job`: what is done for each event or window, in one step or several."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Mapping

_CALL = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_NAME = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True, slots=True)
class Step:
    """One command or function; it starts when those that it comes `after` have finished."""

    name: str = "main"
    run: str | None = None
    """A command of the shell's: the event on its standard input, events on its output."""
    call: str | None = None
    """A Python function, `module:function`, of the event."""
    spark: str | None = None
    """A Python function of a Spark session and the event."""
    after: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = [name for name in ("run", "call", "spark") if getattr(self, name) is not None]
        if not _NAME.fullmatch(self.name) or self.name == "event":
            raise FlowError(
                f"{self.name!r} can't be a step's name: a letter, then letters, digits and _, and "
                "not 'event'"
            )
        if len(given) != 1:
            raise FlowError(f"step {self.name!r} needs one of run, call, spark; it has {given}")
        if given != ["run"] and not _CALL.fullmatch(getattr(self, given[0])):
            text = getattr(self, given[0])
            raise FlowError(f"{given[0]} of step {self.name!r} is 'module:function', not {text!r}")

    @property
    def shown(self) -> str:
        """What it does, for messages."""
        return self.run or self.call or self.spark or ""


@dataclass(frozen=True, slots=True)
class Job:
    """A node of kind job in one version.

    >>> job = Job("weather", "forecast", run="python forecast.py", slots=2)
    >>> [step.name for step in job.steps], Job.parse(job.text()) == job
    (['main'], True)
    """

    flow: str
    node: str
    version: str = "1"
    run: str | None = None
    call: str | None = None
    spark: str | None = None
    steps: tuple[Step, ...] = ()
    """Instead of run, call or spark; the last one's output is the job's."""
    slots: int = 1
    """Steps that run at the same time."""
    retries: int = 2
    """Tries after a failed one."""
    backoff: float = 1.0
    """Seconds before the first retry; each further waits twice as long."""
    timeout: float | None = None
    """Seconds that one try of a step may take."""
    schema: str | None = None
    """The columns of an output event; not checked without."""
    count: int | None = None
    """Events in an execution, instead of one."""
    every: float | None = None
    """Or seconds of event time in an execution."""
    static: Mapping[str, Any] = field(default_factory=dict)
    """Values that are the same for all events."""
    folder: str | None = None
    """Where the command's files and the functions' modules are."""

    def __post_init__(self) -> None:
        alone = [each for each in (self.run, self.call, self.spark) if each is not None]
        if not self.steps:
            step = Step(run=self.run, call=self.call, spark=self.spark)
            object.__setattr__(self, "steps", (step,))
            for name in ("run", "call", "spark"):
                object.__setattr__(self, name, None)
        elif alone:
            raise FlowError(f"job {self.node!r} has steps: write what it does there, not beside")
        if self.count is not None and self.every is not None:
            raise FlowError(f"job {self.node!r}: give count or every, not both")
        for name, least in (("slots", 1), ("count", 1), ("retries", 0), ("backoff", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise FlowError(f"{name}={value} of job {self.node!r} is not {least} or more")
        for name in ("timeout", "every"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise FlowError(f"{name}={value} of job {self.node!r} is not more than 0")
        self._order()

    @property
    def windowed(self) -> bool:
        """Whether an execution takes several events."""
        return self.count is not None or self.every is not None

    def step(self, name: str) -> Step:
        """A step by its name."""
        for step in self.steps:
            if step.name == name:
                return step
        names = ", ".join(step.name for step in self.steps)
        raise FlowError(f"job {self.node!r} has no step {name!r}; it has {names}")

    def from_on(self, name: str) -> tuple[str, ...]:
        """A step and all that come after it, directly or not."""
        found = {self.step(name).name}
        for step in self.steps:
            if found & set(step.after):
                found.add(step.name)
        return tuple(step.name for step in self.steps if step.name in found)

    def delay(self, tries: int) -> float:
        """Seconds to wait after so many failed tries; an hour at most."""
        return min(float(self.backoff * 2 ** (tries - 1)), max(3600.0, self.backoff))

    def text(self) -> str:
        """As JSON, for the queue."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Job:
        """From that JSON."""
        told = json.loads(text)
        told["steps"] = tuple(
            Step(**{**step, "after": tuple(step["after"])}) for step in told["steps"]
        )
        return cls(**told)

    def _order(self) -> None:
        """Steps are written after those that they come after, so that there is no cycle."""
        known: set[str] = set()
        for step in self.steps:
            if step.name in known:
                raise FlowError(f"job {self.node!r} has two steps {step.name!r}; rename one")
            for before in step.after:
                if before not in known:
                    raise FlowError(
                        f"step {step.name!r} of job {self.node!r} comes after {before!r}, which is "
                        "no step before it; write steps after those that they need"
                    )
            known.add(step.name)
        needed = {before for step in self.steps for before in step.after}
        for step in self.steps[:-1]:
            if step.name not in needed:
                raise FlowError(
                    f"no step of job {self.node!r} comes after {step.name!r}: only the last one's "
                    "output is published"
                )
