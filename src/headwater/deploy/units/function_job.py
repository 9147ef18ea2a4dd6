"""A function that a flow file has run as jobs: called for one event, in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import FlowError
from headwater.runtimes.jobs.call import found
from headwater.runtimes.jobs.job import Job
from headwater.streams.schema import parse
from headwater.streams.sifting import sift

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.compose.kinds import Function
    from headwater.deploy.building.carried import Carried
    from headwater.deploy.records import UnitRecord


def job_of_function(
    record: UnitRecord,
    node: Function,
    given: Carried,
    static: Mapping[str, Any],
    folder: str | None,
) -> Job:
    """The job that a function is, with one execution for each event."""
    return Job(
        record.flow,
        record.name,
        str(record.version),
        call=f"{__name__}:call",
        static={
            "hw_call": node.call,
            "hw_columns": given.schema,
            "hw_keep": list(node.keep),
            "hw_batches": node.batches,
            "hw_many": node.many,
            **static,
        },
        folder=folder,
    )


def call(
    event: dict[str, Any],
    hw_call: str,
    hw_columns: str,
    hw_keep: list[str],
    hw_batches: str | None,
    hw_many: bool,
    **static: Any,
) -> list[dict[str, Any]]:
    """What the function makes of an event; columns to keep beside it."""
    from pyspark.sql import Row

    from headwater.flow.functions import taken
    from headwater.functions.frames import as_pandas

    function = found(hw_call)
    columns = parse(hw_columns)
    known = pa.schema([field for field in columns if field.name in event])
    table, reasons = sift([event], known)
    if reasons:
        raise FlowError(f"the event does not fit: {next(iter(reasons.values()))}")
    kept = {name: event[name] for name in hw_keep}
    if hw_many:
        (row,) = table.to_pylist()
        made = function(Row(**row), **static)
        return [{**kept, **(each.asDict() if isinstance(each, Row) else each)} for each in made]
    (batch,) = table.combine_chunks().to_batches()
    match taken(function, hw_batches):
        case "batch":
            result = function(batch, **static)
        case "table":
            result = function(table, **static)
        case _:
            result = function(as_pandas(batch), **static)
    return [{**kept, **row} for row in _rows(result)]


def _rows(made: Any) -> list[dict[str, Any]]:
    if isinstance(made, pa.RecordBatch | pa.Table):
        rows: list[dict[str, Any]] = made.to_pylist()
        return rows
    if hasattr(made, "to_dict") and hasattr(made, "iloc"):  # pandas
        made = made.to_dict("list")
    columns = {name: list(values) for name, values in made.items()}
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
