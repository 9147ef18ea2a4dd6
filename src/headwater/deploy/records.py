"""What a deployment remembers in files: its versions, and each unit with its places in streams.

```
<home>/<flow>/deployment.json        which version is there, which one is wanted
<home>/<flow>/versions/3.yaml, .json the composition, and the units that make it up
<home>/<flow>/units/storms@3/        unit.json, inputs/<stream>/, checkpoint/
<home>/<flow>/jobs/forecast/         the queue of a job, shared by its versions
<home>/<flow>/statics/               values of static nodes
```
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headwater.deploy.building.carried import Carried
from headwater.deploy.monitoring.seen import HISTORY, STATUS
from headwater.streams.files import write_json, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.compose import Composition

Since = Literal["now", "start", "left"]


@dataclass(slots=True)
class InputRecord:
    """What a unit reads of one stream: from `start` to `until`, if there is an end."""

    node: str
    stream: str
    start: int = 0
    """Where reading begins."""
    cut: int = 0
    """Where results begin: of several sinks, the last one's."""
    until: int | None = None
    """Where it ended, or is to end."""


@dataclass(slots=True)
class UnitRecord:
    """A unit of a deployment, in the version that brought it."""

    flow: str
    name: str
    version: int
    runtime: str
    nodes: list[str]
    signature: str
    inputs: list[InputRecord]
    outputs: dict[str, list[str]]
    """The streams of each node, or `node.output`, that it publishes."""
    carried: dict[str, dict[str, Any]]
    """What is known of these streams."""
    sinks: list[str] = field(default_factory=list)
    """What it gives out: its outputs, and the sinks that only tell someone."""
    stateful: bool = False
    cuts: dict[str, dict[str, int]] = field(default_factory=dict)
    """By sink, the place in each stream from which on its results count."""
    live_from: dict[str, int] = field(default_factory=dict)
    """By sink, the first batch whose results count, once that is known."""
    live: bool = False
    """Whether it keeps a live graph: for good, as its checkpoint goes with it."""
    ended: bool = False

    @property
    def id(self) -> str:
        """Its name and version: `storms@3`."""
        return f"{self.name}@{self.version}"

    @property
    def flow_name(self) -> str:
        """What the store calls it: `weather.storms.v3`."""
        return f"{self.flow}.{self.name}.v{self.version}"

    @property
    def is_query(self) -> bool:
        """Whether it is a streaming query."""
        return self.runtime not in ("jobs", "alerts")

    @property
    def is_live(self) -> bool:
        """Whether the results of all its sinks count from here on."""
        return all(sink in self.live_from for sink in self.sinks)

    def input(self, stream: str) -> InputRecord | None:
        """What it reads of a stream."""
        return next((each for each in self.inputs if each.stream == stream), None)

    def stream_of(self, end: str) -> Carried:
        """A stream that it publishes."""
        return Carried.from_json(self.carried[end])


@dataclass(slots=True)
class Change:
    """A version: when it came, how, and what it is made of."""

    version: int
    at: float
    action: str
    units: list[str]
    """The ids of its units, those that make streams before those that read them."""
    since: Since = "now"
    folder: str | None = None
    """Where the flow file was."""
    code: str | None = None
    """Where Python files that were beside it are kept as they were, with what commands name."""
    parent: int | None = None
    """The version that undoing this one leads to."""
    difference: dict[str, Any] = field(default_factory=dict)


class DeploymentFiles:
    """The files of one deployment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        """Whether something was deployed here."""
        return (self.folder / "deployment.json").exists()

    def remove(self) -> None:
        """Forget that it is deployed, and what it needs to run.

        What its units read stays, as results lead back to it; so do its versions, as the next one
        of this name must have another number.
        """
        (self.folder / "deployment.json").unlink(missing_ok=True)
        for name in ("jobs", "statics"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in (STATUS, HISTORY):
            (self.folder / name).unlink(missing_ok=True)
        for unit in (self.folder / "units").glob("*"):
            (unit / "unit.json").unlink(missing_ok=True)
            shutil.rmtree(unit / "checkpoint", ignore_errors=True)

    # --- which version is there, which is wanted ----------------------------------------------

    def state(self) -> dict[str, Any]:
        """`version` (0 before the first), `target`, `wanted`."""
        try:
            told: dict[str, Any] = json.loads((self.folder / "deployment.json").read_bytes())
        except FileNotFoundError:
            return {"version": 0, "target": 0, "wanted": "running"}
        return told

    def save_state(self, **changes: Any) -> None:
        """Change what is there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / "deployment.json", {**self.state(), **changes})

    # --- versions -----------------------------------------------------------------------------

    def versions(self) -> list[int]:
        """The versions that there were, in order."""
        found = (self.folder / "versions").glob("*.json")
        return sorted(int(path.stem) for path in found if path.stem.isdigit())

    def composition(self, version: int) -> Composition:
        """The flow of a version."""
        from headwater.compose import Composition

        return Composition.read(self.folder / "versions" / f"{version}.yaml")

    def change(self, version: int) -> Change:
        """How a version came."""
        return Change(**json.loads((self.folder / "versions" / f"{version}.json").read_bytes()))

    def save_version(self, change: Change, composition: Composition) -> None:
        """Write a version down; it is one when its `.json` is there."""
        folder = self.folder / "versions"
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{change.version}.yaml", composition.to_yaml().encode())
        write_json(folder / f"{change.version}.json", asdict(change))

    def save_code(self, version: int, folder: str | None, named: set[str]) -> str | None:
        """Keep the Python files beside a flow file, and others by their names; where they are.

        A version then stays what it was, whatever is done to the files.
        """
        if folder is None:
            return None
        beside = (path for path in sorted(Path(folder).iterdir()) if path.is_file())
        found = [path for path in beside if path.suffix == ".py" or path.name in named]
        if not found:
            return None
        code = self.folder / "versions" / f"{version}.code"
        shutil.rmtree(code, ignore_errors=True)
        code.mkdir(parents=True)
        for file in found:
            shutil.copy2(file, code / file.name)
        return str(code)

    def forget_code(self, version: int) -> None:
        """Remove what was kept for a version that did not come to be."""
        shutil.rmtree(self.folder / "versions" / f"{version}.code", ignore_errors=True)

    # --- units --------------------------------------------------------------------------------

    def unit_folder(self, unit: str) -> Path:
        """Where a unit keeps its things."""
        return self.folder / "units" / unit

    def unit(self, unit: str) -> UnitRecord:
        """A unit's record."""
        told: Mapping[str, Any] = json.loads((self.unit_folder(unit) / "unit.json").read_bytes())
        return UnitRecord(**{**told, "inputs": [InputRecord(**each) for each in told["inputs"]]})

    def has_unit(self, unit: str) -> bool:
        """Whether a unit's record is written."""
        return (self.unit_folder(unit) / "unit.json").exists()

    def units(self) -> list[UnitRecord]:
        """All units that there ever were, the latest versions last."""
        folder = self.folder / "units"
        found = [path.parent.name for path in folder.glob("*/unit.json")]
        return sorted((self.unit(each) for each in found), key=lambda unit: unit.version)

    def save_unit(self, record: UnitRecord) -> None:
        """Write a unit's record."""
        folder = self.unit_folder(record.id)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "unit.json", asdict(record))
