"""`headwater serve`: flows at work, the REST API and the page, in one process."""

from __future__ import annotations

import contextlib
import json as encoder
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli import hosting
from headwater.cli.deploy import DEFAULT, Flows, StoreFolder
from headwater.cli.output import Json, console, print_json
from headwater.cli.streams import Folder
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.server import Settings
    from headwater.server.service import Service

PORT = 8260
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]…", help="Flow files to deploy first.", show_default=False),
    ] = None,
    flows: Flows = DEFAULT,
    streams: Folder = None,
    store: StoreFolder = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="The port; 0 is any that is free.")
    ] = PORT,
    run: Annotated[
        bool,
        typer.Option("--run/--no-run", help="Run the flows, or only show what is there."),
    ] = True,
    live: Annotated[
        bool, typer.Option("--live/--no-live", help="Keep live graphs of units that are new.")
    ] = True,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Nobody may write, whatever their token.")
    ] = False,
    read_token: Annotated[
        bool,
        typer.Option("--read-token", help="Reading needs the token HEADWATER_READ_TOKEN, too."),
    ] = False,
    allow_code: Annotated[
        bool,
        typer.Option("--allow-code", help="Flows that come by REST may have Python and commands."),
    ] = False,
    allow_url: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Such flows may call addresses that begin like this."),
    ] = None,
    allow_mail: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="Such flows may send mail to this address, or @domain."
        ),
    ] = None,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="Such flows may read files in this folder.",
            show_default="the working directory",
        ),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(
            min=1, envvar="HEADWATER_RATE", help="Requests a second of one client at most."
        ),
    ] = 1_000.0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name that the service is also called by."),
    ] = None,
    json: Json = False,
) -> None:
    """Run the flows of a folder, serve the REST API, and show it all on a web page.

    It listens on this machine alone, unless told otherwise. Writing needs a token: that of the
    environment variable HEADWATER_TOKEN, or one that is made up once, kept in the folder of flows
    and part of the address that is printed. Ctrl-C ends it, and a later start goes on from there.
    With `--json` a line with the address and the file of the token is printed, once it serves.

    Example: `headwater serve traffic.yaml --port 8260`
    """
    require_extra()
    from headwater.server.settings import READ_TOKEN, Limits, Settings, kept_token

    if host not in LOOPBACK and not allow_host:
        raise HeadwaterError(
            f"--host {host} makes the service known to others: say by which names with "
            "--allow-host NAME, and put TLS before it (docs/serve.md)"
        )
    reading = os.environ.get(READ_TOKEN) if read_token else None
    if read_token and not reading:
        raise HeadwaterError(f"--read-token needs the token in {READ_TOKEN}")
    settings = Settings(
        token=None if read_only else kept_token(flows),
        read_token=reading,
        allow_code=allow_code,
        allow_urls=tuple(allow_url or ()),
        allow_mail=tuple(allow_mail or ()),
        roots=tuple(root or (Path.cwd(),)),
        hosts=("localhost", "127.0.0.1", "[::1]", *(name.lower() for name in allow_host or ())),
        limits=Limits(rate=rate),
    )
    with (
        started(
            settings, flows, streams, store, host, port, run=run, live=live, files=files or ()
        ) as (service, address),
        ending() as ended,  # after Spark has started, which takes Ctrl-C for itself
    ):
        told(address, settings, flows, json)
        while not ended.wait(0.5):
            if service.runs and service.host.wait(0):
                break


def require_extra() -> None:
    """Say how to get what the service needs, where it is not there."""
    try:
        import fastapi
        import uvicorn
    except ImportError as error:
        raise HeadwaterError(
            f"the service needs {error.name}: install it with `pip install 'headwater[server]'`"
        ) from error
    del fastapi, uvicorn


@contextlib.contextmanager
def started(
    settings: Settings,
    flows: Path,
    streams: Path | None,
    store: Path | None,
    address: str,
    port: int,
    *,
    run: bool = True,
    live: bool = True,
    files: list[Path] | tuple[Path, ...] = (),
    light: bool = False,
) -> Iterator[tuple[Service, str]]:
    """A service that listens, and its address."""
    from headwater import streams as registry
    from headwater.cli.flow import _read
    from headwater.cli.spark import session
    from headwater.deploy.host import Host
    from headwater.server.running import listening, serving
    from headwater.server.service import Service
    from headwater.store.database import THREADS

    # Many small questions at once: sharing out each of them would cost more than it gains.
    os.environ.setdefault(THREADS, "1")
    read = [_read(file) for file in files]
    with contextlib.ExitStack() as stack:
        made = listening(address, port)
        stack.callback(made.close)
        host = None
        if run:
            print("starting Spark …", file=sys.stderr)
            spark = stack.enter_context(session(light=light))
            host = stack.enter_context(
                Host(flows, streams=streams, store=store, live=live, spark=spark)
            )
        elif files:
            raise HeadwaterError("flow files are deployed where flows are run: without --no-run")
        service = Service(
            settings,
            streams=registry.open(streams),
            flows=Path(os.path.abspath(flows)),
            store=_place(store if store is not None else flows / "store"),
            host=host,
        )
        for flow in read:
            service.host.deploy(flow, tell=lambda text: print(f"  {text}", file=sys.stderr))
        if host is not None:
            service.reductions.resume()
        yield service, stack.enter_context(serving(service, made))


def told(address: str, settings: Settings, flows: Path, json: bool = False) -> None:
    """Print where the service is."""
    from headwater.server.settings import TOKEN_FILE

    if json:
        file = None if settings.token is None else str((flows / TOKEN_FILE).absolute())
        print_json([encoder.dumps({"address": address, "token_file": file}), "\n"])
        return
    out = console()
    out.print(f"[bold]Headwater[/] serves at {address}/", soft_wrap=True, highlight=False)
    if settings.token is not None:
        out.print(
            f"  to write as well, open {address}/#token={settings.token}",
            soft_wrap=True,
            highlight=False,
            markup=False,
        )
    out.print("  Ctrl-C ends it; a later start goes on from there", markup=False)


@contextlib.contextmanager
def ending() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, in place of ending the process."""
    ended = threading.Event()
    with hosting.ending(ended.set):
        yield ended


def _place(store: Path) -> Path:
    """Where a store is, also after a change of folder; the address of a lake says that itself."""
    from headwater.store.lake.place import is_lake

    return store if is_lake(store) else Path(os.path.abspath(store))
