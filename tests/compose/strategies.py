"""Random compositions: every kind, every key, valid by themselves and often as a whole."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import strategies as st

from headwater.compose import KINDS, Composition, Node
from headwater.compose.addresses import Call, Target, Url
from headwater.compose.node import Key, keys
from headwater.compose.steps import DOES, Steps
from headwater.compose.structures import Alerts, Cardinalities, Ports, Schemas
from headwater.compose.types.bindings import Bindings
from headwater.compose.values import (
    Choice,
    Duration,
    Either,
    Flag,
    Names,
    Number,
    Pairs,
    Plain,
    Text,
    Value,
    Whole,
)
from headwater.compose.violations import CompositionError
from headwater.compose.windows import Windows

NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=6)
# Words that YAML 1.1 or Python may take for something else, quotes, breaks, other alphabets.
WORDS = st.one_of(
    st.text(min_size=1, max_size=12).filter(lambda t: t.strip() and t.isprintable()),
    st.sampled_from(
        [
            "on",
            "yes",
            "null",
            "~",
            "10:30",
            "1e3",
            "0x1F",
            "- a",
            "a: b",
            "'",
            '"',
            "\\",
            "a\nb",
            "é",
            "{x}",
            "#",
            "012",
        ]
    ),
)
DURATIONS = st.sampled_from(["10 minutes", "1 hour 30 minutes", "500 milliseconds"])
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
SCHEMAS = st.sampled_from(["a bigint", "a bigint, b array<struct<c: string>>", "x decimal(10,2)"])
WINDOWS = st.one_of(
    st.builds(lambda n: {"count": n}, st.integers(1, 50)),
    st.builds(lambda n, s: {"count": n + s, "slide": s}, st.integers(0, 9), st.integers(1, 9)),
    st.just({"time": "10 minutes", "slide": "1 minute"}),
    st.just({"value": 2.5, "slide": 1, "on": "a"}),
    st.just({"value": "10 seconds", "slide": "1 second", "on": "t"}),
    st.just({"session": "5 minutes"}),
)


def values(kind: Value) -> st.SearchStrategy[Any]:
    """What a type of values can read."""
    match kind:
        case Ports():
            one = NAMES | NAMES.map(lambda n: f"{n}.failures")
            return one | st.lists(one, max_size=3) | st.dictionaries(NAMES, one, max_size=3)
        case Text(pattern=None):
            return WORDS
        case Text():
            return NAMES.map(lambda n: f"{n}@example.org" if "@" in (kind.pattern or "") else n)
        case Whole(least=least):
            return st.integers(least, 1000)
        case Number():
            return st.floats(0.001, 1e6) | st.integers(1, 100)
        case Flag():
            return st.booleans()
        case Choice(options=options):
            return st.sampled_from(options)
        case Duration(seconds=seconds):
            return DURATIONS | st.floats(0.5, 100) if seconds else DURATIONS
        case Names(of=of):
            return st.lists(values(of), min_size=1, max_size=3, unique=True)
        case Pairs(of=of):
            return st.dictionaries(NAMES, values(of), max_size=3)
        case Plain():
            return PLAIN
        case Call():
            return st.builds("{}:{}".format, NAMES, NAMES)
        case Target():
            return values(Call()) | values(Url())
        case Url():
            return NAMES.map(lambda n: f"https://example.org/{n}")
        case Windows(batches=True):
            return st.just({"count": 3}) | st.just({"time": "1 hour"})
        case Windows():
            return WINDOWS
        case Steps():
            return steps()
        case Alerts():
            return st.just({"email": ["a@example.org"], "subject": "x"}) | st.just(
                {"webhook": "https://example.org"}
            )
        case Schemas():
            return SCHEMAS
        case Cardinalities():
            return st.sampled_from([1, "1/3", "<1", "unknown", 0.25, 2])
        case Bindings():
            lines = st.sampled_from(
                ["lat := /radar/lat : NUMBER", "all := $.a[*].b", "n := count(/a/b) : NUMBER"]
            )
            return st.lists(lines, max_size=3, unique=True)
        case Either(types=types):
            return st.one_of([values(each) for each in types])
    raise AssertionError(f"no strategy for {kind}")


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    """Steps of a job: each but the last is read by the next, and by others below it."""
    names = draw(
        st.lists(NAMES.filter(lambda n: n != "event"), min_size=1, max_size=4, unique=True)
    )
    made: dict[str, Any] = {}
    for at, name in enumerate(names):
        does = draw(st.sampled_from(sorted(DOES)))
        made[name] = {does: draw(values(DOES[does]))}
        if at:
            earlier = draw(st.lists(st.sampled_from(names[:at]), unique=True))
            made[name]["after"] = list(dict.fromkeys([names[at - 1], *earlier]))
    return made


ONE_OF = {
    "source": ("stream", "format"),
    "static": ("value", "call", "format"),
    "job": ("run", "call", "spark", "steps"),
    "sink": ("stream", "alert"),
}
"""Of these keys a node has one."""

JOINS: list[dict[str, Any]] = [
    {"policy": "latest", "on": ["a"], "how": "left_outer"},
    {"policy": "latest", "order_by": {"left": ["a"], "right": "b"}},
    {"policy": "last", "left": 3, "right": "10 seconds"},
    {"policy": "window", "within": "1 minute", "on": "a"},
    {"policy": "window", "where": "a.t < b.t"},
    {"policy": "value", "left_on": "a", "right_on": "b + 1", "size": 2.5},
    {"on": ["a", "b"]},
]


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    """A node with any of its keys, of those that go together."""
    name = draw(st.sampled_from(sorted(KINDS)))
    kind = KINDS[name]
    alternatives = ONE_OF.get(name, ())
    left_out = set(alternatives) - {draw(st.sampled_from(alternatives))} if alternatives else set()
    chosen: dict[str, Any] = {}
    for key in keys(kind):
        if key.name in left_out:
            continue
        if key.required or key.name in alternatives or draw(st.booleans()):
            chosen[key.attribute] = draw(_fitting(kind, key))
    if name == "join":
        kept = {key: chosen[key] for key in ("inputs", "runtime") if key in chosen}
        chosen = {**kept, **draw(st.sampled_from(JOINS))}
    try:
        return kind(**chosen)
    except CompositionError:
        # What still contradicts itself, with only the keys that it needs.
        needed = {k.attribute for k in keys(kind) if k.required or k.name in alternatives}
        return kind(**{key: value for key, value in chosen.items() if key in needed})


def _fitting(kind: type[Node], key: Key) -> st.SearchStrategy[Any]:
    if key.name == "runtime":
        return st.sampled_from(kind.runtimes)
    if key.name == "cardinality" and kind.kind == "aggregate":
        return st.just("1/50")
    if key.name == "cardinality" and kind.rigid:
        return st.sampled_from(["1/3", "<1"])
    if key.name == "query":
        return st.sampled_from(["select * from a", "select b from c where d > 1"])
    if key.name == "pattern":
        return st.just("a b+")
    if key.name in ("columns", "measures"):
        return st.dictionaries(NAMES, WORDS, min_size=1, max_size=3)
    if key.name == "value":
        return PLAIN.filter(lambda value: value is not None)
    return values(key.type)


COMPOSITIONS = st.builds(Composition, NAMES, st.dictionaries(NAMES, nodes(), max_size=4))
