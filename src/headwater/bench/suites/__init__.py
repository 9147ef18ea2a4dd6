"""The suites of `headwater bench capture`, by name: each measures one experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from headwater.bench.suites import (
    basic,
    chain,
    linear_road,
    nested,
    retrieval,
    slides,
    windows,
)
from headwater.bench.suites import complex as complex_network

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headwater.bench.report import Table

Suite: TypeAlias = "Callable[..., Iterator[Table]]"
"""Takes a `Lab` and options of its own."""

SUITES: dict[str, Suite] = {
    "linear-road": linear_road.tables,
    "basic": basic.tables,
    "nested": nested.tables,
    "windows": windows.tables,
    "slides": slides.tables,
    "complex": complex_network.tables,
    "retrieval": retrieval.tables,
    "chain": chain.tables,
}
