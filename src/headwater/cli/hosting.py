"""Flows at work in the process of a command, until Ctrl-C."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import RunError

if TYPE_CHECKING:
    from headwater.deploy.host import Host


@contextmanager
def hosting(flows: Path, streams: Path | None, store: Path | None, json: bool) -> Iterator[Host]:
    """A host of the flows of a folder, with a Spark of its own."""
    from headwater.cli.spark import session
    from headwater.deploy.host import Host

    if not json:
        print("starting Spark …", file=sys.stderr)
    with session() as spark:
        host = Host(flows, streams=streams, store=store, spark=spark)
        with ending(host.end), host:  # units end after what they are at
            yield host


@contextmanager
def ending(end: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM call this meanwhile, in place of ending the process."""

    def called(*_: object) -> None:
        end()

    before = {each: signal.signal(each, called) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def stay(host: Host, once: bool, json: bool) -> None:
    """Run until Ctrl-C, or `once` all that is published has gone through."""
    if once:
        host.drain()
        failed = {
            unit.record.id: unit.error
            for deployment in host.deployments.values()
            for unit in deployment.units
            if unit.error is not None
        }
        if failed:
            raise RunError("; ".join(f"unit {unit}: {why}" for unit, why in failed.items()))
        return
    if not json:
        text = "running; `headwater flow watch` shows it, Ctrl-C ends it, and a later run goes on"
        print(text, file=sys.stderr)
    host.wait()
