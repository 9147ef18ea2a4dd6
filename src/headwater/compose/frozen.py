"""A mapping that never changes: what nodes keep their tables of names in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class Table(Mapping[str, V], Generic[V]):
    """Names with values, in order, hashable when the values are.

    >>> Table({"n": "count(*)"})["n"], Table(a=1, b=2) == Table(b=2, a=1)
    ('count(*)', False)
    """

    __slots__ = ("_values",)

    def __init__(self, given: Mapping[str, V] | Iterable[tuple[str, V]] = (), **more: V) -> None:
        self._values: dict[str, V] = {**dict(given), **more}

    def __getitem__(self, name: str) -> V:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        # The order counts: it is that of the columns.
        return isinstance(other, Table) and list(self.items()) == list(other.items())

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __repr__(self) -> str:
        return repr(self._values)


def frozen(value: Any) -> Any:
    """Lists and mappings made unchangeable, however deep."""
    if isinstance(value, Mapping):
        return Table({str(name): frozen(item) for name, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(frozen(item) for item in value)
    return value


def thawed(value: Any) -> Any:
    """Plain lists and dicts again, as YAML and JSON write them."""
    if isinstance(value, Mapping):
        return {name: thawed(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [thawed(item) for item in value]
    return value
