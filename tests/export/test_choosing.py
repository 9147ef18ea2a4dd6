"""What is exported: the answers of queries, and the results of a span."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.errors import HeadwaterError, StoreError, UnknownId, UnknownName
from headwater.query import Store
from headwater.store import EmbeddedWriter
from tests.export.reading import derivations, document, entities, exported
from tests.store.small import at, batch, flow, reports, sink, source, stopped


def edges(store: Store, **asked: Any) -> list[tuple[str, str]]:
    """Exported edges, with names cut to what differs."""
    read = document(exported(store, **asked))
    found = [(_short(effect), _short(cause)) for effect, cause, _ in derivations(read)]
    assert {_short(name) for name in entities(read)} >= {name for pair in found for name in pair}
    return sorted(found)


def nodes(store: Store, **asked: Any) -> list[str]:
    """Exported entities."""
    return sorted(_short(name) for name in entities(document(exported(store, **asked))))


def _short(name: str) -> str:
    return name.removeprefix("hw:traffic/").replace(str(-(2**63)), "least")


def test_backward_of_a_result(store: Store) -> None:
    assert edges(store, sink="counted", result_id=7) == [
        ("counted/7", "calm/1"),
        ("counted/7", "reports/1"),
        ("counted/7", "reports/2"),
    ]
    assert nodes(store, sink="counted", result_id=[9]) == ["counted/9"], "it came from nothing"
    assert nodes(store, sink="late.ones", result_id=7) == ["calm/1", "late.ones/7"]


def test_backward_of_several_results(store: Store) -> None:
    both = edges(store, sink="counted", result_id=[7, -8, 7])
    assert len(both) == 6
    given = np.array([-8, 7])
    assert edges(store, sink="counted", result_id=given) == both
    assert nodes(store, sink="counted", result_id=(7, -8)) == [
        "calm/1",
        "counted/-8",
        "counted/7",
        "reports/1",
        "reports/2",
        "reports/3",
        "reports/4",
    ], "a record that both came from is one entity"


def test_forward_of_records(store: Store) -> None:
    assert edges(store, source="traffic/reports", id=1) == [
        ("counted/7", "reports/1"),
        ("counted/least", "reports/1"),
    ]
    assert edges(store, source="calm", id=["1", 1]) == [
        ("counted/7", "calm/1"),
        ("late.ones/7", "calm/1"),
    ]
    assert nodes(store, source="calm", id=9) == ["calm/9"], "it reached nothing"


def test_a_sink_and_all_sinks(store: Store) -> None:
    assert len(edges(store, sink="counted")) == 8
    assert len(edges(store)) == 10
    assert nodes(store, sink="kept") == ["hw:other/kept/1", "hw:other/reports/1"]


def test_a_span_of_event_time(store: Store) -> None:
    some = nodes(store, since=at(11), until="2024-05-01T00:00:30")
    assert [name for name in some if "reports" not in name] == [
        "calm/1",
        "counted/-8",
        "late.ones/7",
    ]
    assert nodes(store, sink="counted", since=at(40)) == [
        "counted/least",
        "reports/1",
        "reports/least",
    ]


def test_a_condition(store: Store) -> None:
    assert nodes(store, sink="counted", where="n = 0") == ["counted/9"]
    with pytest.raises(HeadwaterError, match="needs sink="):
        exported(store, where="n = 0")


def test_a_span_of_batches(store: Store) -> None:
    assert nodes(store, batches=(2, 2)) == ["counted/least", "reports/1", "reports/least"]
    assert len(edges(store, sink="counted", batches=(None, 1))) == 6
    assert len(edges(store, sink="counted", batches=(2, None))) == 2
    assert edges(store, batches=(7, None)) == []


def test_what_is_committed_meanwhile_is_not_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwater.export import choosing

    taken = choosing._take
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow(source(), sink(), sink("other")))
        for number in range(2):
            made = {"stopped": stopped((number, 1, "a", 1, [1])), "other": stopped()}
            writer.commit(batch(number, made, reports((1, 0, 5))))

        def take(*args: Any) -> None:
            taken(*args)
            writer.commit(batch(2, {"other": stopped((2, 1, "a", 1, [1]))}))

        monkeypatch.setattr(choosing, "_take", take)
        with hw.open(tmp_path) as store:
            assert edges(store) == [("stopped/0", "reports/1"), ("stopped/1", "reports/1")]
            assert len(edges(store)) == 3


@pytest.mark.parametrize("weight", [1, 7, 20, 1000])
def test_heavy_batches_are_taken_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weight: int
) -> None:
    from headwater.export import choosing

    monkeypatch.setattr(choosing, "WEIGHT", weight)
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        writer.commit(batch(0, stopped(*((i, i, "a", 1, [1, 2]) for i in range(-3, 9)))))
        writer.commit(batch(1, stopped((9, 1, "a", 1, [1]), (10, 1, "a", 0, []))))
    with hw.open(tmp_path) as store:
        found = edges(store, columns=False)
        numbers = sorted(int(effect.removeprefix("stopped/")) for effect, _ in found)
        assert numbers == [*sorted([*range(-3, 9)] * 2), 9]
        assert len(nodes(store, columns=False, where="n > 0", sink="stopped")) == 15


def test_records_whose_contents_are_gone(tmp_path: Path) -> None:
    """Erased ones are entities without columns; files that vanished are told of."""
    with EmbeddedWriter.open(tmp_path / "store") as writer:
        gone = source("gone", path=str(tmp_path / "none"), format="parquet", keep="none")
        writer.register(flow(source(), gone, sink(), sink("lost", sources=["gone"])))
        kept = reports((1, 1, 10), (2, 2, 20))
        writer.commit(batch(0, stopped((7, 10, "a", 2, [1, 2])), kept))
        writer.commit(batch(1, {"lost": stopped((8, 10, "b", 1, [5]), origin="gone")}))
    with hw.open(tmp_path / "store") as store:
        store.erase("reports", ids=[1])
        found = entities(document(exported(store, sink="stopped")))
        assert "column:speed" not in found["hw:traffic/reports/1"]
        assert found["hw:traffic/reports/2"]["column:speed"] == 20
        with pytest.raises(StoreError, match="put it back, or ask with columns=False"):
            exported(store, sink="lost")
        assert edges(store, sink="lost", columns=False) == [("lost/8", "gone/5")]


def test_records_that_are_no_longer_in_their_source(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"tid": [1], "speed": [10]}), tmp_path / "data" / "0.parquet")
    read_again = source(path=str(tmp_path / "data"), format="parquet", keep="none")
    with EmbeddedWriter.open(tmp_path / "store") as writer:
        writer.register(flow(read_again, sink()))
        writer.commit(batch(0, stopped((7, 10, "a", 2, [1]), (8, 10, "a", 2, [1, 2]))))
    with hw.open(tmp_path / "store") as store:
        found = entities(document(exported(store, sink="stopped", result_id=7)))
        assert found["hw:traffic/reports/1"]["column:speed"] == 10
        with pytest.raises(StoreError, match=r"1 record \(id 2\) is no longer in"):
            exported(store)
        store.erase("reports", ids=[2])
        assert "column:speed" not in entities(document(exported(store)))["hw:traffic/reports/2"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"format": "rdf"}, "no format 'rdf'; choose one of: prov-json, prov-n, dot, graphml, op"),
        ({"result_id": 7}, "result_id= needs the sink="),
        ({"source": "calm"}, "source= and id= go together"),
        ({"id": 1}, "source= and id= go together"),
        ({"entity": "e", "direction": "up"}, "neither 'backward' nor 'forward'"),
        ({"sink": "counted", "result_id": 7, "since": at(1)}, "not both"),
        ({"sink": "counted", "result_id": 7, "batches": (1, 2)}, "not both"),
        ({"sink": "counted", "source": "calm", "id": 1}, "not both"),
        ({"entity": "e", "sink": "counted"}, "not both"),
        ({"entity": "e", "source": "calm", "id": 1}, "not both"),
        ({"batches": (3, 2)}, "batch 3 is after batch 2"),
        ({"entity": "e", "format": "openlineage"}, "tells of the runs of flows"),
        ({"sink": "counted", "where": "n >"}, "is not an SQL predicate"),
        ({"sink": "counted", "where": "nn > 1"}, "can't be evaluated"),
        ({"since": "soon"}, "is not a time"),
    ],
    ids=str,
)
def test_bad_input(store: Store, asked: dict[str, Any], says: str) -> None:
    with pytest.raises(HeadwaterError, match=says.replace("(", r"\(")) as raised:
        exported(store, **asked)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"sink": "counted", "result_id": 12}, UnknownId, "no result with the id 12"),
        ({"sink": "counted", "result_id": [7, 12]}, UnknownId, "no result with the id 12"),
        ({"sink": "counted", "result_id": "x"}, UnknownId, "a whole number"),
        ({"source": "calm", "id": 12}, UnknownId, "no record with the id 12"),
        ({"source": "calm", "id": [1, 12]}, UnknownId, "no record with the id 12"),
        ({"sink": "nowhere"}, UnknownName, "no sink 'nowhere'"),
        ({"source": "nowhere", "id": 1}, UnknownName, "no source 'nowhere'"),
    ],
    ids=str,
)
def test_unknown_ids_and_names(
    store: Store, asked: dict[str, Any], error: type[HeadwaterError], says: str
) -> None:
    """Also one of several: who reads the file could not tell that it is not there."""
    with pytest.raises(error, match=says):
        exported(store, **asked)
