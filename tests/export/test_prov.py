"""PROV-JSON and PROV-N, read back by the `prov` package and compared with the store's answers."""

from __future__ import annotations

import math
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from prov.model import ProvActivity, ProvAgent, ProvAssociation

from headwater.export import FORMATS
from headwater.query import Store
from tests.export.drawing import NAMES, TEXTS, drawn
from tests.export.reading import (
    decoded,
    derivations,
    document,
    entities,
    exported,
    generations,
    told,
)
from tests.export.stores import CALM, COUNTED, ODD

RUN = "hw:run/5f1c0b9e-7a55-4c5e-9b53-1a7ad1c0de01"
BOTH = pytest.mark.parametrize("format", ["prov-json", "prov-n"])
READ = {"prov-json": "json", "prov-n": "provn"}


def expected(store: Store) -> tuple[dict[str, dict[str, Any]], set[tuple[str, str, str]]]:
    """All entities with their attributes and all edges, by the store's own answers."""
    found: dict[str, dict[str, Any]] = {}
    edges = set()
    for flow_, name, columns, run in (
        ("traffic", "counted", COUNTED, RUN),
        ("traffic", "late.ones", CALM, RUN),
        ("other", "kept", CALM, "hw:run/o"),
    ):
        table = store.results(name)
        fixed = {"prov:type": "hw:Result", "hw:flow": flow_, "hw:sink": name}
        for id_, said in zip(
            table["result_id"].to_pylist(), told(table, _same(columns)), strict=True
        ):
            found[f"hw:{flow_}/{name}/{id_}"] = fixed | said
        answer = store.backward(name, table["result_id"].to_pylist())
        for row in answer.to_pylist():
            result, record = f"hw:{flow_}/{name}/{row['result_id']}", row["id"]
            edges.add((result, f"hw:{flow_}/{row['source']}/{record}", run))
        for origin, own in (("reports", ODD), ("calm", CALM)):
            mine = answer.filter(pa.compute.equal(answer["source"], origin))
            own = CALM if flow_ == "other" else own
            shown = {c: f"{origin}.{c}" for c in own.names}
            names = {c: s if s in mine.column_names else c for c, s in shown.items()}
            fixed = {"prov:type": "hw:Record", "hw:flow": flow_, "hw:source": origin}
            for id_, said in zip(mine["id"].to_pylist(), told(mine, names), strict=True):
                found[f"hw:{flow_}/{origin}/{id_}"] = fixed | said
    return found, edges


def _same(columns: pa.Schema) -> dict[str, str]:
    return {name: name for name in columns.names}


@BOTH
def test_everything_is_read_back_as_the_store_answers(store: Store, format: str) -> None:
    read = document(exported(store, format), READ[format])
    records, edges = expected(store)
    found = {name: decoded(said) for name, said in entities(read).items()}
    assert found.keys() == records.keys()
    for name, said in records.items():
        nan = [key for key, value in said.items() if value != value]
        for key in nan:
            assert math.isnan(found[name].pop(key))
            del said[key]
        assert found[name] == said
    assert len(derivations(read)) == len(edges) == 10
    assert set(derivations(read)) == edges


@BOTH
def test_results_are_generated_by_the_run_of_their_batch(store: Store, format: str) -> None:
    read = document(exported(store, format), READ[format])
    times = {
        (row["flow"], row["batch"]): row["committed_at"] for row in store.batches().to_pylist()
    }
    assert sorted(generations(read)) == [
        ("hw:other/kept/1", "hw:run/o", times["other", 0]),
        ("hw:traffic/counted/-8", RUN, times["traffic", 1]),
        (f"hw:traffic/counted/{-(2**63)}", RUN, times["traffic", 2]),
        ("hw:traffic/counted/7", RUN, times["traffic", 1]),
        ("hw:traffic/counted/9", RUN, times["traffic", 1]),
        ("hw:traffic/late.ones/7", RUN, times["traffic", 1]),
    ]
    runs = {str(run.identifier): run.get_endTime() for run in read.get_records(ProvActivity)}
    assert runs == {RUN: times["traffic", 2], "hw:run/o": None}, "only a finished flow has an end"
    assert [str(agent.identifier) for agent in read.get_records(ProvAgent)] == ["hw:headwater"]
    associations = [[str(one) for one in a.args] for a in read.get_records(ProvAssociation)]
    assert sorted(associations) == [
        [RUN, "hw:headwater", "hw:flow/traffic"],
        ["hw:run/o", "hw:headwater", "hw:flow/other"],
    ]


def test_prov_n_is_what_the_package_writes_itself(store: Store) -> None:
    """Statement by statement; only the spelling of UTC and of line breaks is a matter of taste."""
    theirs = document(exported(store)).get_provn()
    ours = exported(store, "prov-n").decode()
    assert statements(ours) == statements(theirs)


def statements(text: str) -> list[str]:
    one_line = re.sub(r'"""(.*?)"""', lambda m: f'"{m[1]}"'.replace("\n", "\\n"), text, flags=re.S)
    same_zone = one_line.replace("+00:00", "Z")
    return [line.strip() for line in same_zone.splitlines() if line.strip()]


def test_both_formats_are_the_same_document(store: Store) -> None:
    # A NaN equals nothing, itself not either.
    asked: dict[str, Any] = {"sink": "counted", "result_id": [9, -(2**63)]}
    read = document(exported(store, "prov-json", **asked))
    assert read == document(exported(store, "prov-n", **asked), "provn")
    assert len(entities(read)) == 4


def test_without_own_columns(store: Store) -> None:
    read = document(exported(store, columns=False))
    keys = {key for said in entities(read).values() for key in said}
    assert keys == {"prov:type", "hw:flow", "hw:sink", "hw:source", "hw:event_time"}
    assert len(derivations(read)) == 10


@BOTH
def test_an_empty_answer_is_a_document(store: Store, format: str) -> None:
    text = exported(store, format, since="2030-01-01")
    assert document(text, READ[format]).get_records() == []


@settings(max_examples=150, deadline=None)
@given(texts=TEXTS, column=NAMES)
def test_any_text_and_any_name_of_a_column(texts: list[str], column: str) -> None:
    graph = drawn(texts, column)
    read = document(b"".join(FORMATS["prov-json"](graph)))
    assert read == document(b"".join(FORMATS["prov-n"](graph)), "provn")
    found = entities(read)
    assert len(found) == len(texts)
    for number, text in enumerate(texts):
        (said,) = (v for k, v in found[f"hw:f/s/{number}"].items() if k.startswith("column:"))
        assert said == text


def test_many_pieces_make_the_same_document(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the work is cut, by batches, within a batch, by rows, what comes out is the same."""
    from headwater.export import choosing, flows, spool

    whole = exported(store)
    for weight, ids, rows, first in ((1, 1, 1, 1), (3, 2, 3, 2), (5, 10, 2, 1)):
        monkeypatch.setattr(choosing, "WEIGHT", weight)
        monkeypatch.setattr(choosing, "_ASKED", ids)
        monkeypatch.setattr(spool, "ROWS", rows)
        monkeypatch.setattr(flows, "ROWS", rows)
        monkeypatch.setattr(flows, "_FIRST", first)
        monkeypatch.setattr(flows, "_BYTES", 1)
        cut = document(exported(store))
        assert sorted(derivations(cut)) == sorted(derivations(document(whole)))
        assert generations(cut) == generations(document(whole))
        assert str(entities(cut)) == str(entities(document(whole)))
