"""`store.show`: which records and results are drawn, how many are not, and nothing that runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

from headwater import store as stores
from headwater.drawing import Item, Shown
from headwater.drawing.__main__ import main
from headwater.errors import HeadwaterError, UnknownId, UnknownName
from headwater.query import Store
from headwater.store import EmbeddedWriter
from tests.store.small import at, batch, flow, reports, sink, source, stopped

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></svg><iframe src=javascript:alert(1)>",
    "' onmouseover='alert(1)",
    "]]><!--<style>*{display:none}</style>",
    "\x00\x1b[31m\ud800\u202e&lt;b&gt;",
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow(source(), sink(), sink("counted")))
        kept = reports(*((n, n, n * 10) for n in range(1, 60)))
        first = stopped((7, 10, "a", 2, [2, 1]), (8, 20, "<b>", 1, [3]), (9, 30, "c", 0, []))
        more = stopped((7, 11, "x", 1, [1]), (70, 12, "many", 50, range(1, 51)))
        writer.commit(batch(0, {"stopped": first, "counted": more}, kept))
    with stores.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def single(tmp_path: Path) -> Iterator[Store]:
    with EmbeddedWriter.open(tmp_path / "single") as writer:
        writer.register(flow())
        many = [(100 + n, n, "v", 1, [1]) for n in range(50)]
        writer.commit(
            batch(
                0, stopped((7, 10, "a", 2, [2, 1]), *many), reports((1, 1, 5), (2, 2, 6), (3, 3, 7))
            )
        )
    with stores.open(tmp_path / "single") as opened:
        yield opened


def picture(shown: Shown) -> ET.Element:
    return ET.fromstring(shown.svg())


def of_class(root: ET.Element, name: str) -> list[ET.Element]:
    return [one for one in root.iter() if name in one.get("class", "").split()]


class Tags(HTMLParser):
    """The tags of an HTML text, each with its attributes, checked to be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_backward(store: Store) -> None:
    shown = store.show("stopped", 7)
    assert [(one.name, one.id) for one in shown.records] == [("reports", 1), ("reports", 2)]
    assert [(one.name, one.id) for one in shown.results] == [("stopped", 7)]
    assert shown.edges == ((0, 0), (1, 0))
    assert shown.records[0].values == {"tid": 1, "speed": 10}
    assert shown.results[0].values == {"vid": "a", "n": 2}
    assert shown.records[0].time == at(1)
    assert shown.caption == "2 records behind result 7 of stopped"


def test_the_picture(store: Store) -> None:
    root = picture(store.show("stopped", 7))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("aria-label") == "2 records behind result 7 of stopped"
    records, results = of_class(root, "hw-record"), of_class(root, "hw-result")
    assert (len(records), len(results), len(of_class(root, "hw-line"))) == (2, 1, 2)
    assert all(float(r.get("x", "")) < float(results[0].get("x", "")) for r in records)
    middle = sum(float(one.get("y", "")) for one in records) / 2
    assert float(results[0].get("y", "")) == middle, "in the middle of its records"
    ids = [one.text for one in of_class(root, "hw-id")]
    assert ids == ["1", "2", "7"]
    titles = [one.text for one in root.iter(f"{SVG}title")]
    assert "record 1 of reports\n2024-05-01 00:00:01Z\ntid = 1\nspeed = 10" in titles
    wide, high = (float(root.get(name, "")) for name in ("width", "height"))
    for box in of_class(root, "hw-box"):
        assert 0 <= float(box.get("x", "")) <= wide - float(box.get("width", ""))
        assert 0 <= float(box.get("y", "")) <= high - float(box.get("height", ""))


def test_tables_of_own_columns(store: Store) -> None:
    page = Tags(store.show("stopped", 7).html())
    heads = [one for one in page.texts if one in ("tid", "speed", "vid", "n", "event_time")]
    assert heads == ["event_time", "vid", "n", "event_time", "tid", "speed"]
    assert "2 records of reports" in page.texts
    assert "1 result of stopped" in page.texts
    assert {tag for tag, _ in page.tags} <= {
        *("div", "style", "figure", "figcaption", "p", "svg", "title", "rect", "text", "g", "path"),
        *("table", "caption", "thead", "tbody", "tr", "th", "td"),
    }


def test_what_is_left_out_is_told(store: Store) -> None:
    shown = store.show("counted", 70)
    assert (len(shown.records), shown.total, shown.left_out) == (40, 50, 10)
    assert shown.caption == "40 of 50 records behind result 70 of counted"
    root = picture(shown)
    assert len(of_class(root, "hw-record")) == 40
    assert len(of_class(root, "hw-dash")) == 1
    texts = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    assert "… and 10 more" in texts
    assert any(one.startswith("40 of 50 records") for one in texts)
    assert "40 of 50 records of reports" in shown.html()
    assert repr(shown).startswith("40 of 50 records behind result 70")
    few = store.show("counted", 70, limit=3)
    assert [one.id for one in few.records] == [1, 2, 3]
    with pytest.raises(HeadwaterError, match="limit=0"):
        store.show("counted", 70, limit=0)


def test_thousands_are_told_apart() -> None:
    items = tuple(Item("record", "reports", n) for n in range(40))
    shown = Shown("backward", items, (Item("result", "stopped", 7),), (), 1_234)
    assert shown.caption == "40 of 1,234 records behind result 7 of stopped"


def test_a_result_of_no_record(store: Store) -> None:
    shown = store.show("stopped", 9)
    assert (shown.records, shown.caption) == ((), "0 records behind result 9 of stopped")
    assert "no records" in shown.svg()
    Tags(shown.html())


def test_several_results(store: Store) -> None:
    shown = store.show("stopped", [7, 8, 7])
    assert [one.id for one in shown.results] == [7, 8]
    assert [one.id for one in shown.records] == [1, 2, 3]
    assert set(shown.edges) == {(0, 0), (1, 0), (2, 1)}
    assert shown.caption == "3 records behind 2 results of stopped"
    ids = store.results("stopped")["result_id"]
    assert store.show("stopped", ids[:2]).edges == shown.edges
    for same in (pa.array([7, 8]), np.array([7, 8]), (7, 8), ids[0]):
        assert store.show("stopped", same).results[0].id == 7
    one = store.show("stopped", [7, 8], limit=1)
    assert one.notes == ("1 of 2 results are shown.",)


def test_the_sink_is_found(store: Store, single: Store) -> None:
    assert store.show(8).results[0].name == "stopped"
    assert store.show(70).results[0].name == "counted"
    assert store.show("8").results[0].name == "stopped", "an id may be text"
    assert single.show(7).results[0].name == "stopped"
    with pytest.raises(UnknownName, match=r"show\('stopped', 7\) or show\('counted', 7\)"):
        store.show(7)
    with pytest.raises(UnknownId, match="no sink has a result with the id 12345"):
        store.show(12345)
    with pytest.raises(UnknownId, match="sink 'stopped' has no result with the id 12345"):
        single.show(12345)


def test_forward(single: Store) -> None:
    shown = single.show(source="reports", id=2)
    assert [(one.name, one.id) for one in shown.records] == [("reports", 2)]
    assert [(one.name, one.id) for one in shown.results] == [("stopped", 7)]
    assert shown.records[0].values == {"tid": 2, "speed": 6}
    assert shown.results[0].values == {"vid": "a", "n": 2}
    assert shown.caption == "1 result of record 2 of reports"
    root = picture(shown)
    (record,), (result,) = of_class(root, "hw-record"), of_class(root, "hw-result")
    assert float(record.get("x", "")) < float(result.get("x", ""))
    many = single.show(source="reports", id=1)
    assert (len(many.results), many.total) == (40, 51)
    assert many.caption == "40 of 51 results of record 1 of reports"
    assert "… and 11 more" in many.svg()


def test_forward_to_one_sink(store: Store) -> None:
    assert {one.name for one in store.show(source="reports", id=1).results} == {
        "stopped",
        "counted",
    }
    only = store.show("counted", source="reports", id=1)
    assert {one.name for one in only.results} == {"counted"}


def test_a_record_without_a_result(single: Store) -> None:
    shown = single.show(source="reports", id=3)
    assert shown.caption == "no result of record 3 of reports"
    assert shown.notes[0] == "store.why_not('reports', 3) says what became of it."
    assert "no results" in shown.svg()
    with pytest.raises(UnknownId):
        single.show(source="reports", id=99)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"source": "reports"},
        {"id": 7},
        {"sink": "stopped", "result_id": 7, "source": "reports"},
    ],
)
def test_what_can_not_be_asked(store: Store, asked: dict[str, object]) -> None:
    with pytest.raises(HeadwaterError, match="show takes a result_id"):
        store.show(**asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_are_only_text(value: str) -> None:
    """Names, columns and values: none opens a tag, closes one, or gets into an attribute."""
    row = {value: value, "list": [value], "map": {value: value}, "long": value * 200}
    shown = Shown(
        "backward",
        (Item("record", value, 1, at(1), row),),
        (Item("result", value, 2, None, row),),
        ((0, 0),),
        1,
        (value,),
    )
    root = picture(shown)
    assert {one.tag.removeprefix(SVG) for one in root.iter()} == {
        *("svg", "title", "style", "rect", "text", "g", "path")
    }
    page = Tags(shown.html())
    allowed = {
        *("class", "xmlns", "viewbox", "width", "height", "role", "aria-label", "x", "y", "rx"),
        *("d", "text-anchor", "scope", "title"),
    }
    for tag, attributes in page.tags:
        assert tag not in (
            "script",
            "img",
            "iframe",
            "a",
            "object",
            "embed",
            "link",
            "foreignobject",
        )
        assert set(attributes) <= allowed, (tag, attributes)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\u202e\ud800]", shown.html())
    shown.html().encode()


def test_nothing_is_fetched_or_run(store: Store) -> None:
    text = store.show("stopped", 8).html()
    assert "<script" not in text
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "&lt;b&gt;" in text
    assert "url(" not in text


def test_many_and_long_columns() -> None:
    wide = {f"c{n}": "x" * 1_000 for n in range(30)}
    shown = Shown("backward", (Item("record", "r", 1, None, wide),), (), (), 1)
    text = shown.html()
    assert "12 of 30 columns" in text
    assert len(text) < 20_000
    assert len(repr(shown).splitlines()[1]) <= 100


def test_notebooks_find_all_forms(store: Store) -> None:
    shown = store.show("stopped", 7)
    assert shown._repr_html_() == shown.html()
    assert shown._repr_svg_() == shown.svg()
    assert repr(shown).splitlines() == [
        "2 records behind result 7 of stopped",
        "  → stopped 7 2024-05-01 00:00:10Z vid=a, n=2",
        "  · reports 1 2024-05-01 00:00:01Z tid=1, speed=10",
        "  · reports 2 2024-05-01 00:00:02Z tid=2, speed=20",
    ]


def test_what_was_erased_is_not_shown(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        writer.commit(batch(0, stopped((7, 10, "a", 2, [2, 1])), reports((1, 1, 5), (2, 2, 6))))
    with stores.open(tmp_path) as store:
        store.erase("reports", ids=[1], reason="asked")
        shown = store.show(7)
    assert [one.values["speed"] for one in shown.records] == [None, 6]


def test_to_a_file(tmp_path: Path, single: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store, picture, page = (str(tmp_path / name) for name in ("single", "a.svg", "a.html"))
    assert main([store, "stopped", "7", picture]) == 0
    assert capsys.readouterr().out == "2 records behind result 7 of stopped\n"
    assert Path(picture).read_text() == single.show(7).svg() + "\n"
    assert main([store, "reports", "2", page, "--forward"]) == 0
    assert Path(page).read_text() == single.show(source="reports", id=2).html() + "\n"
    assert main([store, "stopped", "8", picture]) == 1
    assert "has no result with the id 8" in capsys.readouterr().err
