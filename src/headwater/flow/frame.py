"""`hw.Frame`: PySpark's DataFrame methods, recorded as nodes of a flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from pyspark.sql import Column, DataFrame

from headwater.errors import FlowError
from headwater.flow import expressions as ex
from headwater.flow import functions, matching, nodes, ordering, projecting
from headwater.flow.grouped import GroupedFrame
from headwater.flow.joining import join_node
from headwater.flow.references import reference
from headwater.flow.shaped import Shaped
from headwater.flow.unsupported import no_such_method
from headwater.flow.windows import microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql.types import StructType

    from headwater.flow.services import Answered

P = ParamSpec("P")
R = TypeVar("R")
ColumnOrName = Column | str
Ordering = Column | str | list[Column | str] | tuple[Column | str, ...]
Orderings = Ordering | dict[str, Ordering]


class Frame(Shaped):
    """Rows of a step, with the methods of a PySpark DataFrame.

    Each method adds a step to the flow and checks it with Spark at once, so that a wrong
    column name fails on the line that wrote it.
    """

    __slots__ = ()

    def named(self, step: str) -> Frame:
        """The same rows under a step name of the user's choice, stable across restarts."""
        return Frame(self._flow, self._flow._rename(self._node, step))

    # --- columns ------------------------------------------------------------------------------

    def __getitem__(self, item: str | Column | list[str | Column]) -> Any:
        if isinstance(item, Column):
            return self.filter(item)
        if isinstance(item, list | tuple):
            return self.select(*item)
        if item not in self.columns:
            raise FlowError(
                f"step {self.step!r} has no column {item!r}; it has {', '.join(self.columns)}"
            )
        return reference(self.step, item)

    def __getattr__(self, name: str) -> Column:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self.columns:
            return reference(self.step, name)
        raise no_such_method(name, self.step, self.columns)

    # --- one row to one -----------------------------------------------------------------------

    def filter(self, condition: ColumnOrName) -> Frame:
        """Rows for which the condition holds."""
        expr = self._resolved(ex.either(condition, what="filter"), "filter")
        return self._add(nodes.Filter, condition=expr)

    where = filter  # noqa: A003

    def select(self, *cols: ColumnOrName | list[ColumnOrName]) -> Frame:
        """Other columns of the same rows; `F.explode` in the list makes one row to many."""
        flat = _flatten(cols)
        return self._select([ex.column_or_name(c, what="select") for c in flat], "select")

    def selectExpr(self, *expr: str | list[str]) -> Frame:
        """As `select`, with SQL expressions."""
        return self._select([ex.sql(e, what="selectExpr") for e in _flatten(expr)], "selectExpr")

    def withColumn(self, colName: str, col: Column) -> Frame:
        """A column added or replaced."""
        return self.withColumns({colName: col})

    def withColumns(self, *colsMap: Mapping[str, Column]) -> Frame:
        """Columns added or replaced."""
        (columns,) = colsMap
        made = {
            n: ex.column(_a_column(c, "withColumn"), what="withColumn") for n, c in columns.items()
        }
        resolved = {n: self._resolved(e, "withColumn") for n, e in made.items()}
        exploding = projecting.exploding(self.columns, resolved)
        if exploding is not None:
            return self._select(exploding, "withColumn")
        projecting.refuse_windows(resolved.values(), "withColumn")
        return self._add(nodes.WithColumns, columns=tuple(resolved.items()))

    def withColumnRenamed(self, existing: str, new: str) -> Frame:
        """A column under another name; nothing happens when there is none, as in Spark."""
        return self.withColumnsRenamed({existing: new})

    def withColumnsRenamed(self, colsMap: Mapping[str, str]) -> Frame:
        """Columns under other names."""
        return self._add(nodes.Rename, names=tuple(colsMap.items()))

    def drop(self, *cols: ColumnOrName) -> Frame:
        """Columns left out; names that are not there are passed over, as in Spark."""
        exprs = [self._resolved(ex.column_or_name(c, what="drop"), "drop") for c in cols]
        return self._add(nodes.Drop, columns=tuple(exprs))

    def alias(self, alias: str) -> Frame:
        """The same rows under a name for SQL strings: `F.expr("l.vid = r.vid")`."""
        return self._add(nodes.Alias, name=alias)

    def withWatermark(self, eventTime: str, delayThreshold: str) -> Frame:
        """The event-time column and how long to wait for late rows."""
        microseconds(delayThreshold)
        return self._add(nodes.Watermark, column=eventTime, delay=delayThreshold)

    def transform(
        self, func: Callable[Concatenate[Frame, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """A function of frames applied to this one."""
        return func(self, *args, **kwargs)

    def map(
        self,
        fn: Callable[[Any], Any],
        schema: StructType | str,
        keep: Iterable[str] = (),
        batches: str | None = None,
    ) -> Frame:
        """One row to one: `fn` takes a batch of rows and gives as many, of the schema, in order.

        It takes a pandas DataFrame, or a pyarrow RecordBatch or Table where its parameter is
        annotated so (`batches="arrow"` and `"pandas"` say it outright), and gives any of them or
        a dict of columns. `keep` names columns that pass beside the new ones unchanged.
        """
        return self._add(nodes.Map, **functions.map_parameters(self, fn, schema, keep, batches))

    def service(
        self,
        target: str | Callable[..., Any],
        *,
        response: StructType | str,
        request: Sequence[str] | Mapping[str, ColumnOrName] | None = None,
        static: Mapping[str, Any] | None = None,
        concurrency: int = 8,
        retries: int = 2,
        timeout: float = 10.0,
        backoff: float = 0.2,
    ) -> Answered:
        """The rows that a service answered, with its answers; `.failures` are the others.

        `target` is a URL, to which each event goes as a JSON object, or a function, called as
        `fn(event, **static)`. `request` names the columns of an event (all of them by default),
        `response` is the schema of an answer, `static` what is the same for all events.
        """
        from headwater.flow import services

        return services.service(
            self,
            target,
            request=request,
            response=response,
            static=static,
            concurrency=concurrency,
            retries=retries,
            timeout=timeout,
            backoff=backoff,
        )

    # --- one row to many ----------------------------------------------------------------------

    def flat_map(
        self,
        fn: Callable[[Any], Iterable[Any]],
        schema: StructType | str,
        keep: Iterable[str] = (),
    ) -> Frame:
        """One row to many: `fn` takes a Row and gives tuples, dicts or Rows of the schema.

        `keep` names columns that pass beside the new ones unchanged, the event-time column
        with its watermark above all.
        """
        return self._add(nodes.FlatMap, **functions.flat_map_parameters(self, fn, schema, keep))

    # --- several rows to one ------------------------------------------------------------------

    def groupBy(self, *cols: ColumnOrName | list[ColumnOrName]) -> GroupedFrame:
        """Groups of rows with equal keys, to be aggregated."""
        keys = [ex.column_or_name(c, what="groupBy") for c in _flatten(cols)]
        return GroupedFrame(self, tuple(self._resolved(k, "groupBy") for k in keys))

    groupby = groupBy

    def agg(self, *exprs: Column | dict[str, str], concise: bool = False) -> Frame:
        """All rows aggregated to one."""
        return self.groupBy().agg(*exprs, concise=concise)

    def dropDuplicates(self, subset: list[str] | tuple[str, ...] | None = None) -> Frame:
        """The first row of those with equal values in the columns (all columns by default)."""
        return self._deduplicate(subset, "dropDuplicates", within=False)

    drop_duplicates = dropDuplicates

    def distinct(self) -> Frame:
        """The first row of those that are equal."""
        return self.dropDuplicates()

    def dropDuplicatesWithinWatermark(
        self, subset: list[str] | tuple[str, ...] | None = None
    ) -> Frame:
        """As `dropDuplicates`, forgetting a value once the watermark has passed it."""
        return self._deduplicate(subset, "dropDuplicatesWithinWatermark", within=True)

    # --- two frames ---------------------------------------------------------------------------

    def union(self, other: Frame) -> Frame:
        """The rows of both, columns matched by position."""
        return self._union(other, "union")

    unionAll = union

    def unionByName(self, other: Frame, allowMissingColumns: bool = False) -> Frame:
        """The rows of both, columns matched by name."""
        return self._union(other, "unionByName", by_name=True, allow_missing=allowMissingColumns)

    def join(
        self,
        other: Frame | DataFrame,
        on: str | list[str] | Column | list[Column] | None = None,
        how: str | None = None,
    ) -> Frame:
        """Pairs of rows; two streams need a bound on the times of a pair.

        `other` may be a Frame of the same flow, or a DataFrame that is not streaming: it is
        then joined but not traced (make it a source to trace it).
        """
        right = self._flow._static(other) if isinstance(other, DataFrame) else other
        self._same_flow(right, "join")
        return self._flow._frame(join_node(self, right, on, how))

    # --- in order of arrival ------------------------------------------------------------------

    def count_window(
        self, size: int, slide: int | None = None, *, order_by: Ordering = ()
    ) -> ordering.WindowedFrame:
        """Windows of `size` rows that begin every `slide` rows: `.by("sensor").agg(…)` follows.

        A window comes out when its last row arrives; `slide` is `size` by default.
        """
        return ordering.count_window(self, size, slide, order_by)

    def value_window(
        self,
        size: float | str,
        slide: float | str,
        on: ColumnOrName,
        *,
        order_by: Ordering = (),
    ) -> ordering.WindowedFrame:
        """Windows of rows whose value exceeds the first one's by at most `size`.

        The next window begins with the first row more than `slide` above. For times, sizes are
        intervals. A window comes out when a greater value arrives.
        """
        return ordering.value_window(self, size, slide, on, order_by)

    def b_sort(
        self, slack: int, on: Ordering, by: Ordering = (), *, order_by: Ordering = ()
    ) -> Frame:
        """The rows sorted on some columns as far as keeping `slack` of them back allows."""
        return ordering.b_sort(self, slack, on, by, order_by)

    def merge(self, *others: Frame) -> Frame:
        """The rows of several frames in the order of their arrival, columns matched by name."""
        return ordering.merge(self, others)

    def join_latest(
        self,
        other: Frame,
        on: str | list[str] | tuple[str, ...] = (),
        clock: str = "left",
        how: str = "inner",
        *,
        order_by: Orderings = (),
    ) -> Frame:
        """Each row of the clock with the most recent row of the other frame."""
        return ordering.join_latest(self, other, on, clock, how, order_by)

    def join_last(
        self,
        other: Frame,
        on: str | list[str] | tuple[str, ...] = (),
        *,
        left: int | str,
        right: int | str,
        order_by: Orderings = (),
    ) -> Frame:
        """Each row of either frame with the last rows of the other, or those of the last time."""
        return ordering.join_last(self, other, on, (left, right), order_by)

    def join_value(
        self,
        other: Frame,
        left_on: ColumnOrName,
        right_on: ColumnOrName,
        size: float | str,
        on: str | list[str] | tuple[str, ...] = (),
        *,
        order_by: Orderings = (),
    ) -> Frame:
        """Each row with those of the other frame where `left_on < right_on < left_on + size`."""
        return ordering.join_value(self, other, left_on, right_on, size, on, order_by)

    def match(
        self,
        pattern: str,
        *,
        define: Mapping[str, str] | None = None,
        measures: Mapping[str, str] | None = None,
        by: Ordering = (),
        within: str | None = None,
        after_match: str = "skip past last row",
        select: Literal["strict", "next"] = "strict",
        order_by: Ordering = (),
    ) -> Frame:
        """One row for each sequence of rows that matches a pattern such as `A B+ C?`.

        `define` has each variable's condition and `measures` what a match says, both as SQL;
        `within` bounds the time of a match. A subset of SQL's MATCH_RECOGNIZE.
        """
        return matching.match(
            self,
            pattern,
            within=within,
            by=by,
            define=define or {},
            measures=measures or {},
            after_match=after_match,
            select=select,
            order_by=order_by,
        )

    # --- how steps are added ------------------------------------------------------------------

    def _add(self, kind: type[nodes.Node], *others: Frame, **parameters: Any) -> Frame:
        inputs = (self._node, *(other._node for other in others))
        return self._flow._add(kind, inputs, **parameters)

    def _select(self, exprs: list[ex.Expr], method: str) -> Frame:
        expanded = projecting.expand_stars(exprs, lambda: self._attributes, method)
        resolved = [self._resolved(e, method) for e in expanded]
        kind, parameters = projecting.node_of(resolved, method)
        return self._add(kind, **parameters)

    def _deduplicate(self, subset: Any, method: str, *, within: bool) -> Frame:
        if isinstance(subset, str):
            raise FlowError(f"{method} takes a list of column names: [{subset!r}]")
        columns = None if subset is None else tuple(subset)
        for name in columns or ():
            if name not in self.columns:
                raise FlowError(
                    f"{method}: step {self.step!r} has no column {name!r}; "
                    f"it has {', '.join(self.columns)}"
                )
        return self._add(nodes.Deduplicate, columns=columns, within_watermark=within)

    def _union(self, other: Frame, method: str, **parameters: Any) -> Frame:
        self._same_flow(other, method)
        return self._add(nodes.Union, other, **parameters)

    def _same_flow(self, other: Any, method: str) -> None:
        if not isinstance(other, Frame):
            raise FlowError(f"{method} takes a headwater.Frame, not {type(other).__name__}")
        if other._flow is not self._flow:
            raise FlowError(
                f"{method}: step {other.step!r} belongs to flow {other._flow.name!r}, "
                f"not to {self._flow.name!r}"
            )


def _flatten(values: Iterable[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        flat.extend(value) if isinstance(value, list | tuple) else flat.append(value)
    return flat


def _a_column(value: Any, method: str) -> Column:
    if not isinstance(value, Column):
        raise FlowError(f"{method} takes a Column, not {type(value).__name__}; wrap it in F.lit(…)")
    return value
