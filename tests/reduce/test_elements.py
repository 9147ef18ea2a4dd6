"""Elements: what is taken, the reason in words for what is not, and the published schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.reduce.blocks import NO_TIME
from headwater.reduce.elements import (
    DEFAULTS,
    EDGES,
    END,
    GROUP,
    LONGEST,
    OTHERS,
    Edge,
    End,
    Other,
    Rejected,
    Twice,
    check,
    check_group,
    reason,
    schema,
)
from tests.support import amount

USED = {"type": "used", "activity": "m1", "entity": "in-7"}
DERIVED = {"type": "wasDerivedFrom", "generatedEntity": "out", "usedEntity": "in"}


def test_edges_point_from_effect_to_cause() -> None:
    generated = {"type": "wasGeneratedBy", "entity": "mid", "activity": "m1"}
    member = {"type": "hadMember", "collection": "c", "entity": "mid"}
    found = [check(element, "J") for element in (USED, generated, DERIVED, member)]
    assert found == [
        Edge("used", "m1", "in-7"),
        Edge("wasGeneratedBy", "mid", "m1"),
        Edge("wasDerivedFrom", "out", "in"),
        Edge("hadMember", "c", "mid"),
    ]
    assert [edge.activity for edge in found if isinstance(edge, Edge)] == ["m1", "m1", None, None]
    assert [edge.marked for edge in found if isinstance(edge, Edge)] == ["in-7", "mid", "out", "c"]


@pytest.mark.parametrize("name", OTHERS)
def test_other_statements_are_filtered(name: str) -> None:
    assert check({"type": name, "entity": 5, "time": "never"}, "J") == Other(name)


def test_end_of_a_job() -> None:
    assert check({"type": "end"}, "J") == End(None)
    assert check({"type": "end", "job": "J"}, "J") == End("J")
    assert reason({"type": "end", "job": "K"}, "J") == "it is of job 'K', not of 'J'"
    assert check({"type": "end", "job": "K"}, None) == End("K")


def test_a_group_tells_what_its_elements_do_not() -> None:
    group = {"group": [USED], "function": "map", "execution": "x", "node": "n1", "time": 2}
    [element], defaults = check_group(group, "J")
    assert check(element, "J", defaults) == Edge("used", "m1", "in-7", "map", "x", "n1", 2000)
    own = {**USED, "function": "f", "execution": "y", "node": "", "time": 3, "output": True}
    assert check(own, "J", defaults) == Edge("used", "m1", "in-7", "f", "y", "n1", 3000, True)


@pytest.mark.parametrize(
    ("time", "micros"),
    [
        (None, NO_TIME),
        (0, 0),
        (1735689600123, 1735689600123000),
        (1.5, 1500),
        (253402300799999, 253402300799999000),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01", 1_000_000),
        ("1970-01-01 00:00:01.000001+00:00", 1_000_001),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00.123456789Z", 123456),
    ],
)
def test_times(time: object, micros: int) -> None:
    found = check({**USED, "time": time}, "J")
    assert isinstance(found, Edge)
    assert found.time == micros


@pytest.mark.parametrize(
    "time",
    ["noon", "", "2025-13-01T00:00:00Z", float("nan"), float("inf"), 10**400, 253402300800000],
)
def test_times_that_are_none(time: object) -> None:
    found = reason({**USED, "time": time})
    assert found is not None
    assert found.endswith("is neither a time of ISO 8601 nor milliseconds since 1970")


@pytest.mark.parametrize(
    ("element", "why"),
    [
        ([], "an element is an object, not a list"),
        (None, "an element is an object, not null"),
        ({}, "`type` is missing: an element has a type, a group has a list `group`"),
        ({"type": 5}, "`type` is a number, not text"),
        ({"type": "usd"}, "type 'usd' is unknown"),
        ({"type": "x" * 200}, f"type '{'x' * 77}...' is unknown"),
        ({**USED, "job": "K"}, "it is of job 'K', not of 'J'"),
        ({**USED, "job": ["J"]}, "`job` is a list, not text"),
        ({"type": "used", "activity": "m1"}, "`entity` is missing"),
        ({**USED, "activity": None}, "`activity` is missing"),
        ({**USED, "activity": True}, "`activity` is true or false, not text"),
        ({**USED, "entity": {"$": "e"}}, "`entity` is an object, not text"),
        ({**USED, "entity": ""}, "`entity` is empty"),
        ({**USED, "entity": "é" * 2049}, "`entity` has 4,098 bytes: at most 4,096 are allowed"),
        ({**USED, "entity": "x" * (1 << 20)}, "`entity` has 1,048,576 bytes: at most 4,096 are"),
        ({**USED, "entity": "\ud800"}, "`entity` is not valid Unicode: it has half a surrogate"),
        ({**USED, "node": 3}, "`node` is a number, not text"),
        ({**USED, "function": "f" * 5000}, "`function` has 5,000 bytes: at most 4,096 are allowed"),
        ({**USED, "time": True}, "`time` is true or false, not text or a number"),
        ({**USED, "output": "yes"}, "`output` is text, not true or false"),
        ({**USED, "group": []}, "a group is not one element"),
        ({**DERIVED, "usedEntity": "out"}, "a self-loop: 'out' can't depend on itself"),
        (Twice(USED, "entity"), "`entity` is given twice"),
    ],
)
def test_reasons(element: object, why: str) -> None:
    found = reason(element, "J")
    assert found is not None
    assert found.startswith(why)
    assert "\n" not in found
    assert len(found) < 200


def test_an_activity_and_an_entity_may_have_one_name() -> None:
    assert check({"type": "used", "activity": "x", "entity": "x"}, "J") == Edge("used", "x", "x")


def test_the_longest_name() -> None:
    assert reason({**USED, "entity": "x" * LONGEST}) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"group": "g"}, "`group` is text, not a list of elements"),
        ({"group": [], "type": "used"}, "has a `type` and a `group`"),
        ({"group": [], "job": "K"}, "it is of job 'K'"),
        ({"group": [], "time": "noon"}, "`time` 'noon' is neither"),
        (Twice({"group": []}, "group"), "`group` is given twice"),
    ],
)
def test_reasons_of_groups(line: Mapping[str, Any], why: str) -> None:
    with pytest.raises(Rejected, match=why):
        check_group(line, "J")


@pytest.mark.parametrize(
    ("element", "why"),
    [({"type": "end"}, "the end of a job can't be in a group"), ({"group": []}, "in a group")],
)
def test_what_can_not_be_in_a_group(element: Mapping[str, Any], why: str) -> None:
    with pytest.raises(Rejected, match=why):
        check(element, "J", {})


# The schema


def valid(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """As much of a validator as the schema needs; what it does not know it refuses."""
    for word, said in rule.items():
        match word:
            case "$ref":
                right = valid(value, root["$defs"][said.removeprefix("#/$defs/")], root)
            case "anyOf":
                right = any(valid(value, one, root) for one in said)
            case "allOf":
                right = all(valid(value, one, root) for one in said)
            case "type":
                right = any(_is(value, one) for one in ([said] if isinstance(said, str) else said))
            case "const":
                right = value == said
            case "enum":
                right = value in said
            case "required":
                right = all(name in value for name in said)
            case "properties":
                right = all(valid(value[n], one, root) for n, one in said.items() if n in value)
            case "items":
                right = all(valid(one, said, root) for one in value)
            case "minLength":
                right = not isinstance(value, str) or len(value) >= said
            case "maxLength":
                right = not isinstance(value, str) or len(value) <= said
            case "$schema" | "title" | "description" | "$defs":
                right = True
            case _:
                raise AssertionError(f"the schema says {word}")
        if not right:
            return False
    return True


def _is(value: Any, name: str) -> bool:
    match name:
        case "null":
            return value is None
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            kinds = {"object": dict, "array": list, "string": str, "boolean": bool}
            return isinstance(value, kinds[name])


def taken(line: dict[str, Any]) -> bool:
    """Whether the line is taken as a whole."""
    try:
        if line.get(GROUP) is None:
            check(line, None)
        else:
            elements, defaults = check_group(line, None)
            for element in elements:
                check(element, None, defaults)
    except Rejected:
        return False
    return True


NAMES = st.sampled_from(["a", "b", None, "", 5, True, "x" * 4097, ["a"]])
# A time that is no time can't be said in the schema, nor can a self-loop: neither is made here.
TIMES = st.sampled_from([None, 0, 12.5, "2025-01-01T00:00:00Z", True, []])
TYPES = st.sampled_from([*EDGES, *EDGES, *OTHERS[:3], END, "usd", None, 7])
FIELDS = {
    **dict.fromkeys(("activity", "entity", "function", "node", "job"), NAMES),
    "generatedEntity": NAMES.filter(lambda name: name != "b"),
    "usedEntity": NAMES.filter(lambda name: name != "a"),
    "collection": NAMES.map(lambda name: "c" if name in ("a", "b") else name),
    "time": TIMES,
    "output": st.sampled_from([True, False, None, "yes", 1]),
}
ELEMENTS = st.fixed_dictionaries({"type": TYPES}, optional=FIELDS)
GROUPS = st.fixed_dictionaries(
    {"group": st.one_of(st.lists(ELEMENTS, max_size=2), st.just("g"))},
    optional={"type": st.sampled_from([None, "group", "used"]), "time": TIMES, "job": NAMES},
)


@settings(deadline=None, max_examples=amount(200, 2_000))
@given(st.one_of(ELEMENTS, GROUPS))
def test_the_schema_says_what_is_taken(line: dict[str, Any]) -> None:
    published = schema()
    assert valid(line, published, published) == taken(line)


@pytest.mark.parametrize("name", EDGES)
def test_the_schema_has_every_edge(name: str) -> None:
    rule = schema()["$defs"][name]
    assert rule["required"] == ["type", *EDGES[name]]
    assert rule["properties"]["type"] == {"const": name}


def test_the_schema_has_the_other_types_and_limits() -> None:
    rules = schema()["$defs"]
    assert rules["other"]["properties"]["type"]["enum"] == list(OTHERS)
    assert rules["end"]["properties"]["type"] == {"const": END}
    assert rules["id"]["maxLength"] == rules["name"]["maxLength"] == LONGEST
    assert set(rules["group"]["properties"]) == {"type", GROUP, *DEFAULTS}
    assert set(DEFAULTS) < set(rules["told"]["properties"])
