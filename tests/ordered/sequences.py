"""Rows of keys as short texts, run through the engine of patterns and through the oracle."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.names import GROUP, NUMBER, ORDER, TIME
from headwater.ordered.patterns import Pattern, Patterns
from headwater.ordered.tables import packed_state, unpacked_state
from headwater.testing.patterns import Found, evaluate

PLACE = f"{ORDER}0"
ROW = "__hw_row"
VALUES = {"letter": pa.string(), "v": pa.int64(), "ts": pa.int64(), "key": pa.int64()}

Row = dict[str, Any]
Batch = tuple[list[Row], int | None]


def parse(text: str) -> list[Batch]:
    """Batches of rows `a1` (letter and value), `a1@30` (with a time) or `a1@-` (without one).

    A bar ends a batch, `w30` gives it a watermark. The times are otherwise 0, 1, 2, …
    """
    batches: list[Batch] = []
    count = 0
    for part in text.split("|"):
        rows: list[Row] = []
        watermark = None
        for word in part.split():
            if re.fullmatch(r"w\d+", word):
                watermark = int(word[1:])
                continue
            name, _, time = word.partition("@")
            at = None if time == "-" else int(time) if time else count
            value = int(name[1:]) if name[1:] else None
            rows.append({"letter": name[0], "v": value, "ts": at, "key": 0, "word": name})
            count += 1
        batches.append((rows, watermark))
    return batches


def pattern(text: str, *, free: str = "", **parameters: Any) -> Pattern:
    """A pattern whose variables match rows of their own letter, unless it says otherwise.

    `free` are variables without a condition.
    """
    letters = {n: f"letter = '{n.lower()}'" for n in re.findall(r"[A-Z]", text) if n not in free}
    define = {**letters, **parameters.pop("define", {})}
    measures = parameters.pop("measures", {})
    return Pattern(
        text, define=tuple(define.items()), measures=tuple(measures.items()), **parameters
    )


@dataclass
class Engine:
    """A step with its state, which goes through bytes between batches."""

    pattern: Pattern
    types: Mapping[str, pa.DataType]
    state: bytes = b""
    arrived: int = 0

    def __post_init__(self) -> None:
        self.step = Patterns(self.pattern, by=["key"], order=[PLACE], lists=[ROW], types=self.types)

    def batch(self, rows: Sequence[Row], watermark: int | None) -> pa.Table:
        """The matches of one batch; the rows of each key are numbered as they arrived."""
        table = self.table(rows)
        self.arrived += len(rows)
        state = unpacked_state(self.state)
        table = table.sort_by([(GROUP, "ascending"), (PLACE, "ascending")])
        out, after = self.step.apply(state, table, watermark)
        self.state = packed_state(after)
        return out

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """Rows as Spark would hand them over."""
        numbers = pa.array(range(self.arrived, self.arrived + len(rows)), pa.int64())
        columns = {
            GROUP: pa.array([row["key"] for row in rows], pa.int64()),
            TIME: pa.array([row["ts"] for row in rows], pa.timestamp("us", "UTC")),
            PLACE: numbers,
            ROW: numbers,
            "key": pa.array([row["key"] for row in rows], pa.int64()),
        }
        for name, text in self.pattern.native.items():
            values = [evaluate(text, row) for row in rows]
            is_test = name in self.pattern.conditions.booleans
            columns[name] = pa.array(values, pa.bool_() if is_test else kind(text))
        return pa.table(columns)

    @property
    def kept(self) -> int:
        """How many rows are in the state."""
        return int(unpacked_state(self.state)["open"].num_rows)


def kind(text: str) -> pa.DataType:
    """The type of a native expression, as far as the tests use any."""
    if re.search(r"[<>=]| IS ", text):
        return pa.bool_()
    return VALUES.get(text, pa.float64() if "/" in text or "." in text else pa.int64())


def matches(
    text: str | Pattern, sequence: str, *, types: Mapping[str, Any] | None = None, **parameters: Any
) -> list[str]:
    """The matches of one key, as `batch: rows`, or `batch: measures` where there are any."""
    made = text if isinstance(text, Pattern) else pattern(text, **parameters)
    engine = Engine(made, types or {})
    words: list[str] = []
    out: list[str] = []
    for number, (rows, watermark) in enumerate(parse(sequence)):
        words += [row["word"] for row in rows]
        for match in engine.batch(rows, watermark).to_pylist():
            shown = [str(match[name]) for name in types or {}]
            out.append(f"{number}: {' '.join(shown or [words[at] for at in match[ROW]])}")
    return out


def engine_found(engine: Engine, batches: Sequence[Batch]) -> dict[int, list[Found]]:
    """The engine's matches by key, in the oracle's form; `classifiers` must be measured."""
    found: dict[int, list[Found]] = {}
    mine: dict[int, list[int]] = {}
    for number, (rows, watermark) in enumerate(batches):
        for place, row in enumerate(rows, engine.arrived):
            mine.setdefault(row["key"], []).append(place)
        for match in engine.batch(rows, watermark).to_pylist():
            key = match["key"]
            known = found.setdefault(key, [])
            assert match[GROUP] == key
            assert match[NUMBER] == len(known)
            numbers = tuple(mine[key].index(row) for row in match[ROW])
            place = mine[key].index(match[PLACE])
            known.append(Found(number, numbers, tuple(match["classifiers"]), place))
    return found
