"""What all nodes have in common: keys that check themselves, ports, a cardinality, runtimes."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headwater.compose.cardinality import ONE, Cardinality
from headwater.compose.structures import Cardinalities, Port, Ports
from headwater.compose.values import Choice, Value, Wrong
from headwater.compose.violations import CompositionError, Violation, a, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Runtime = Literal["operators", "functions", "jobs", "static"]
RUNTIMES: tuple[Runtime, ...] = ("operators", "functions", "jobs", "static")


def key(type: Value, doc: str, name: str | None = None) -> dict[str, Any]:
    """What a field's metadata say: the type of a key's value, what it means, its name in files."""
    return {"type": type, "doc": doc, "name": name}


@dataclass(frozen=True, slots=True)
class Key:
    """A key as files, schema and docs see it."""

    name: str
    """In files; `from` is `inputs` in Python."""
    attribute: str
    type: Value
    doc: str
    default: Any
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step of a composition, checked when it is made."""

    kind: ClassVar[str]
    ports: ClassVar[tuple[int, int | None]] = (1, 1)
    """How many ports it takes: at least, at most."""
    outputs: ClassVar[tuple[str, ...]] = ()
    """What can be read of it besides its rows: `from: lookup.failures`."""
    runtimes: ClassVar[tuple[Runtime, ...]] = ("operators",)
    """Where it can run: the first by itself, the others when forced."""
    promotable: ClassVar[bool] = False
    """Whether it is a step of a pure workflow, run once, until a stream comes in."""
    statics: ClassVar[bool] = False
    """Whether static inputs may come in beside a stream, repeated for each event."""
    joins: ClassVar[bool] = False
    """Whether it takes streams of several labels, whatever comes out."""
    rigid: ClassVar[bool] = False
    """Whether a declared cardinality can't be above the natural one."""
    lacks: ClassVar[tuple[str, ...]] = ()
    """Keys of all nodes that mean nothing for this kind."""

    inputs: tuple[Port, ...] = field(metadata=key(Ports(), "the node or nodes it reads", "from"))
    cardinality: Cardinality | None = field(
        default=None,
        metadata=key(Cardinalities(), "events out for each event in, where you know better"),
    )
    runtime: Runtime | None = field(
        default=None, metadata=key(Choice(RUNTIMES), "where it runs, if not where it would")
    )

    def __post_init__(self) -> None:
        found: list[Violation] = []
        for each in keys(type(self)):
            value = getattr(self, each.attribute)
            if value is each.default:
                continue
            try:
                object.__setattr__(self, each.attribute, each.type.read(value))
            except Wrong as error:
                found.append(Violation("value", f"{each.name} {error}"))
        found += [
            Violation("key", f"{self.kind} has no key {name!r}")
            for name in self.lacks
            if getattr(self, name) is not None
        ]
        if not found:
            found = [*self._usual(), *(Violation("value", text) for text in self.contradictions())]
        if found:
            raise CompositionError(found)

    # --- what a kind says of itself -----------------------------------------------------------

    def contradictions(self) -> Iterator[str]:
        """What is wrong with its keys taken together."""
        yield from ()

    @property
    def natural(self) -> Cardinality:
        """The cardinality that its keys give it."""
        return ONE

    @property
    def one_to_one(self) -> bool:
        """Whether each event gives exactly one, so that its output keeps the label."""
        declared = self.cardinality
        return self.natural.is_one if declared is None else declared.is_one

    @property
    def follows(self) -> str | None:
        """The port whose label the output has whatever comes in elsewhere, if there is one."""
        return None

    @property
    def known(self) -> Cardinality:
        """The declared cardinality, or the natural one."""
        return self.natural if self.cardinality is None else self.cardinality

    def port(self, name: str) -> Port:
        """An input by its name."""
        return next(port for port in self.inputs if port.name == name)

    # --- files --------------------------------------------------------------------------------

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> tuple[Node | None, list[Violation]]:
        """The node that a file's keys make, and all that is wrong with them."""
        known = {each.name: each for each in keys(cls)}
        found = [
            Violation("key", f"{cls.kind} has no key {name!r}{nearest(name, known)}")
            for name in given
            if name not in known
        ]
        found += [
            Violation("key", f"{cls.kind} needs {each.name}: {each.doc}")
            for each in known.values()
            if each.required and each.name not in given
        ]
        values = {}
        for name, value in given.items():
            if name in known and value is not None:
                values[known[name].attribute] = value
            elif name in known and known[name].required:
                found.append(Violation("value", f"{name} is empty: {known[name].doc}"))
        if found:
            found += cls._wrong(values)
            return None, found
        try:
            return cls(**values), []
        except CompositionError as error:
            return None, list(error.violations)

    @classmethod
    def _wrong(cls, values: Mapping[str, Any]) -> Iterator[Violation]:
        """Values of the wrong type, where the node can't be made anyway."""
        for each in keys(cls):
            if each.attribute in values:
                try:
                    each.type.read(values[each.attribute])
                except Wrong as error:
                    yield Violation("value", f"{each.name} {error}")

    def written(self) -> dict[str, Any]:
        """Its keys as a file has them, without those that are as by default."""
        return {
            each.name: each.type.write(value)
            for each in keys(type(self))
            if (value := getattr(self, each.attribute)) != each.default
        }

    # --- checks that all kinds share ----------------------------------------------------------

    def _usual(self) -> Iterator[Violation]:
        able = (*self.runtimes, *(("static",) if self.promotable else ()))
        if self.runtime is not None and self.runtime not in able:
            text = f"{a(self.kind)} can't run as {self.runtime}; it can as {' or '.join(able)}"
            yield Violation("runtime", text)
        declared, most = self.cardinality, self.natural.at_most
        if declared is not None and self.rigid and most is not None:
            stated = declared.at_most
            if stated is None or stated > most:
                text = f"cardinality {declared} can't be: this {self.kind} has {self.natural}"
                yield Violation("cardinality", text)


_LAST = ("cardinality", "runtime")


_KEYS: dict[type[Node], tuple[Key, ...]] = {}


def keys(kind: type[Node]) -> tuple[Key, ...]:
    """The keys of a kind: its inputs, its own, then those that all have."""
    if kind not in _KEYS:
        made = [_key(each) for each in fields(kind) if each.name not in kind.lacks]
        _KEYS[kind] = tuple(sorted(made, key=lambda each: each.name in _LAST))
    return _KEYS[kind]


def _key(given: Field[Any]) -> Key:
    return Key(
        name=given.metadata["name"] or given.name,
        attribute=given.name,
        type=given.metadata["type"],
        doc=given.metadata["doc"],
        default=given.default,
        required=given.default is MISSING,
    )


def exactly_one(node: Node, *names: str) -> Iterator[str]:
    """A complaint unless one of the keys is given, and no other of them."""
    there = [name for name in names if getattr(node, name) is not None]
    if len(there) != 1:
        several = f"not {' and '.join(there)} together" if there else "and has none"
        yield f"{a(node.kind)} needs one of {', '.join(names)}, {several}"


def needs(node: Node, name: str, other: str) -> Iterator[str]:
    """A complaint if a key is given that means nothing without another."""
    if getattr(node, name) and not getattr(node, other):
        yield f"{name} means nothing without {other}"
