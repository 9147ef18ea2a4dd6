"""The demo's page: Linear Road deployed, with traffic for as long as somebody looks."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from headwater.cli.demo import print_trace, traced
from headwater.cli.output import console
from headwater.cli.serve import PORT, ending, started, told
from headwater.errors import HeadwaterError
from headwater.streams.registry import LOG

if TYPE_CHECKING:
    from headwater.cli.demo_kafka import Broker
    from headwater.server.service import Service

_PATIENCE = 300.0
"""Seconds that the first hour of traffic may take."""


def show(
    folder: Path,
    data: Path,
    store: Path,
    port: int | None,
    speed: float,
    kafka: Broker | None = None,
) -> None:
    """Deploy the flow, run the first hour of traffic, print a trace, and serve until Ctrl-C.

    With Kafka every stream of the flow is a topic.
    """
    from headwater import streams as registry
    from headwater.examples.live_traffic import FLOW, LiveTraffic
    from headwater.server.settings import Settings, kept_token

    out = console()
    if kafka is not None:
        os.environ[LOG] = "kafka:"
    flows, names = folder / "flows", folder / "streams"
    settings = Settings(token=kept_token(flows), roots=(Path(os.path.abspath(folder)),))
    traffic = LiveTraffic(registry.open(names), pq.read_table(data), speed)
    traffic.declare()
    traffic.first()
    with (
        started(
            settings, flows, names, store, "127.0.0.1", _free(port), files=(FLOW,), light=True
        ) as (service, address),
        ending() as ended,  # after Spark has started, which takes Ctrl-C for itself
    ):
        out.print("driving an hour of traffic …")
        _await_first(service, ended)
        if ended.is_set():
            return
        trace = traced(store)
        print_trace(trace, store)
        traffic.start()
        try:
            out.print()
            told(address, settings, flows)
            result = trace.result_id
            for what, where in (
                ("the flow at work", "/"),
                ("that alert", f"/trace?sink=stopped&result={result}"),
                ("records and results as they come", "/live"),
            ):
                out.print(f"  {what}: {address}{where}", soft_wrap=True, highlight=False)
            if kafka is not None:
                topics = ", ".join(sorted(registry.open(names).names()))
                out.print(f"  topics at {kafka.servers}: {topics}", soft_wrap=True, highlight=False)
            ended.wait()
        finally:
            traffic.stop()


def _free(port: int | None) -> int:
    """The port that was asked for; any, where the usual one is taken."""
    from headwater.server.running import listening

    if port is not None:
        return port
    try:
        listening("127.0.0.1", PORT).close()
    except HeadwaterError:
        return 0
    return PORT


def _await_first(service: Service, ended: threading.Event) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and not ended.is_set() and not service.host.drain(1.0):
        for deployment in service.host.deployments.values():
            for unit in deployment.units:
                if unit.state == "failed":
                    raise HeadwaterError(f"unit {unit.record.id}: {unit.error}")
