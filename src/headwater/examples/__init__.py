"""Streams and flows to try Headwater with.

`NAMES` lists those of one shape, the flows of Ananke's evaluation: each module has a generator and
adds its source and sinks to a flow.

>>> load("smart_grid").SINKS
('blackout', 'anomaly')
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    import os
    from collections.abc import Collection
    from pathlib import Path

    from headwater import Flow

NAMES = ("linear_road", "smart_grid", "vehicle_tracking", "object_annotation", "synthetic")


class Example(Protocol):
    """What a module of `NAMES` offers; some of its functions take more than is shown here."""

    SCHEMA: str
    """The records' columns, for Spark; the first is the id, the second the event time."""

    SOURCE: str
    """The name of the source, and of its files."""

    SINKS: tuple[str, ...]

    def generate(
        self,
        path: str | os.PathLike[str],
        records: int = ...,
        /,
        *,
        files: int = ...,
        seed: int = ...,
        disorder: int = ...,
    ) -> list[Path]:
        """Writes so many records into a new folder, as `files` files in order of their arrival.

        The stream is a pure function of the parameters, and the record with a given id is the same
        however many files there are. With `disorder` a record arrives up to that many seconds after
        its time: a watermark of as many seconds keeps every record.
        """

    def sinks(
        self,
        flow: Flow,
        path: str | os.PathLike[str],
        /,
        *,
        only: Collection[str] = ...,
        watermark: str = ...,
        **source: Any,
    ) -> None:
        """Adds the source over a folder, and the sinks that are asked for, to a flow.

        `source` are more parameters of `flow.source`, such as `options` or `keep`.
        """


def load(name: str) -> Example:
    """One of the modules, imported when it is asked for."""
    if name not in NAMES:
        raise HeadwaterError(f"no example is called {name!r}: there are {', '.join(NAMES)}")
    return cast("Example", import_module(f"headwater.examples.{name}"))
