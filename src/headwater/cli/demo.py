"""`headwater demo`: a stream of traffic, one alert, and where it came from."""

from __future__ import annotations

import json as encoder
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, console, print_json, print_rich, rich_table
from headwater.errors import HeadwaterError
from headwater.plain import plain

if TYPE_CHECKING:
    from headwater.cli.demo_kafka import Broker

MARKER = ".headwater-demo"
"""The file that says that a folder was made by the demo, which may thus remove it."""

FILES = 24
FILES_PER_BATCH = 3
REPORTS, ALERTS = "reports", "stopped"
"""The topics of a demo on Kafka."""


def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to put the stream and the store.")
    ] = Path("headwater-demo"),
    reports: Annotated[int, typer.Option(min=2_000, help="Position reports to make.")] = 60_000,
    keep: Annotated[
        bool, typer.Option("--keep", help="Go on with an earlier demo's folder, if there is one.")
    ] = False,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve/--no-serve", help="Show it on a web page, with traffic until Ctrl-C."
        ),
    ] = True,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="The page's port.", show_default="8260, or any"),
    ] = None,
    speed: Annotated[
        float, typer.Option(min=0.1, max=1_000, help="How much faster than the clock traffic is.")
    ] = 10.0,
    kafka: Annotated[
        bool,
        typer.Option("--kafka", help="With the stream and the alerts in topics of a broker."),
    ] = False,
    json: Json = False,
) -> None:
    """Run a small traffic stream, trace one alert to its reports and back, and show it all.

    Vehicles report their position every 30 seconds. An alert says that one stood still for two
    minutes: exactly four reports are behind it. With `--no-serve` and with `--json` it ends there;
    else a web page shows the flow at work, with more traffic for as long as it runs. A second demo
    starts fresh. With `--kafka`, in a checkout of Headwater, it starts a Kafka broker for the time
    that it runs: reports come from a topic, and alerts go to one.

    Example: `headwater demo /tmp/traffic --reports 200000`
    """
    if kafka and keep:
        raise typer.BadParameter("the broker of --kafka begins anew: it does not go with --keep")
    serve = serve and not json
    if serve:
        from headwater.cli.serve import require_extra

        require_extra()
    if kafka:
        from headwater.cli.demo_kafka import broker, require_broker

        require_broker()
    data, store = _prepare(folder, keep, reports)
    if kafka:
        with broker(folder) as running:
            _demo(folder, data, store, serve, port, speed, json, running)
    else:
        _demo(folder, data, store, serve, port, speed, json, None)


def _demo(
    folder: Path,
    data: Path,
    store: Path,
    serve: bool,
    port: int | None,
    speed: float,
    json: bool,
    kafka: Broker | None,
) -> None:
    if serve:
        from headwater.cli.demo_page import show

        show(folder, data, store, port, speed, kafka)
        return
    _run(folder, data, store, shown=not json, kafka=kafka)
    trace = traced(store)
    topics = {} if kafka is None else {name: kafka.count(name) for name in (REPORTS, ALERTS)}
    if json:
        told = trace.as_dict(store) | ({"topics": topics} if topics else {})
        print_json([encoder.dumps(plain(told)), "\n"])
        return
    print_trace(trace, store)
    if kafka is not None:
        counts = ", ".join(f"{number:,} in {name}" for name, number in topics.items())
        console().print(f"\n[bold]Messages in the topics[/] of {kafka.servers}: {counts}")


def _prepare(folder: Path, keep: bool, reports: int) -> tuple[Path, Path]:
    """Makes the folder with the stream in it, in place of an earlier demo's."""
    from headwater.examples import linear_road

    data, store = folder / "data", folder / "store"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if not (folder / MARKER).is_file():
            raise HeadwaterError(
                f"{folder} exists and was not made by `headwater demo`: name another folder"
            )
        if not keep:
            shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARKER).touch()
    except OSError as error:
        raise HeadwaterError(f"can't write {folder}: {error.strerror}") from error
    if not data.exists():
        # Under another name until it is whole, so that --keep never finds half a stream.
        writing = folder / "data.writing"
        shutil.rmtree(writing, ignore_errors=True)
        linear_road.generate(writing, reports=reports, files=FILES)
        writing.rename(data)
    return data, store


def _run(folder: Path, data: Path, store: Path, shown: bool, kafka: Broker | None) -> None:
    from headwater.cli.progress import progress
    from headwater.cli.run import watch
    from headwater.cli.spark import session
    from headwater.examples import linear_road

    with (
        progress("Linear Road", batches=FILES // FILES_PER_BATCH, shown=shown) as totals,
        session(log=folder / "spark.log", light=True),
    ):
        if kafka is None:
            flow = linear_road.flow(data, options={"maxFilesPerTrigger": str(FILES_PER_BATCH)})
        else:
            reports = kafka.fill(data, REPORTS)
            flow = kafka.flow(REPORTS, ALERTS, -(-reports * FILES_PER_BATCH // FILES))
        running = flow.start(
            store=str(store),
            checkpoint=str(folder / "checkpoint"),
            capture="eager",
            available_now=True,
            on_batch=totals,
        )
        watch(running)


@dataclass(frozen=True, slots=True)
class _Trace:
    """An alert, the reports behind it, and the alerts that one of these reached."""

    alert: Any
    reports: Any
    report: int
    reached: Any

    @property
    def result_id(self) -> int:
        return int(self.alert.column("result_id")[0].as_py())

    def as_dict(self, store: Path) -> dict[str, Any]:
        return {
            "store": str(store),
            "alert": self.alert.to_pylist()[0],
            "backward": self.reports.to_pylist(),
            "report": self.report,
            "forward": self.reached.to_pylist(),
        }


def traced(store: Path) -> _Trace:
    """An alert of the stream with its reports."""
    import headwater as hw

    with hw.open(store) as opened:
        alerts = opened.results("stopped")
        if not alerts.num_rows:
            raise HeadwaterError("no vehicle stood still: run the demo with more --reports")
        # One from the middle of the stream, where nothing is cut off at either end.
        alert = alerts.slice(alerts.num_rows // 2, 1)
        reports = opened.backward("stopped", alert.column("result_id")[0].as_py())
        report = reports.column("id")[-1].as_py()
        return _Trace(alert, reports, report, opened.forward("reports", report))


def print_trace(trace: _Trace, store: Path) -> None:
    """Print an alert, its reports, and the alerts of one of these."""
    out = console()
    alert = trace.alert.to_pylist()[0]
    window = alert["window"]
    out.print(
        f"\n[bold]An alert[/]: vehicle {alert['vid']} stood still at {alert['lo']:,} feet "
        f"from {window['start']:%H:%M:%S} to {window['end']:%H:%M:%S}\n"
    )
    print_rich(out, rich_table(trace.alert.drop_columns("window")))
    out.print(
        f"\n[bold]Its {trace.reports.num_rows} reports[/], these and no others\n"
        f'[dim]store.backward("stopped", {trace.result_id})[/]\n'
    )
    known = ["tid", "ts", "type", "xway", "lane", "dir", "seg"]  # or said already
    print_rich(out, rich_table(trace.reports.drop_columns(known)))
    out.print(
        f"\n[bold]All alerts that report {trace.report} led to[/]\n"
        f'[dim]store.forward("reports", {trace.report})[/]\n'
    )
    shown = ["sink", "result_id", "event_time", "vid"]
    if trace.reached.column("final").null_count < trace.reached.num_rows:
        shown.insert(3, "final")  # this capture knows it
    print_rich(out, rich_table(trace.reached.select(shown)))
    path = shlex.quote(str(store))
    out.print("\n[bold]Go on with[/]")
    for command in (
        f"results {path} stopped --limit 5",
        f"backward {path} stopped {trace.result_id}",
        f"forward {path} reports {trace.report} --json",
        f"doctor {path}",
    ):
        out.print(f"  {_program()} {command}", soft_wrap=True, markup=False)


def _program() -> str:
    """How the user calls Headwater: by name, or by its path if it is not on the PATH."""
    if shutil.which("headwater"):
        return "headwater"
    path = Path(sys.argv[0])
    if path.name != "headwater":
        return "python -m headwater"
    return shlex.quote(os.path.relpath(path))
