"""Graphs of records with any text in a column of any name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from headwater.export.graph import Derivations, Entities, Part, own
from headwater.export.names import NAMESPACES

CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.lists(st.text(CHARACTERS, max_size=12), max_size=4)
NAMES = st.text(CHARACTERS | st.sampled_from("%:/()='.,;[]-_ \\\""), min_size=1, max_size=8)


@dataclass(frozen=True)
class Drawn:
    """Records, each of which came from the one before."""

    part: Part
    names: pa.Array
    texts: pa.Array
    namespaces = NAMESPACES
    default = None

    def parts(self) -> list[Part]:
        return [self.part]

    def entities(self) -> Iterator[Entities]:
        yield Entities(self.part, self.names, (self.texts,))

    def derivations(self) -> Iterator[Derivations]:
        yield Derivations(self.names[1:], self.names[:-1], None)

    def runs(self) -> list[object]:
        return []

    generations = runs


def drawn(texts: list[str], column: str) -> Drawn:
    """Records with these texts in a column of this name."""
    part = Part("record", (own(column, "xsd:string"),), "f", "s")
    names = [f"hw:f/s/{number}" for number in range(len(texts))]
    return Drawn(part, pa.array(names, pa.string()), pa.array(texts, pa.string()))
