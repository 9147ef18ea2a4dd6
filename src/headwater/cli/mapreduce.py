"""`headwater mapreduce`: map the files of a directory as they come, reduce a sliding window."""

from __future__ import annotations

import importlib
import json as encoder
import re
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, console, print_json
from headwater.cli.progress import Totals, progress
from headwater.cli.streams import Folder
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.mapreduce.running import MapReduce

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class Capture(StrEnum):
    """How provenance is captured."""

    eager = "eager"
    ancestors = "ancestors"
    none = "none"


def mapreduce(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where files come.", show_default=False)
    ],
    map: Annotated[
        str, typer.Option("--map", help="module:function, words, or SQL.", show_default=False)
    ],
    reduce: Annotated[
        str,
        typer.Option(
            "--reduce",
            help="module:function, sum, count, min, max, or an SQL aggregate.",
            show_default=False,
        ),
    ],
    window: Annotated[
        str, typer.Option(help="A number of files, or a time: 3, '10 min'.", show_default=False)
    ],
    store: Annotated[
        Path, typer.Option(help="The store's folder; made if missing.", show_default=False)
    ],
    out: Annotated[
        str, typer.Option(metavar="STREAM", help="The stream of results.", show_default=False)
    ],
    schema: Annotated[
        str, typer.Option(metavar="DDL", help="The key's columns, then the value's.")
    ] = "word string, n bigint",
    result: Annotated[
        str | None,
        typer.Option(metavar="DDL", help="The column of results.", show_default="the value's"),
    ] = None,
    combine: Annotated[
        str | None,
        typer.Option(
            help="module:function or sum, min, max; 'reduce' for the reduce itself, 'no' for none."
        ),
    ] = None,
    format: Annotated[str, typer.Option(help="text, csv, json, parquet, avro or xml.")] = "text",
    columns: Annotated[
        str | None,
        typer.Option(metavar="DDL", help="A record's columns, unless it is text."),
    ] = None,
    pattern: Annotated[str, typer.Option(help="The names of files.")] = "*",
    capture: Annotated[
        Capture, typer.Option(help="Provenance stored, found by mapping again, or none.")
    ] = Capture.eager,
    state: Annotated[
        Path | None, typer.Option(help="The state's folder.", show_default="in the store")
    ] = None,
    settle: Annotated[
        float, typer.Option(min=0, help="Seconds that a file must not have changed for.")
    ] = 1.0,
    once: Annotated[
        bool, typer.Option("--once", help="End when the files that are there are done.")
    ] = False,
    streams: Folder = None,
    json: Json = False,
) -> None:
    """Map each file that comes into a directory, and reduce a sliding window of the outputs.

    It ends on Ctrl-C, or after a file `shutdown.txt` came; next time it goes on where it was.

    Example: `headwater mapreduce in --map words --reduce sum --window 3 --store prov --out counts`
    """
    from headwater.cli.run import watch
    from headwater.cli.spark import session
    from headwater.mapreduce.running import mapreduce as start

    told: dict[str, Any] = {"map": _given(map), "reduce": _given(reduce)}
    told["combine"] = {"reduce": True, "no": False}.get(combine or "", _given(combine))
    begun = time.perf_counter()
    with session(), progress(f"map-reduce {out}", shown=not json, counting=_Reduces) as totals:
        running = start(
            directory,
            window=window,
            store=store,
            out=out,
            schema=schema,
            result=result,
            format=format,
            columns=columns,
            pattern=pattern,
            capture=capture.value,
            state=state,
            settle=settle,
            once=once,
            streams=streams,
            on_reduce=totals,
            **told,
        )
        watch(running)
    done = _done(running, totals, time.perf_counter() - begun)
    if json:
        print_json([encoder.dumps(done), "\n"])
        return
    out_ = console()
    out_.print(
        f"{done['reduces']:,} reduces of {done['files']:,} files: {done['results']:,} results in "
        f"stream {out!r}",
        markup=False,
    )
    if done["rejected"]:
        out_.print(f"  {done['rejected']:,} rejected: {done['dead_letters']}", markup=False)
    if not done["ended"]:
        out_.print("  it goes on: start it again with the same store")


class _Reduces(Totals):
    """Counts reduces and their results."""

    def __call__(self, info: Any) -> None:
        """Counts one reduce."""
        with self._lock:
            self.batches += 1
            self.results += info.results
            self._changed(self)

    def __str__(self) -> str:
        return f"{self.batches:,} reduces · {self.results:,} results"


def _done(running: MapReduce, totals: Any, seconds: float) -> dict[str, Any]:
    """What this start did, and what there is by now."""
    state = running.state
    return {
        "stream": running.settings.out,
        "reduces": totals.batches,
        "results": totals.results,
        "files": len(state.inputs),
        "failed": sum(each.status == "failed" for each in state.inputs.values()),
        "rejected": state.letters,
        "dead_letters": str(running.dead_letters),
        "ended": running.settings.once or state.ended,
        "seconds": round(seconds, 3),
    }


def _given(told: str | None) -> str | Callable[..., Any] | None:
    """A function where one is named; a native name or SQL as it stands."""
    if told is None or not _FUNCTION.fullmatch(told):
        return told
    name, _, path = told.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise HeadwaterError(
            f"importing {name!r} failed with {type(error).__name__}: {error}; is it installed, or "
            f"in {Path.cwd()}?"
        ) from error
    found: Any = module
    for part in path.split("."):
        if not hasattr(found, part):
            raise HeadwaterError(f"module {name!r} has no {path!r}")
        found = getattr(found, part)
    if not callable(found):
        raise HeadwaterError(f"{told} is a {type(found).__name__}, not a function")
    _by_value(module)
    function: Callable[..., Any] = found
    return function


def _by_value(module: ModuleType) -> None:
    """Let the functions of a module go to workers whole, as these may not have the module."""
    from pyspark import cloudpickle

    if "site-packages" not in str(getattr(module, "__file__", "")):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
