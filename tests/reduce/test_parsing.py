"""Parsing by columns: the same as element by element, whatever the lines say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.reduce import reading
from headwater.reduce.blocks import NO_TIME, vertex_ids
from headwater.reduce.documents import of_gathered
from headwater.reduce.elements import LONGEST
from headwater.reduce.gathered import Gathered
from headwater.reduce.lines import read_line
from headwater.reduce.parsing import Parsed, parse
from tests.support import amount

USED = '{"type":"used","activity":"m1","entity":"in-7"}'
GENERATED = '{"type":"wasGeneratedBy","entity":"mid-7","activity":"m1"}'


def edges(parsed: Parsed) -> list[tuple[Any, ...]]:
    """Edges by name: source, destination, function, node, time."""
    names = dict(zip(parsed.ids.tolist(), parsed.names.to_pylist(), strict=True))
    return [
        (
            names[row["source"]],
            names[row["destination"]],
            row["function"],
            row["node"],
            None if row["time"] == NO_TIME else row["time"],
        )
        for row in parsed.edges.to_pylist()
    ]


def reasons(parsed: Parsed) -> list[tuple[int, str]]:
    rows = parsed.rejected.to_pylist()
    return [(row["where"], row["reason"]) for row in rows]


def lines(*texts: str) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def everything(parsed: Parsed) -> dict[str, Any]:
    """All that was parsed, in a form that compares."""
    return {
        "edges": parsed.edges.to_pylist(),
        "ids": parsed.ids.tolist(),
        "names": parsed.names.to_pylist(),
        "kept": parsed.kept.tolist(),
        "spans": sorted(parsed.spans.to_pylist(), key=lambda row: row["execution"]),
        "rejected": parsed.rejected.to_pylist(),
        "filtered": {name: parsed.filtered[name] for name in sorted(parsed.filtered)},
        "ends": parsed.ends,
        "told": parsed.told,
    }


def refuse(*_: object) -> None:
    raise AssertionError("read one by one")


@contextmanager
def few(number: int) -> Iterator[None]:
    """Blocks of fewer lines than this are not halved again."""
    before = reading._FEW
    reading._FEW = number
    try:
        yield
    finally:
        reading._FEW = before


def test_edges_in_the_order_told() -> None:
    parsed = parse(
        lines(
            '{"type":"used","activity":"m1","entity":"in-7","function":"map","node":"n3","time":7}',
            '{"type":"wasDerivedFrom","generatedEntity":"out","usedEntity":"mid-7"}',
            '{"group":[{"type":"wasGeneratedBy","entity":"mid-7","activity":"m1","time":9},'
            '{"type":"used","activity":"m1","entity":"in-8","node":"n4"}],'
            '"function":"map","node":"n3","time":8}',
            '{"type":"hadMember","collection":"all","entity":"mid-7","function":"gather"}',
        ),
        "J",
    )
    assert edges(parsed) == [
        ("m1", "in-7", "map", "n3", 7000),
        ("out", "mid-7", None, None, None),
        ("mid-7", "m1", "map", "n3", 9000),
        ("m1", "in-8", "map", "n4", 8000),
        ("all", "mid-7", "gather", None, None),
    ]
    assert parsed.told == {"used": 2, "wasGeneratedBy": 1, "wasDerivedFrom": 1, "hadMember": 1}
    assert parsed.edges.schema.field("function").type == pa.dictionary(pa.int32(), pa.string())
    assert parsed.rejected.num_rows == 0


def test_names_are_of_the_vertices_alone() -> None:
    """What a derivation says of an activity, and executions, name no vertex of the graph."""
    parsed = parse(
        lines(
            '{"type":"wasDerivedFrom","generatedEntity":"b","usedEntity":"a","activity":"m"}',
            '{"type":"used","activity":"m1","entity":"a","collection":"c","execution":"x"}',
            '{"type":"entity","entity":"filtered"}',
            '{"type":"used","activity":"m2"}',
        ),
        "J",
    )
    assert sorted(parsed.names.to_pylist()) == ["a", "b", "m1"]
    assert parsed.ids.tolist() == sorted(parsed.ids.tolist())
    of_entities = dict(zip(parsed.ids.tolist(), parsed.names.to_pylist(), strict=True))
    [a] = vertex_ids(pa.array(["a"]), "entity").tolist()
    assert of_entities[a] == "a"


def test_executions() -> None:
    """The element's, else the group's, else the activity, else the source."""
    parsed = parse(
        lines(
            '{"type":"used","activity":"m1","entity":"a","execution":"x"}',
            '{"group":[{"type":"used","activity":"m1","entity":"a"},'
            '{"type":"used","activity":"m1","entity":"b","execution":"z"}],"execution":"y"}',
            USED,
            '{"type":"wasDerivedFrom","generatedEntity":"out","usedEntity":"in"}',
            '{"type":"wasDerivedFrom","generatedEntity":"out","usedEntity":"in","execution":"x"}',
        ),
        "J",
    )
    x, y, z, m1 = vertex_ids(pa.array(["x", "y", "z", "m1"]), "activity").tolist()
    [out] = vertex_ids(pa.array(["out"]), "entity").tolist()
    assert parsed.edges["execution"].to_pylist() == [x, y, z, m1, out, x]


def test_entities_told_to_be_outputs() -> None:
    parsed = parse(
        lines(
            '{"type":"wasGeneratedBy","entity":"sum-1","activity":"m1","output":true}',
            '{"type":"used","activity":"m1","entity":"seen","output":true}',
            '{"type":"wasDerivedFrom","generatedEntity":"d","usedEntity":"e","output":true}',
            '{"type":"hadMember","collection":"c","entity":"f","output":true}',
            '{"type":"wasGeneratedBy","entity":"mid","activity":"m1","output":false}',
            '{"type":"wasGeneratedBy","entity":"sum-1","activity":"m2","output":true}',
        ),
        "J",
    )
    expected = vertex_ids(pa.array(["sum-1", "seen", "d", "c"]), "entity").tolist()
    assert parsed.kept.tolist() == sorted(expected)


def test_spans_of_executions() -> None:
    """First and last time; what has no time, or is no execution of a function, has none."""
    parsed = parse(
        lines(
            '{"type":"used","activity":"m1","entity":"a","function":"map","node":"n1","time":10}',
            '{"type":"used","activity":"m2","entity":"b","function":"map","node":"n2","time":11}',
            '{"type":"wasGeneratedBy","activity":"m1","entity":"c","time":15}',
            '{"type":"wasGeneratedBy","activity":"m1","entity":"d"}',
            '{"type":"wasGeneratedBy","activity":"m3","entity":"e"}',
            '{"type":"wasDerivedFrom","generatedEntity":"f","usedEntity":"a","time":12}',
        ),
        "J",
    )
    m1, m2 = vertex_ids(pa.array(["m1", "m2"]), "activity").tolist()
    found = {row.pop("execution"): row for row in parsed.spans.to_pylist()}
    assert found == {
        m1: {"function": "map", "node": "n1", "first": 10_000, "last": 15_000},
        m2: {"function": "map", "node": "n2", "first": 11_000, "last": 11_000},
    }


def test_filtered_and_ended() -> None:
    parsed = parse(
        lines(
            '{"type":"attribute","of":"m1","attributes":{"prov:endTime":"x"}}',
            '{"group":[{"type":"attribute"},{"type":"wasInformedBy"}],"execution":"m1"}',
            '{"type":"agent","time":5}',
            '{"type":"end","job":"J"}',
            '{"type":"end"}',
        ),
        "J",
    )
    assert parsed.filtered == {"attribute": 2, "wasInformedBy": 1, "agent": 1}
    assert parsed.ends == ["J", "J"]
    assert parsed.edges.num_rows == len(parsed.ids) == 0


def test_bad_elements_of_a_group_are_rejected_and_the_others_stay() -> None:
    group = (
        '{"group":[{"type":"used","activity":"m1","entity":"a"},{"type":"usd"},5,'
        '{"type":"wasGeneratedBy","activity":"m1","entity":"b","group":[]},'
        '{"type":"wasGeneratedBy","activity":"m1","entity":"c"},{"type":"end"}],"node":"n1"}'
    )
    parsed = parse(lines(USED, group, GENERATED), "J")
    assert [edge[:2] for edge in edges(parsed)] == [
        ("m1", "in-7"),
        ("m1", "a"),
        ("c", "m1"),
        ("mid-7", "m1"),
    ]
    assert reasons(parsed) == [
        (1, "element 2 of the group: type 'usd' is unknown"),
        (1, "element 3 of the group: an element is an object, not a number"),
        (1, "element 4 of the group: a group can't be in a group"),
        (1, "element 6 of the group: the end of a job can't be in a group"),
    ]
    assert parsed.rejected["line"][0].as_py() == '{"type": "usd"}'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"type":"used","activity":"m1"', "not JSON: Expecting ',' delimiter at column 31"),
        ('{"type":"used"}{"type":"used"}', "not JSON: Extra data at column 16"),
        ('{"type":"used","activity":"a","activity":"b","entity":"c"}', "`activity` is given twice"),
        ("5", "an element is an object, not a number"),
        ("null", "an element is an object, not null"),
        ("[]", "an element is an object, not a list"),
        ("{}", "`type` is missing"),
        ("nonsense", "not JSON: Expecting value at column 1"),
        ('{"type":"used","activity":5,"entity":"c"}', "`activity` is a number, not text"),
        ('{"type":"used","activity":"","entity":"c"}', "`activity` is empty"),
        ('{"type":"used","activity":"m","entity":"c","job":"K"}', "it is of job 'K', not of 'J'"),
        ('{"group":[{"type":"used","activity":"m","entity":"c"}],"job":"K"}', "it is of job 'K'"),
        ('{"type":"end","job":"K"}', "it is of job 'K', not of 'J'"),
        ('{"type":"hadMember","collection":"c","entity":"c"}', "a self-loop: 'c' can't depend"),
        ('{"type":"wasDerivedFrom","generatedEntity":"c","usedEntity":"c"}', "a self-loop: 'c'"),
        (f'{{"type":"used","activity":"{"é" * 2049}","entity":"c"}}', "`activity` has 4,098 bytes"),
        (
            f'{{"type":"used","activity":"m","entity":"c","node":"{"n" * 4097}"}}',
            "`node` has 4,097",
        ),
        (
            '{"type":"used","activity":"m","entity":"c","time":253402300800000}',
            "`time` '2534023008",
        ),
        (
            '{"type":"used","activity":"m","entity":"c","time":"0000-01-01T00:00:00Z"}',
            "`time` '0000",
        ),
        ('{"type":"used","activity":"m","entity":"\\ud800"}', "`entity` is not valid Unicode"),
        ('{"type":"used","activity":"m","entity":"c","time":"noon"}', "`time` 'noon' is neither"),
        ('{"type":"used","activity":"m","entity":"c","time":1e300}', "`time` '1e+300' is neither"),
        ('{"type":"used","activity":"m","entity":"c","time":NaN}', "`time` 'nan' is neither"),
        ('{"type":"used","group":[]}', "has a `type` and a `group`"),
        ('{"group":{}}', "`group` is an object, not a list"),
        ('{"type":"used","x":' + "[" * 9999 + "]" * 9999 + "}", "not JSON that can be read"),
        ('{"used":{"_:u":{"prov:activity":"m"}}}', "used '_:u': `entity` is missing"),
    ],
)
def test_a_bad_line_is_rejected_alone(line: str, reason: str) -> None:
    parsed = parse(lines(USED, line, GENERATED), "J")
    assert [edge[:2] for edge in edges(parsed)] == [("m1", "in-7"), ("mid-7", "m1")]
    [(where, why)] = reasons(parsed)
    assert where == 1
    assert why.startswith(reason)


def test_what_is_not_utf8() -> None:
    bad = USED.encode().replace(b"in-7", b"in\xff7")
    parsed = parse(b"\n".join([USED.encode(), bad, GENERATED.encode()]), "J")
    assert reasons(parsed) == [(1, "not UTF-8: invalid start byte at byte 44")]
    assert len(edges(parsed)) == 2
    assert "in\ufffd7" in parsed.rejected["line"][0].as_py()


def test_an_id_of_a_megabyte() -> None:
    long = USED.replace("in-7", "x" * (1 << 20))
    parsed = parse(lines(USED, long, GENERATED), "J")
    assert reasons(parsed) == [(1, "`entity` has 1,048,576 bytes: at most 4,096 are allowed")]
    assert parsed.rejected["line"][0].as_py() == long[:4096]
    assert len(edges(parsed)) == 2


def test_a_long_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is longer than what Arrow reads at once is read by columns too."""
    monkeypatch.setattr("headwater.reduce.parsing.read_line", refuse)
    monkeypatch.setattr(reading, "_BLOCK", 1_000)
    one = '{"type":"used","activity":"m1","entity":"in-%d"}'
    group = ",".join(one % number for number in range(100))
    parsed = parse(lines(USED, f'{{"group":[{group}]}}', GENERATED), "J")
    assert parsed.edges.num_rows == 102
    assert parsed.rejected.num_rows == 0


def test_blank_lines_returns_and_marks() -> None:
    """Blank lines count as rows; carriage returns and a byte order mark are no part of a line."""
    data = b"\xef\xbb\xbf" + USED.encode() + b"\r\n\r\n   \n\t" + GENERATED.encode() + b"\n\n{}\r\n"
    parsed = parse(data, "J")
    assert len(edges(parsed)) == 2
    assert [where for where, _ in reasons(parsed)] == [5]


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n \n", pa.array([], pa.string())])
def test_nothing(data: bytes | pa.Array) -> None:
    parsed = parse(data, "J")
    assert parsed.edges.num_rows == parsed.rejected.num_rows == parsed.spans.num_rows == 0
    assert parsed.edges.schema.equals(parse(lines(USED), "J").edges.schema)
    assert parsed.spans.schema.equals(parse(lines(USED), "J").spans.schema)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()])
def test_messages(kind: pa.DataType) -> None:
    """A row is a line, though it has newlines in it or is null."""
    pretty = json.dumps(json.loads(GENERATED), indent=2)
    two = f"{USED}\n{USED}"
    rows = pa.array([USED, None, pretty, two, "", GENERATED], pa.string()).cast(kind)
    for told in (rows, rows.slice(0), pa.chunked_array([rows.slice(0, 2), rows.slice(2)])):
        parsed = parse(told, "J")
        assert [edge[:2] for edge in edges(parsed)] == [
            ("m1", "in-7"),
            ("mid-7", "m1"),
            ("mid-7", "m1"),
        ]
        assert reasons(parsed) == [(3, "not JSON: Extra data at column 1")]


def test_a_document_in_a_line() -> None:
    document = {
        "prefix": {"ex": "http://example.org/"},
        "entity": {"ex:e": {}},
        "used": {"_:u1": {"prov:activity": "ex:a", "prov:entity": "ex:e"}},
        "wasGeneratedBy": {"_:g1": {"prov:activity": "ex:a"}},
    }
    parsed = parse(lines(USED, json.dumps(document), GENERATED), "J")
    assert [edge[:2] for edge in edges(parsed)] == [
        ("m1", "in-7"),
        ("ex:a", "ex:e"),
        ("mid-7", "m1"),
    ]
    assert reasons(parsed) == [(1, "wasGeneratedBy '_:g1': `entity` is missing")]
    assert parsed.filtered == {"entity": 1}


@pytest.mark.parametrize(
    "times",
    [
        ['"2025-01-01T00:00:00Z"', '"2025-01-01T01:00:00+01:00"'],
        ['"2025-01-01T00:00:00"', '"2025-01-01 00:00:00.000"'],
        ['"2025-01-01T00:00:00Z"', '"2025-01-01T00:00:00"'],
        ['"2025-01-01T00:00:00.000000000Z"', '"20250101T000000Z"'],
        ["1735689600000", "1735689600000.0"],
        ["1735689600000", '"2025-01-01T00:00:00Z"'],
        ["null", "1735689600000", "null", '"2025-01-01T00:00:00Z"'],
    ],
)
def test_times_however_written(times: list[str]) -> None:
    data = lines(*(f'{USED[:-1]},"time":{time}}}' for time in times))
    found = {edge[-1] for edge in edges(parse(data, "J"))}
    assert found - {None} == {1_735_689_600_000_000}


def test_bad_lines_among_many() -> None:
    """Blocks are halved down to the lines at fault; the others are still read in order."""
    good = [USED.replace("in-7", f"in-{number}") for number in range(5_000)]
    for place in (0, 1_234, 1_235, 4_999):
        good[place] = good[place][:-2]
    parsed = parse(lines(*good), "J")
    assert [where for where, _ in reasons(parsed)] == [0, 1_234, 1_235, 4_999]
    kept = [number for number in range(5_000) if number not in (0, 1_234, 1_235, 4_999)]
    assert [edge[1] for edge in edges(parsed)] == [f"in-{number}" for number in kept]


def test_columns_and_not_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that are right take no step of Python each."""
    monkeypatch.setattr("headwater.reduce.parsing.read_line", refuse)
    group = f'{{"group":[{USED},{GENERATED}],"execution":"m1","time":1}}'
    other = '{"type":"entity","entity":"e","attributes":{"a":[1]}}'
    parsed = parse(lines(USED, group, GENERATED, other, '{"type":"end"}', "", USED), "J")
    assert parsed.edges.num_rows == 5
    with pytest.raises(AssertionError, match="one by one"):
        parse(lines(USED, "{}"), "J")


def test_too_much_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST", 10)
    with pytest.raises(HeadwaterError, match="48 bytes are too many to parse at once: give 10"):
        parse(lines(USED), "J")


def test_two_names_of_one_id(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(names: pa.Array, kind: str) -> Any:
        return np.zeros(len(names), np.int64) + (kind == "activity")

    monkeypatch.setattr("headwater.reduce.told.vertex_ids", one)
    with pytest.raises(HeadwaterError, match="the names 'in-[78]' and 'in-[78]' have one hash"):
        parse(lines(USED, USED.replace("in-7", "in-8")), "J")


def test_any_job() -> None:
    parsed = parse(lines(f'{USED[:-1]},"job":"K"}}', '{"type":"end","job":"K"}', USED), None)
    assert parsed.edges.num_rows == 2
    assert parsed.ends == ["K"]


# Any lines: as element by element.

NAMES = st.sampled_from(["a", "b", "c", "é", "LONG", "a\\n\\u00e9", ""])
TEXT = NAMES.map(lambda name: f'"{name}"')
ODD = st.sampled_from(["null", "5", "true", '["a"]', '{"a":1}', '"\\ud800"', '"a'])
VALUES = st.one_of(TEXT, TEXT, TEXT, TEXT, ODD)
NUMBERS = ["0", "1735689600000", "1.5"]
TEXTS = ['"2025-01-01T00:00:00Z"', '"2025-01-01T00:00:00"', '"noon"']
TIMES = st.sampled_from([*NUMBERS, *NUMBERS, *TEXTS, "null", "true", "1e300", "NaN"])
KINDS = ["used", "wasGeneratedBy", "wasDerivedFrom", "hadMember"]
TYPES = st.sampled_from([*KINDS * 4, "entity", "attribute", "end", "usd"]).map('"{}"'.format)
RIGHT = {
    "used": ("activity", "entity"),
    "wasGeneratedBy": ("entity", "activity"),
    "wasDerivedFrom": ("generatedEntity", "usedEntity"),
    "hadMember": ("collection", "entity"),
}
MORE = {
    "function": VALUES,
    "execution": VALUES,
    "node": VALUES,
    "job": st.sampled_from(['"J"', '"J"', '"J"', '""', '"K"', "5"]),
    "time": TIMES,
    "output": st.sampled_from(["true", "true", "false", "null", "1"]),
    "unknown": ODD.filter(lambda text: text != '"a'),
    "activity": VALUES,
}


@st.composite
def element(draw: st.DrawFn) -> str:
    kind = draw(TYPES)
    names = RIGHT.get(kind.strip('"'), ("entity",))
    fields = [("type", kind), *((name, draw(VALUES)) for name in names)]
    chosen = draw(st.lists(st.sampled_from(sorted(MORE)), max_size=3))
    fields += [(name, draw(MORE[name])) for name in chosen]
    return "{" + ",".join(f'"{name}":{value}' for name, value in fields) + "}"


@st.composite
def plain(draw: st.DrawFn) -> str:
    """An element that is right."""
    kind = draw(st.sampled_from(KINDS))
    names = draw(st.permutations(["a", "b", "c", "é"]))
    fields = {"type": kind, **dict(zip(RIGHT[kind], names, strict=False))}
    some = {"function": "f", "execution": "x", "node": "", "time": 5, "output": True, "job": "J"}
    chosen = draw(st.lists(st.sampled_from(sorted(some)), unique=True))
    return json.dumps({**fields, **{name: some[name] for name in chosen}}, ensure_ascii=False)


@st.composite
def group(draw: st.DrawFn, elements: st.SearchStrategy[str]) -> str:
    fields = [f'"group":[{",".join(draw(st.lists(elements, max_size=3)))}]']
    chosen = draw(st.lists(st.sampled_from(["function", "execution", "node", "job", "time"])))
    fields += [f'"{name}":{draw(MORE[name])}' for name in chosen]
    return "{" + ",".join(draw(st.permutations(fields))) + "}"


OTHER = st.sampled_from(["", "  ", "{", "}", "{}", "[]", f"{USED}{USED}", f" {USED}", f"{USED},"])
LINES = st.lists(
    st.one_of(plain(), plain(), element(), group(plain()), group(element()), OTHER), max_size=12
)


@settings(deadline=None, max_examples=amount(150, 1_000))
@given(LINES, st.sampled_from([1, 4, 64]))
@example([f'{{"group":[{USED},null]}}', USED], 1)
@example(['{"type":"used","activity":"a', '{"}'], 1)
@example(['{"unknown":', '{"a":1}}', f"{USED}{USED}"], 1)
@example([GENERATED, '{"unknown":', '{"a":1}}', f"{USED}{USED}"], 64)
def test_as_element_by_element(texts: list[str], smallest: int) -> None:
    texts = [text.replace("LONG", "a" * (LONGEST + 1)) for text in texts]
    gathered = Gathered("J")
    for where, text in enumerate(texts):
        read_line(text.encode("utf-8", "surrogatepass"), where, gathered)
    expected = everything(of_gathered(gathered))
    with few(smallest):
        assert everything(parse(lines(*texts), "J")) == expected
        assert everything(parse(pa.array(texts, pa.string()), "J")) == expected
