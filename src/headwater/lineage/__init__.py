"""Live OpenLineage events of flows, by the official client and its usual configuration.

The client is `openlineage-python`, which is installed with `headwater[server]` and imported when
events are to be told. Without configuration none are.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import uuid
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.capture.listening import NOBODY
from headwater.errors import RunError
from headwater.lineage.emitting import Emitter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.capture.listening import Listener
    from headwater.deploy.records import UnitRecord
    from headwater.flow.flow import Flow
    from headwater.lineage.describing import Parent
    from headwater.streams import Streams

EVERY = "HEADWATER_LINEAGE_EVERY"
"""The variable that says how many seconds lie between two events of a run that goes on."""
_MISSING = "OpenLineage events need the package openlineage-python: pip install 'headwater[server]'"
_emitters: dict[object, Emitter] = {}
_making = threading.Lock()
_PROCESS = uuid.uuid4()
log = logging.getLogger("headwater")


def listener(
    flow: Flow,
    store: str,
    lineage: bool | None,
    *,
    job: str | None = None,
    parent: Parent | None = None,
) -> Listener:
    """Who tells of a flow's runs: nobody, unless it is asked for or OpenLineage is configured."""
    if lineage is False or _is_disabled() or (lineage is None and not is_configured()):
        return NOBODY
    if find_spec("openlineage") is None:
        if lineage:
            raise RunError(_MISSING)
        _tell_once(_MISSING)  # what is set may be meant for others: no reason not to run
        return NOBODY
    from headwater.lineage.describing import describe
    from headwater.lineage.telling import Teller

    where = os.path.realpath(store)
    every = _seconds()
    return Teller(lambda: describe(flow, where, job=job, parent=parent), emitter(), every=every)


def unit_listener(
    flow: Flow, store: str, streams: Streams, record: UnitRecord, lineage: bool | None
) -> Listener:
    """Who tells of the runs of a deployed flow's unit, each a part of the flow's own run.

    That lasts as long as the process that hosts the flow. The job is the same in every version.
    """
    from headwater.lineage.describing import Parent
    from headwater.lineage.naming import note_streams

    note_streams(flow, streams)
    parent = Parent(
        record.flow, str(uuid.uuid5(_PROCESS, f"{os.path.abspath(store)}/{record.flow}"))
    )
    return listener(flow, store, lineage, job=f"{record.flow}.{record.name}", parent=parent)


def is_configured() -> bool:
    """Whether the client would find a configuration, where it looks for one."""
    if any(name in ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG") for name in os.environ):
        return True
    if any(name.startswith("OPENLINEAGE__TRANSPORT") for name in os.environ):
        return True
    return any(path.is_file() for path in _files())


def emitter() -> Emitter:
    """The one that all flows share, as long as the configuration stays what it is."""
    with _making:
        key = _configuration()
        if key not in _emitters:
            _emitters[key] = Emitter(_client)
            _close_at_exit()
        return _emitters[key]


def flush(timeout: float = 5.0) -> bool:
    """Wait until all events are handed over; false if that took too long."""
    return all(one.flush(timeout) for one in list(_emitters.values()))


def counts() -> dict[str, int]:
    """How many events were handed over, could not be, and were dropped, in this process."""
    found = list(_emitters.values())
    return {name: sum(getattr(e, name) for e in found) for name in ("emitted", "failed", "dropped")}


def _client() -> Any:
    from openlineage.client import OpenLineageClient

    before = dict(os.environ)
    try:
        return OpenLineageClient()
    finally:
        # The client notes what it made of OPENLINEAGE_URL among the variables: these stay ours.
        for name in [n for n in os.environ if n.startswith("OPENLINEAGE__") and n not in before]:
            del os.environ[name]


def _configuration() -> tuple[Iterable[object], ...]:
    settings = sorted(pair for pair in os.environ.items() if pair[0].startswith("OPENLINEAGE"))
    return tuple(settings), tuple(str(path) for path in _files() if path.is_file())


def _files() -> list[Path]:
    name = "openlineage.yml"
    return [Path.cwd() / name, Path("~/.openlineage").expanduser() / name]


def _is_disabled() -> bool:
    return os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true"


def _seconds() -> float:
    from headwater.lineage.telling import EVERY as DEFAULT

    text = os.environ.get(EVERY)
    try:
        return DEFAULT if text is None else max(0.0, float(text))
    except ValueError:
        raise RunError(f"{EVERY}={text!r} is not a number of seconds") from None


@cache
def _tell_once(text: str) -> None:
    log.warning(text)


@cache
def _close_at_exit() -> None:
    def close() -> None:
        for one in list(_emitters.values()):
            one.close()

    atexit.register(close)
