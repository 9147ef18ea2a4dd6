"""Patterns: one row for each match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StructField, StructType, TimestampType

from headwater.columns import quoted
from headwater.lowering.ordered.arriving import arrived
from headwater.lowering.ordered.hosting import hosted
from headwater.lowering.ordered.windows import arrow_type
from headwater.lowering.shapes import match_shape
from headwater.lowering.traced import Traced, appended
from headwater.names import GROUP, KEY, NUMBER, TIME
from headwater.ordered.patterns import Patterns

if TYPE_CHECKING:
    from headwater.flow import nodes
    from headwater.lowering.tracing import Tracing


def match(tracing: Tracing, node: nodes.Match, rows: Traced) -> Traced:
    """The matches of a step, with the annotations of their rows."""
    shape = match_shape(node, rows.df).schema.fields
    ready = arrived(node, rows, node.by)
    lists = tracing.carried(rows)
    df = ready.df.withColumns({name: F.expr(sql) for name, sql in node.pattern.native.items()})
    keys, measures = shape[: len(node.by)], shape[len(node.by) :]
    step = Patterns(
        node.pattern,
        by=ready.keys,
        order=ready.orders,
        lists=lists,
        types={field.name: arrow_type(field) for field in measures},
    )
    sent = (GROUP, *ready.sorted_by, TIME, *ready.keys, *node.pattern.native, *lists)
    out = [StructField(GROUP, LongType()), StructField(NUMBER, LongType())]
    out += [StructField(TIME, TimestampType()), *ready.fields(*ready.orders)]
    out += [StructField(n, f.dataType) for n, f in zip(ready.keys, keys, strict=True)]
    out += [StructField(f.name, f.dataType) for f in measures]
    out += [StructField(name, ArrayType(df.schema[name].dataType)) for name in lists]
    done = hosted(
        df.select(*map(quoted, dict.fromkeys(sent))),
        step,
        sort=ready.sorted_by,
        schema=StructType(out),
        keyed=bool(node.by),
        timed=node.pattern.within is not None,
    )
    _, sets = tracing.collected(rows)
    places = (*ready.keys, *(field.name for field in measures))
    made = done.withColumns(sets).select(
        *(
            quoted(place).alias(field.name, metadata=field.metadata)
            for place, field in zip(places, shape, strict=True)
        ),
        *map(quoted, lists),
        F.xxhash64(GROUP, NUMBER).alias(KEY),
        F.col(TIME),
        *map(quoted, ready.orders),
        F.col(NUMBER),
    )
    origins = dict.fromkeys(rows.origins, True)
    matches = Traced(made, origins, unique=True, orders=ready.orders)
    # One row may decide several matches.
    return appended(matches, F.col(NUMBER)).without(NUMBER)
