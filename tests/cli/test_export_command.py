"""`headwater export`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headwater.cli.export import Format
from headwater.export import FORMATS
from headwater.store import EmbeddedWriter
from tests.store.small import batch, flow, reports, stopped


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1 and 2 made 7 in the first batch; 2 made -8 in the second."""
    folder = tmp_path_factory.mktemp("store")
    with EmbeddedWriter.open(folder) as writer:
        writer.register(flow())
        kept = reports((1, 1, 10), (2, 2, 20), (3, 3, 30))
        writer.commit(batch(0, stopped((7, 10, "a", 2, [1, 2])), kept))
        writer.commit(batch(1, stopped((-8, 20, "b", 1, [2]))))
    return folder


def test_every_format_can_be_named() -> None:
    assert [format_.value for format_ in Format] == list(FORMATS)


def test_backward_to_stdout(headwater, place: Path) -> None:
    done = headwater("export", place, "--backward", "stopped", 7, "--format", "dot")
    assert (done.code, done.err) == (0, "")
    assert done.out.count(" -> ") == 2
    both = headwater("export", place, "--backward", "stopped", 7, -8, "-f", "prov-n")
    assert both.out.count("wasDerivedFrom(") == 3


def test_prov_json_is_the_default(headwater, place: Path) -> None:
    found = headwater("export", place).json
    assert len(found["wasDerivedFrom"]) == 3
    assert headwater("export", place, "-o", "-").json == found


def test_forward(headwater, place: Path) -> None:
    found = headwater("export", place, "--forward", "reports", 2).json
    pairs = [
        (d["prov:generatedEntity"], d["prov:usedEntity"]) for d in found["wasDerivedFrom"].values()
    ]
    assert sorted(pairs) == [
        ("hw:traffic/stopped/-8", "hw:traffic/reports/2"),
        ("hw:traffic/stopped/7", "hw:traffic/reports/2"),
    ]


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        (["--from", "2024-05-01T00:00:15"], {"-8"}),
        (["--since", "2024-05-01T00:00:05", "--to", "2024-05-01T00:00:15"], {"7"}),
        (["--sink", "stopped", "--until", "2024-05-01T00:00:05"], set()),
        (["--sink", "stopped", "--where", "vid = 'b'"], {"-8"}),
        (["--batch", "1"], {"-8"}),
        (["--batch", "0-0"], {"7"}),
        (["--batch", "0-"], {"7", "-8"}),
    ],
    ids=lambda told: " ".join(sorted(told)) if isinstance(told, set) else " ".join(told),
)
def test_ranges(headwater, place: Path, asked: list[str], ids: set[str]) -> None:
    found = headwater("export", place, *asked).json.get("entity", {})
    results = {name.rpartition("/")[2] for name in found if "/stopped/" in name}
    assert results == ids


def test_to_a_file(headwater, place: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    done = headwater("export", place, "--output", file)
    text = file.read_bytes()
    assert done.out == f"{file}: 4 entities, 3 edges, {len(text):,} bytes\n"
    told = headwater("export", place, "--output", file, "--no-columns", "--json").json
    assert told == {
        "file": str(file),
        "format": "prov-json",
        "entities": 4,
        "edges": 3,
        "bytes": file.stat().st_size,
    }
    assert b"column:speed" in text
    assert b"column:speed" not in file.read_bytes()
    assert len(json.loads(text)["entity"]) == 5
    assert os.listdir(tmp_path) == ["out.json"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "xml"], "'xml' is not one of"),
        (["--backward", "stopped"], "ids follow the name"),
        (["7"], "ids go with --backward SINK or --forward SOURCE"),
        (["--entity", "e", "7"], "ids go with --backward SINK or --forward SOURCE"),
        (["--backward", "stopped", "7", "--forward", "reports"], "choose one of --backward"),
        (["--backward", "stopped", "7", "--from", "2024-05-01"], "a query and a range"),
        (["--forward", "reports", "1", "--sink", "stopped"], "a query and a range"),
        (["--entity", "e", "--batch", "1"], "a query and a range"),
        (["--direction", "forward"], "--direction goes with --entity"),
        (["--from", "soon"], "'soon' is not a time"),
        (["--batch", "one"], "'one' is no span of batches"),
        (["--json"], "name it with --output"),
        (["--jsn"], "no such option"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_wrong_usage(headwater, place: Path, arguments: list[str], says: str) -> None:
    wrong = headwater("export", place, *arguments)
    assert wrong.code == 2
    assert says in " ".join(wrong.err.replace("│", " ").split())
    assert wrong.out == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--backward", "stopped", "12"], "sink 'stopped' has no result with the id 12"),
        (["--backward", "stoped", "7"], "did you mean 'stopped'?"),
        (["--forward", "reports", "12"], "source 'reports' has no record with the id 12"),
        (["--output", "{}/missing/x.json"], "there is no folder"),
        (["--output", "{}"], "it is a folder"),
        (["--batch", "3-2"], "batch 3 is after batch 2"),
        (["--sink", "stopped", "--where", "n >"], "is not an SQL predicate"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_an_error_is_one_line(
    headwater, place: Path, tmp_path: Path, arguments: list[str], says: str
) -> None:
    given = [one.format(tmp_path) for one in arguments]
    if "--output" not in given:
        given += ["--output", str(tmp_path / "x.json")]
    failed = headwater("export", place, *given)
    assert failed.code == 1
    assert failed.err.startswith("headwater: ")
    assert failed.err.count("\n") == 1
    assert says in failed.err
    assert failed.out == ""
    assert os.listdir(tmp_path) == []


def test_a_reader_that_goes_away_ends_it(place: Path) -> None:
    """As `headwater export … | head` does: no traceback, whatever was not read."""
    import subprocess
    import sys

    command = [sys.executable, "-m", "headwater", "export", str(place)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as stderr:
        said = stderr.read()
    process.wait(60)
    assert b"Traceback" not in said
