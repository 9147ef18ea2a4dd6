"""`headwater flow deploy` and what follows it: change, undo, stop, resume, pause, rerun."""

from __future__ import annotations

import json as encoder
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater.cli.changes import changes, files_of, print_change, print_effect
from headwater.cli.hosting import hosting, stay
from headwater.cli.output import Json, print_json, print_table
from headwater.cli.streams import Folder
from headwater.errors import RunError

Flows = Annotated[
    Path,
    typer.Option("--flows", metavar="FOLDER", help="The folder of deployed flows."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The flow's name.", show_default=False)]
StoreFolder = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="FOLDER", help="The store.", show_default="in the folder of flows"
    ),
]
Rates = Annotated[
    bool | None,
    typer.Option(
        "--rates/--no-rates",
        help="After a change, show the rates of the nodes that are new.",
        show_default="on a terminal",
    ),
]
DEFAULT = Path("flows")


class Since(StrEnum):
    """Which events a unit that is new sees."""

    now = "now"
    start = "start"
    left = "left"


def deploy(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A flow file.", show_default=False)],
    flows: Flows = DEFAULT,
    streams: Folder = None,
    store: StoreFolder = None,
    since: Annotated[
        Since,
        typer.Option(
            help="Which events units that a change adds see: those from now on, all of their "
            "streams, or those since nodes of their names ended."
        ),
    ] = Since.now,
    once: Annotated[
        bool,
        typer.Option("--once", help="End when all that is published has gone through."),
    ] = False,
    rates: Rates = None,
    json: Json = False,
) -> None:
    """Deploy a flow file; if the flow is deployed already, change it while it runs.

    Units that the change does not touch go on; the others end at a cut and new ones begin there, so
    that no event is lost or done twice. Where a process runs the flows of the folder, it
    takes the change; otherwise this one begins to run them, until Ctrl-C.

    Example: `headwater flow deploy weather.yaml`
    """
    from headwater.cli.flow import _read, _refused
    from headwater.compose.planning import deployable
    from headwater.deploy.mailbox import ask, is_hosted

    with _refused(json):
        flow = _read(file)
        deployable(flow)
        if is_hosted(flows):
            told = _telling(json)
            begun = time.perf_counter()
            done = ask(
                flows,
                "deploy",
                flow.name,
                text=flow.to_yaml(),
                folder=str(file.resolve().parent),
                since=since.value,
                tell=told,
            )
            took = time.perf_counter() - begun
            started = print_change(flows, flow.name, done["version"], took, json)
            print_effect(flows, flow.name, started, rates, json)
            return
        with hosting(flows, streams, store, json) as host:
            begun = time.perf_counter()
            deployed = host.deploy(flow, since=since.value, tell=_telling(json))
            took = time.perf_counter() - begun
            print_change(flows, flow.name, deployed.version, took, json)
            stay(host, once, json)


def run(
    flows: Flows = DEFAULT,
    streams: Folder = None,
    store: StoreFolder = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="End when all that is published has gone through."),
    ] = False,
    json: Json = False,
) -> None:
    """Run the flows that were deployed in a folder, from where they were, until Ctrl-C.

    Example: `headwater flow run --flows flows`
    """
    from headwater.deploy.monitoring.seen import deployed

    if not deployed(flows):
        raise RunError(f"no flow is deployed in {flows}; use `headwater flow deploy FILE`")
    with hosting(flows, streams, store, json) as host:
        stay(host, once, json)


def undo(name: Name, flows: Flows = DEFAULT, rates: Rates = None, json: Json = False) -> None:
    """Go back to the version before; nodes that return go on where they had left off.

    Example: `headwater flow undo weather`
    """
    begun = time.perf_counter()
    done = _asked(flows, "undo", name, json)
    started = print_change(flows, name, done["version"], time.perf_counter() - begun, json)
    print_effect(flows, name, started, rates, json)


def set_(
    name: Name,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node.", show_default=False)],
    values: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE…", help="Its keys, or static values by name."),
    ],
    flows: Flows = DEFAULT,
    rates: Rates = None,
    json: Json = False,
) -> None:
    """Change keys or static values of a node while the flow runs; VALUE is YAML.

    Example: `headwater flow set weather find35 level=30`
    """
    from headwater.cli.flow import _refused
    from headwater.deploy.mailbox import ask
    from headwater.deploy.tuning import tuned

    files = files_of(flows, name)
    with _refused(json):
        flow = tuned(files.composition(files.state()["version"]), node, values)
        _require_host(flows)
        change = files.change(files.state()["version"])
        begun = time.perf_counter()
        text, told = flow.to_yaml(), _telling(json)
        done = ask(flows, "deploy", name, text=text, folder=change.folder, since="now", tell=told)
        took = time.perf_counter() - begun
        started = print_change(flows, name, done["version"], took, json)
        print_effect(flows, name, started, rates, json)


def stop(name: Name, flows: Flows = DEFAULT, json: Json = False) -> None:
    """Stop a flow; its streams, its state and its results stay, and `resume` goes on from there.

    Example: `headwater flow stop weather`
    """
    _asked(flows, "stop", name, json)
    _print(json, {"flow": name, "stopped": True}, f"flow {name} is stopped")


def resume(name: Name, flows: Flows = DEFAULT, json: Json = False) -> None:
    """Go on with a flow that was stopped.

    Example: `headwater flow resume weather`
    """
    _asked(flows, "resume", name, json)
    _print(json, {"flow": name, "stopped": False}, f"flow {name} goes on")


def pause(
    name: Name,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A job.", show_default=False)],
    flows: Flows = DEFAULT,
    off: Annotated[bool, typer.Option("--off", help="Go on with it instead.")] = False,
    json: Json = False,
) -> None:
    """Have a job start nothing more for now; its events wait in its queue.

    Example: `headwater flow pause weather forecast`
    """
    with _queue(flows, name, node) as queue:
        queue.resume() if off else queue.pause()
    text = "goes on" if off else "is paused"
    _print(json, {"flow": name, "node": node, "paused": not off}, f"job {node} of {name} {text}")


def rerun(
    name: Name,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A job.", show_default=False)],
    key: Annotated[
        str | None,
        typer.Argument(metavar="KEY", help="An execution; all that failed by default."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(help="Only this step and those after it, with what is kept of the others."),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Those that finished as well.")] = False,
    flows: Flows = DEFAULT,
    json: Json = False,
) -> None:
    """Do executions of a job again: one, all that failed, or all; whole, or from a step on.

    Example: `headwater flow rerun weather forecast --step solve`
    """
    from headwater.runtimes.jobs import State

    with _queue(flows, name, node) as queue:
        if key is not None:
            made = [queue.rerun(key, step=step)]
        else:
            states = (State.finished, State.failed) if all else (State.failed,)
            made = queue.rerun_all(step=step, states=states)
    _print(json, {"rerun": made}, f"{len(made)} executions of {node} are done again")


def versions(name: Name, flows: Flows = DEFAULT, json: Json = False) -> None:
    """List the versions of a flow: when each came, and what it changed.

    Example: `headwater flow versions weather`
    """
    import pyarrow as pa

    files = files_of(flows, name)
    now = files.state()["version"]
    rows = []
    for number in files.versions():
        change = files.change(number)
        rows.append(
            {
                "version": number,
                "at": datetime.fromtimestamp(change.at, UTC),
                "action": change.action,
                "changes": changes(change.difference) or None,
                "units": ", ".join(change.units),
                "current": number == now,
            }
        )
    print_table(pa.Table.from_pylist(rows), json)


# --- inner ------------------------------------------------------------------------------------


def _require_host(flows: Path) -> None:
    from headwater.deploy.mailbox import is_hosted

    if not is_hosted(flows):
        raise RunError(
            f"no process runs the flows of {flows}; `headwater flow run --flows {flows}` does"
        )


def _asked(flows: Path, action: str, name: str, json: bool) -> dict[str, Any]:
    from headwater.deploy.mailbox import ask

    _require_host(flows)
    return ask(flows, action, name, tell=_telling(json))


def _telling(json: bool) -> Callable[[str], None] | None:
    if json:
        return None
    return lambda text: print(f"  {text}", file=sys.stderr)


@contextmanager
def _queue(flows: Path, name: str, node: str) -> Iterator[Any]:
    from headwater.runtimes.jobs import JobQueue

    folder = flows / name / "jobs" / node
    if not (folder / "queue.db").exists():
        there = ", ".join(sorted(p.parent.name for p in (flows / name / "jobs").glob("*/queue.db")))
        raise RunError(f"flow {name!r} in {flows} has no job {node!r}; it has {there or 'none'}")
    with JobQueue(folder) as queue:
        yield queue


def _print(json: bool, told: dict[str, Any], text: str) -> None:
    print_json([encoder.dumps(told), "\n"]) if json else typer.echo(text)
