"""Functions of the user's own over batches and groups: their parameters, checked at once."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructType

from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headwater.flow.frame import Frame

Takes = Literal["pandas", "batch", "table"]


def map_parameters(
    frame: Frame,
    fn: Callable[[Any], Any],
    schema: StructType | str,
    keep: Iterable[str],
    batches: str | None,
) -> dict[str, Any]:
    """The parameters of a map step."""
    if not callable(fn):
        raise FlowError(f"map takes a function of a batch, not {type(fn).__name__}")
    parsed = made_schema(frame, schema, "map")
    kept = tuple(keep)
    require_kept(kept, frame.columns, f"step {frame.step!r}", parsed.fieldNames(), "map")
    return {
        "function": fn,
        "schema": parsed,
        "given": frame.schema,
        "takes": taken(fn, batches),
        "keep": kept,
    }


def flat_map_parameters(
    frame: Frame, fn: Callable[[Any], Iterable[Any]], schema: StructType | str, keep: Iterable[str]
) -> dict[str, Any]:
    """The parameters of a flat map step."""
    if not callable(fn):
        raise FlowError(f"flat_map takes a function of a row, not {type(fn).__name__}")
    parsed = schema if isinstance(schema, StructType) else frame.flow._parse_schema(schema)
    kept = tuple(keep)
    require_kept(kept, frame.columns, f"step {frame.step!r}", parsed.fieldNames(), "flat_map")
    return {"function": fn, "schema": parsed, "keep": kept}


def group_parameters(
    frame: Frame,
    keys: Sequence[str | None],
    fn: Callable[..., Any],
    schema: StructType | str,
    contributing: str | None,
    keep: Iterable[str],
) -> dict[str, Any]:
    """The parameters of a group function; `keys` are the names of the groups' keys."""
    what = "applyInPandas"
    if not callable(fn):
        raise FlowError(f"{what} takes a function of a group, not {type(fn).__name__}")
    parsed = made_schema(frame, schema, what)
    if contributing is not None:
        _require_positions(parsed, contributing)
    made = [name for name in parsed.fieldNames() if name != contributing]
    if not made:
        raise FlowError(f"{what}: the schema has no column for results")
    kept = tuple(keep)
    require_kept(kept, [k for k in keys if k is not None], "the groups' key", made, what)
    return {
        "function": fn,
        "schema": parsed,
        "given": frame.schema,
        "with_key": _arguments(fn) == 2,
        "contributing": contributing,
        "keep": kept,
    }


def made_schema(frame: Frame, schema: StructType | str, what: str) -> StructType:
    """The schema of what a function makes."""
    parsed = schema if isinstance(schema, StructType) else frame._flow._parse_schema(schema)
    names = [name.casefold() for name in parsed.fieldNames()]
    if not names:
        raise FlowError(f"{what}: the schema has no columns")
    for name in parsed.fieldNames():
        if names.count(name.casefold()) > 1:
            raise FlowError(f"{what}: the schema has two columns called {name!r}")
    return parsed


def require_kept(
    keep: Sequence[str], there: Sequence[str], owner: str, made: Sequence[str], what: str
) -> None:
    """Refuse columns to keep that are not there, or that the function makes as well."""
    for name in keep:
        if name not in there:
            raise FlowError(f"{what}: keep names {name!r}, which {owner} lacks")
    clash = sorted(set(keep) & set(made))
    if clash:
        raise FlowError(f"{what}: {clash} are both kept and in the schema")


def taken(fn: Callable[..., Any], batches: str | None) -> Takes:
    """What a function of batches takes: as it is told, or as its parameter is annotated."""
    if batches not in (None, "arrow", "pandas"):
        raise FlowError(f"map: batches={batches!r} is neither 'arrow' nor 'pandas'")
    if batches == "pandas":
        return "pandas"
    annotated = _annotated(fn)
    if batches == "arrow" and annotated == "pandas":
        return "batch"
    return annotated


def _annotated(fn: Callable[..., Any]) -> Takes:
    parameters = list(_signature(fn).values())
    said = parameters[0].annotation if parameters else None
    # Under `from __future__ import annotations` it is a text.
    last = said.rpartition(".")[2] if isinstance(said, str) else ""
    if said is pa.Table or last == "Table":
        return "table"
    return "batch" if said is pa.RecordBatch or last == "RecordBatch" else "pandas"


def _arguments(fn: Callable[..., Any]) -> int:
    """How many arguments a group function takes: the rows, or the key and the rows."""
    given = [
        p
        for p in _signature(fn).values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    if len(given) not in (1, 2):
        raise FlowError(
            f"applyInPandas takes a function of a frame, or of a key and a frame; this one takes "
            f"{len(given)} arguments"
        )
    return len(given)


def _signature(fn: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        # Some functions written in C say nothing of themselves: taken for one argument.
        return {"rows": inspect.Parameter("rows", inspect.Parameter.POSITIONAL_ONLY)}


def _require_positions(schema: StructType, name: str) -> None:
    if name not in schema.fieldNames():
        raise FlowError(f"applyInPandas: contributing names {name!r}, which the schema lacks")
    kind = schema[name].dataType
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, IntegerType | LongType):
        raise FlowError(
            f"applyInPandas: {name!r} must be array<int>, the positions of rows, not "
            f"{kind.simpleString()}"
        )
