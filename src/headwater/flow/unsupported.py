"""DataFrame methods that a Frame does not have, and what to use instead."""

from __future__ import annotations

from headwater.errors import UnsupportedError
from headwater.spelling import guess

_AFTER = "run the flow and ask the store: hw.open(store).results(sink)"
_SINK = "end the frame in flow.sink(name, frame) and flow.start(store=…)"
_ORDER = "a stream has no end to sort at: sort the answer, store.results(sink).sort_by(…)"
_KEEP = "leave it out: it changes how Spark runs, not what the flow means"

INSTEAD = {
    "limit": "a stream has no first rows; use filter, or store.results(sink, limit=…)",
    "offset": "a stream has no first rows; use filter",
    "sort": _ORDER,
    "orderBy": _ORDER,
    "sortWithinPartitions": _ORDER,
    "show": _AFTER,
    "collect": _AFTER,
    "take": _AFTER,
    "head": _AFTER,
    "first": _AFTER,
    "tail": _AFTER,
    "toPandas": _AFTER,
    "toArrow": _AFTER,
    "toLocalIterator": _AFTER,
    "count": "groupBy(…).count(), or len(store.results(sink)) after the run",
    "isEmpty": _AFTER,
    "write": _SINK,
    "writeStream": _SINK,
    "writeTo": _SINK,
    "foreach": "flow.sink(name, frame, write=function)",
    "foreachPartition": "flow.sink(name, frame, write=function)",
    "createOrReplaceTempView": "use Frame methods; SQL strings work in filter and selectExpr",
    "crossJoin": "join(other, on=…) with a condition; two streams need a bound on time",
    "rollup": "a groupBy for each level, united",
    "cube": "a groupBy for each level, united",
    "pivot": "F.sum(F.when(…)) for each value",
    "intersect": "join on all columns",
    "exceptAll": "a left outer join and a filter on null",
    "subtract": "a left outer join and a filter on null",
    "sample": "filter on a hash of the id: F.xxhash64('id') % 100 < 5",
    "cache": _KEEP,
    "persist": _KEEP,
    "repartition": _KEEP,
    "coalesce": _KEEP,
    "hint": _KEEP,
    "checkpoint": "flow.start(checkpoint=…)",
    "mapInPandas": "map(fn, schema) for one row each, or flat_map(fn, schema) for any number",
    "mapInArrow": "map(fn, schema) for one row each, or flat_map(fn, schema) for any number",
    "rdd": "map(fn, schema) for one row each, or flat_map(fn, schema) for any number",
    "failures": "service(…).failures: only what a service answered has failures beside it",
    "fillna": "withColumn(name, F.coalesce(name, F.lit(…)))",
    "dropna": "filter('name is not null')",
    "toDF": "select with aliases, or withColumnRenamed",
    "unpivot": "select with F.explode(F.array(F.struct(…)))",
    "observe": "a sink of its own with a groupBy",
}


def no_such_method(name: str, step: str, columns: list[str]) -> UnsupportedError:
    """The error for a method or column that a frame does not have."""
    if name in INSTEAD:
        return UnsupportedError(f"Frame.{name} is not supported on step {step!r}: {INSTEAD[name]}")
    hint = guess(name, columns, after=" ")
    return UnsupportedError(
        f"step {step!r} has no column or method {name!r}; {hint}"
        f"its columns are {', '.join(columns)}"
    )
