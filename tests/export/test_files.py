"""Where an export goes: whole or not at all."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import HeadwaterError, UnknownId
from headwater.export import exporting
from headwater.query import Store


def test_a_file_is_what_a_stream_gets(store: Store, tmp_path: Path) -> None:
    stream = io.BytesIO()
    told = store.export(stream, format="prov-n")
    for to in (tmp_path / "a.provn", str(tmp_path / "b.provn")):
        assert store.export(to, format="prov-n") == told
        assert Path(to).read_bytes() == stream.getvalue()
    assert (told.format, told.entities, told.edges) == ("prov-n", 13, 10)
    assert told.bytes == len(stream.getvalue())
    assert sorted(os.listdir(tmp_path)) == ["a.provn", "b.provn"], "nothing else is left"


def test_a_file_that_is_there_is_replaced(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "export.json"
    file.write_text("old " * 10_000)
    store.export(file, sink="kept")
    assert file.read_bytes().startswith(b'{\n"prefix"')


def test_what_fails_leaves_nothing_behind(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(graph: Any) -> Iterator[bytes]:
        yield b"a beginning"
        raise UnknownId("the store went away")

    monkeypatch.setitem(exporting.FORMATS, "dot", broken)  # type: ignore[arg-type]
    file = tmp_path / "export.dot"
    with pytest.raises(UnknownId, match="went away"):
        store.export(file, format="dot")
    assert os.listdir(tmp_path) == []
    file.write_text("earlier")
    with pytest.raises(UnknownId):
        store.export(file, format="dot")
    assert file.read_text() == "earlier"
    assert os.listdir(tmp_path) == ["export.dot"]


def test_a_full_disk_is_told_in_one_line(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(HeadwaterError, match=r"can't export to .*x\.json: No space left"):
        store.export(tmp_path / "x.json")
    assert os.listdir(tmp_path) == []


def test_places_that_can_be_no_file(store: Store, tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError, match=r"there is no folder .*missing"):
        store.export(tmp_path / "missing" / "x.json")
    with pytest.raises(HeadwaterError, match="it is a folder; name a file in it"):
        store.export(tmp_path)
    with pytest.raises(HeadwaterError, match="no format 'xml'"):
        store.export(tmp_path / "x.xml", format="xml")
    with pytest.raises(UnknownId):
        store.export(tmp_path / "x.json", sink="counted", result_id=12)
    assert os.listdir(tmp_path) == []
