"""`headwater run`: run a flow from a Python module."""

from __future__ import annotations

import importlib
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater import Flow


class Capture(StrEnum):
    """How provenance is captured."""

    auto = "auto"
    ancestors = "ancestors"
    intervals = "intervals"
    eager = "eager"
    none = "none"


class Expiry(StrEnum):
    """When a record of the live graph is past."""

    tight = "tight"
    ananke = "ananke"


def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FLOW",
            help="A flow, or a function that returns one.",
            show_default=False,
        ),
    ],
    store: Annotated[
        Path, typer.Option(help="The store's folder; made if missing.", show_default=False)
    ],
    checkpoint: Annotated[
        Path | None, typer.Option(help="Spark's checkpoint folder.", show_default="in the store")
    ] = None,
    capture: Annotated[Capture, typer.Option(help="How provenance is captured.")] = Capture.auto,
    live: Annotated[
        bool, typer.Option("--live", help="Keep the live graph of records and results.")
    ] = False,
    expiry: Annotated[
        Expiry | None,
        typer.Option(help="With --live: when a record is past.", show_default="tight"),
    ] = None,
    idle_after: Annotated[
        str | None,
        typer.Option(help="With --live: silence after which a source holds nothing back."),
    ] = None,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Stop when the input there is is done.")
    ] = False,
    finish: Annotated[
        bool,
        typer.Option(
            "--finish", help="At the end close every window and record: it can't be resumed."
        ),
    ] = False,
    trigger: Annotated[
        str | None,
        typer.Option(help="The time between batches.", show_default="as fast as possible"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print what was done as JSON, at the end.")
    ] = False,
) -> None:
    """Run a flow until it ends or you press Ctrl-C; it goes on where it stopped next time.

    Example: `headwater run jobs.traffic:flow --store prov --checkpoint cp`
    """
    from headwater.cli.output import print_json
    from headwater.cli.progress import progress
    from headwater.cli.spark import session

    with session():
        flow = load(target)
        with progress(flow.name) as totals:
            running = flow.start(
                store=str(store),
                checkpoint=str(checkpoint) if checkpoint else None,
                capture=capture.value,
                available_now=available_now,
                trigger=trigger,
                on_batch=totals,
                live=live,
                expiry=expiry.value if expiry else None,
                idle_after=idle_after,
            )
            watch(running)
            if finish:
                running.finish()
    if json:
        import json as encoder

        fields = ("batches", "results", "edges")
        done = {"flow": flow.name, **{field: getattr(totals, field) for field in fields}}
        print_json([encoder.dumps(done), "\n"])


def watch(running: Any) -> None:
    """Waits until a run ends; Ctrl-C (or SIGTERM) lets it stop cleanly, a second one does not."""
    with _interruptions() as stop:
        while running.active and not stop.is_set():
            running.wait(timeout=0.2)
        if running.active:
            running.stop()
    running.wait()


@contextmanager
def _interruptions() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, once. PySpark's own handler would make the batch fail instead."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def interrupted(number: int, _frame: object) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, interrupted) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def load(target: str) -> Flow:
    """The flow that `module:attribute` names."""
    import headwater as hw

    module_name, colon, path = target.partition(":")
    if not (module_name and colon and path):
        raise typer.BadParameter(f"{target!r} is not of the form module:flow")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise HeadwaterError(
                f"no module {module_name!r} in {Path.cwd()} or among the installed packages"
            ) from error
        raise _failed(f"importing {module_name!r}", error) from error
    except HeadwaterError:
        raise
    except Exception as error:
        raise _failed(f"importing {module_name!r}", error) from error
    for name in path.split("."):
        if not hasattr(found, name):
            raise HeadwaterError(f"module {module_name!r} has no {path!r}")
        found = getattr(found, name)
    if callable(found) and not isinstance(found, hw.Flow):
        try:
            found = found()
        except HeadwaterError:
            raise
        except Exception as error:
            raise _failed(f"calling {target}", error) from error
    if not isinstance(found, hw.Flow):
        raise HeadwaterError(
            f"{target} is a {type(found).__name__}, not a Flow or a function that returns one"
        )
    return found


def _failed(doing: str, error: Exception) -> HeadwaterError:
    """The user's own error, with the line of theirs where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = str(Path(__file__).parent)
    theirs = [f for f in frames if not f.filename.startswith((ours, "<frozen"))]
    where = f" ({theirs[-1].filename}:{theirs[-1].lineno})" if theirs else ""
    return HeadwaterError(
        f"{doing} failed with {type(error).__name__}: {error}{where}; --debug shows the traceback"
    )
