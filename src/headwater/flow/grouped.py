"""`groupBy(...)`: groups waiting for their aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from headwater.errors import FlowError, UnsupportedError
from headwater.flow import expressions as ex
from headwater.flow import nodes
from headwater.flow.concise import require_extremes
from headwater.flow.functions import group_parameters
from headwater.flow.terms import Call
from headwater.flow.windows import window_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql.types import StructType

    from headwater.flow.frame import Frame
    from headwater.flow.windows import Session, Window


class GroupedFrame:
    """Groups of a frame's rows, with the methods of PySpark's GroupedData."""

    __slots__ = ("_frame", "_keys")

    def __init__(self, frame: Frame, keys: tuple[ex.Expr, ...]) -> None:
        self._frame = frame
        self._keys = keys

    def agg(self, *exprs: Column | dict[str, str], concise: bool = False) -> Frame:
        """One row for each group: the keys, then the aggregates.

        With `concise`, where all of them are `min` or `max`, the provenance of a result is only
        the rows that have the least or greatest value.
        """
        columns: list[Column] = []
        for e in exprs:
            if isinstance(e, dict):
                columns.extend(
                    F.expr(f"{fn}({'*' if c == '*' else f'`{c}`'})") for c, fn in e.items()
                )
            elif isinstance(e, Column):
                columns.append(e)
            else:
                raise FlowError(f"agg takes Columns or a dict, not {type(e).__name__}")
        if not columns:
            raise FlowError("agg needs at least one aggregate, such as F.count('*')")
        read = [self._frame._resolved(ex.column(c, what="agg"), "agg") for c in columns]
        window = self._window()
        for expr in read:
            _refuse_distinct(expr)
        if concise:
            require_extremes(read)
        return self._frame._add(
            nodes.Aggregate, keys=self._keys, columns=tuple(read), window=window, concise=concise
        )

    def applyInPandas(
        self,
        func: Callable[..., Any],
        schema: StructType | str,
        contributing: str | None = None,
        keep: Iterable[str] = (),
    ) -> Frame:
        """The rows that a function makes of each group: `func(frame)` or `func(key, frame)`.

        The frame has the group's rows by event time; the key is a tuple. Each row made comes from
        the whole group, unless `contributing` names a column of the schema, `array<int>`, with
        the positions of the rows that it came from. `keep` names keys that pass beside the rows.
        """
        window = self._window()
        names = [key.name for key in self._keys]
        if window is not None:
            names.append(window.column)
        parameters = group_parameters(self._frame, names, func, schema, contributing, keep)
        return self._frame._add(nodes.GroupFunction, keys=self._keys, window=window, **parameters)

    def _window(self) -> Window | Session | None:
        """The window among the keys, checked with them."""
        windows = [w for key in self._keys if (w := window_of(key, what="groupBy")) is not None]
        names = [key.name for key in self._keys if key.name is not None]
        for name in names:
            if names.count(name) > 1:
                raise FlowError(f"groupBy has two keys named {name!r}; give one an alias")
        if len(windows) > 1:
            raise UnsupportedError(
                "groupBy takes one window; Spark has no plan for two on a stream"
            )
        return windows[0] if windows else None

    def count(self) -> Frame:
        """The number of rows in each group, as column `count`."""
        return self.agg(F.count(F.lit(1)).alias("count"))

    def sum(self, *cols: str) -> Frame:
        """Sums, as columns `sum(c)`."""
        return self._each("sum", cols)

    def min(self, *cols: str, concise: bool = False) -> Frame:
        """Least values, as columns `min(c)`."""
        return self._each("min", cols, concise)

    def max(self, *cols: str, concise: bool = False) -> Frame:
        """Greatest values, as columns `max(c)`."""
        return self._each("max", cols, concise)

    def avg(self, *cols: str) -> Frame:
        """Means, as columns `avg(c)`."""
        return self._each("avg", cols)

    mean = avg

    def _each(self, function: str, cols: tuple[str, ...], concise: bool = False) -> Frame:
        if not cols:
            raise FlowError(f"groupBy(…).{function} needs the names of columns")
        made = (getattr(F, function)(c).alias(f"{function}({c})") for c in cols)
        return self.agg(*made, concise=concise)

    def __getattr__(self, name: str) -> Frame:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(
            f"groupBy(…).{name} is not supported: use agg, count, sum, min, max, avg or "
            "applyInPandas"
        )


def _refuse_distinct(expr: ex.Expr) -> None:
    for term in expr.term.walk():
        if isinstance(term, Call) and term.distinct:
            raise UnsupportedError(
                f"agg: {expr} counts distinct values, which Spark refuses on streams; "
                "use F.size(F.collect_set(…))"
            )
