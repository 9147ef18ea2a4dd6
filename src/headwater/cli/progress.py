"""What a person sees while a flow runs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from headwater.cli.output import console


def _count(number: int, name: str, ending: str = "s") -> str:
    """A number of things.

    >>> _count(1, "batch", "es"), _count(2000, "result")
    ('1 batch', '2,000 results')
    """
    return f"{number:,} {name}{'' if number == 1 else ending}"


class Totals:
    """What the batches so far add up to: an `on_batch` that counts."""

    def __init__(self, changed: Callable[[Totals], None]) -> None:
        self.batches = self.results = self.edges = 0
        self._changed = changed
        self._lock = threading.Lock()  # batches end on Spark's threads

    def __call__(self, info: Any) -> None:
        """Counts one committed batch."""
        with self._lock:
            self.batches += 1
            self.results += info.results
            self.edges += info.edges
            self._changed(self)

    def __str__(self) -> str:
        counts = [_count(self.batches, "batch", "es"), _count(self.results, "result")]
        if self.edges:  # A capture that replays keeps none, and traces all the same.
            counts.append(_count(self.edges, "edge"))
        return " · ".join(counts)


@contextmanager
def progress(
    doing: str, batches: int | None = None, shown: bool = True, counting: type[Totals] = Totals
) -> Iterator[Totals]:
    """A progress bar on stderr, moved by giving what it yields as `on_batch`.

    Without a number of `batches` to expect, it only counts. `counting` says what is counted.
    """
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with (
        _own_stderr() as stderr,
        Progress(
            SpinnerColumn(finished_text="[green]✓[/]"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[totals]}"),
            TimeElapsedColumn(),
            console=console(stderr),
            disable=not shown,
        ) as bar,
    ):
        task = bar.add_task(doing, total=batches, totals="starting Spark")

        def changed(totals: Totals) -> None:
            # Spark may add a batch without input at the end, to let the watermark close windows.
            done = totals.batches if batches is None else min(totals.batches, batches)
            bar.update(task, completed=done, totals=str(totals))

        totals = counting(changed)
        yield totals
        bar.update(task, total=1, completed=1, totals=str(totals))


@contextmanager
def counted(doing: str, first: str = "starting Spark") -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for runs of known number, moved by (what runs, done, total)."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[step]}"),
        TimeElapsedColumn(),
    )
    with _own_stderr() as stderr, Progress(*columns, console=console(stderr)) as bar:
        task = bar.add_task(doing, total=None, step=first)

        def step(what: str, done: int, total: int) -> None:
            bar.update(task, description=doing, completed=done, total=total, step=what)

        yield step


@contextmanager
def _own_stderr() -> Iterator[TextIO]:
    """A stderr that stays the terminal's while Spark starts with another one."""
    try:
        number = os.dup(sys.stderr.fileno())
    except OSError:  # not a real file: a test's
        yield sys.stderr
        return
    with os.fdopen(number, "w") as file:
        yield file
