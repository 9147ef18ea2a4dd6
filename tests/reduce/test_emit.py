"""The publisher: what it writes is taken as it was told, complete, by any number of threads."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import HeadwaterError
from headwater.prov import Emitter
from headwater.prov import emit as emit_module
from headwater.reduce.parsing import Parsed, parse


def files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if not file.name.startswith("."))


def hidden(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.name.startswith(".")]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in files(folder) for line in file.read_text().splitlines()]


def parsed(folder: Path, job: str = "count") -> Parsed:
    return parse(b"".join(file.read_bytes() for file in files(folder)), job)


def edges(found: Parsed) -> list[tuple[str, str]]:
    names = dict(zip(found.ids.tolist(), found.names.to_pylist(), strict=True))
    rows = found.edges.select(["source", "destination"]).to_pylist()
    return [(names[row["source"]], names[row["destination"]]) for row in rows]


def test_an_execution_is_a_group(tmp_path: Path) -> None:
    with Emitter(tmp_path, "count") as emitter:
        with emitter.execution("map", node="n3") as run:
            run.used("in-1", "in-2")
            run.generated("mid-1")
            run.generated("sum", output=True)
            run.derived("d", "in-1")
            run.member("c", "mid-1")
        emitter.derived("x", "y", "z")
        emitter.member("c", "sum", output=True)
        emitter.end()
    group, *others, end = lines(tmp_path)
    assert group["execution"] == run.name
    assert (group["function"], group["node"], group["job"]) == ("map", "n3", "count")
    assert len(others) == 3
    assert end == {"type": "end", "job": "count"}
    found = parsed(tmp_path)
    assert found.rejected.num_rows == 0
    assert found.ends == ["count"]
    assert edges(found) == [
        (run.name, "in-1"),
        (run.name, "in-2"),
        ("mid-1", run.name),
        ("sum", run.name),
        ("d", "in-1"),
        ("c", "mid-1"),
        ("x", "y"),
        ("x", "z"),
        ("c", "sum"),
    ]
    assert set(found.edges["function"].to_pylist()[:6]) == {"map"}
    names = dict(zip(found.ids.tolist(), found.names.to_pylist(), strict=True))
    assert {names[kept] for kept in found.kept.tolist()} == {"sum", "c"}
    assert found.spans.num_rows == 1


def test_files_appear_complete_and_roll(tmp_path: Path) -> None:
    emitter = Emitter(tmp_path, "count", roll=1_000)
    for number in range(20):
        with emitter.execution("map") as run:
            run.used(f"in-{number}")
        assert all(file.read_bytes().endswith(b"\n") for file in files(tmp_path))
        assert len(hidden(tmp_path)) <= 1
    assert len(files(tmp_path)) > 1
    assert all(1_000 <= file.stat().st_size < 1_500 for file in files(tmp_path))
    emitter.close()
    assert not hidden(tmp_path)
    assert len(edges(parsed(tmp_path))) == 20


def test_time_publishes_too(tmp_path: Path) -> None:
    with Emitter(tmp_path, "count", every=0) as emitter:
        emitter.derived("a", "b")
        assert len(files(tmp_path)) == 1


def test_flush_publishes(tmp_path: Path) -> None:
    with Emitter(tmp_path, "count") as emitter:
        emitter.derived("a", "b")
        assert files(tmp_path) == []
        emitter.flush()
        emitter.flush()
        assert len(files(tmp_path)) == 1


def test_an_execution_that_raises_tells_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with emitter.execution("map") as run:
            run.used("in-1")
            raise ZeroDivisionError

    with Emitter(tmp_path, "count") as emitter:
        with pytest.raises(ZeroDivisionError):
            fail()
        with emitter.execution("map"):
            pass
    assert files(tmp_path) == []


def test_a_large_execution_is_several_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emit_module, "_MOST", 10)
    with Emitter(tmp_path, "count") as emitter, emitter.execution("map", name="m1") as run:
        run.used(*(f"in-{number}" for number in range(25)))
    assert [len(line["group"]) for line in lines(tmp_path)] == [10, 10, 5]
    assert {line["execution"] for line in lines(tmp_path)} == {"m1"}


def test_threads_share_an_emitter(tmp_path: Path) -> None:
    def run(number: int) -> str:
        with emitter.execution("map") as execution:
            execution.used(f"in-{number}")
            execution.generated(f"out-{number}")
        return execution.name

    with Emitter(tmp_path, "count", roll=2_000) as emitter, ThreadPoolExecutor(8) as pool:
        names = list(pool.map(run, range(400)))
    found = parsed(tmp_path)
    assert found.rejected.num_rows == 0
    assert len(set(names)) == 400
    expected = {(name, f"in-{at}") for at, name in enumerate(names)}
    assert set(edges(found)) == expected | {(f"out-{at}", name) for at, name in enumerate(names)}


def test_emitters_share_a_folder(tmp_path: Path) -> None:
    """A job's name need not be one that a file can have."""
    job = "count: all/every"
    with Emitter(tmp_path, job) as one, Emitter(tmp_path, job) as other:
        for emitter in (one, other):
            with emitter.execution("map") as run:
                run.used("in-1")
    assert len(files(tmp_path)) == 2
    assert len({source for source, _ in edges(parsed(tmp_path, job))}) == 2


@pytest.mark.parametrize("name", ["", None, 5, "x" * 4097])
def test_names_that_would_be_rejected(tmp_path: Path, name: Any) -> None:
    with Emitter(tmp_path, "count") as emitter, emitter.execution("map") as run:
        for tell in (run.used, run.generated, lambda n: run.derived("a", n), emitter.execution):
            with pytest.raises(HeadwaterError, match="a name is a text of 1 to 4,096 bytes"):
                tell(name)
    assert files(tmp_path) == []


def test_after_the_end(tmp_path: Path) -> None:
    emitter = Emitter(tmp_path, "count")
    with emitter.execution("map") as run:
        run.used("a")
    with pytest.raises(HeadwaterError, match="is over: tell what it did in its `with`"):
        run.used("b")
    emitter.end()
    emitter.close()
    with pytest.raises(HeadwaterError, match="the emitter of job 'count' is closed"):
        emitter.derived("a", "b")


def test_without_the_rest_of_headwater() -> None:
    """A job that publishes needs no package but this one."""
    script = (
        "import sys, headwater.prov\n"
        "heavy = {'pyspark', 'pyarrow', 'numpy', 'pandas', 'duckdb', 'xxhash'} & set(sys.modules)\n"
        "ours = {n for n in sys.modules if n.startswith('headwater.')}\n"
        "assert not heavy, heavy\n"
        "assert ours == {'headwater.errors', 'headwater.prov', 'headwater.prov.emit'}, ours\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_topic_without_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_module, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        servers = f"127.0.0.1:{taken.getsockname()[1]}"
    emitter = Emitter("kafka:told", "count", servers=servers)
    emitter.derived("a", "b")
    with pytest.raises(HeadwaterError, match="can't publish to kafka:told: .*timed out"):
        emitter.close()


def test_no_client_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(HeadwaterError, match=r"kafka:told .* pip install 'headwater\[kafka\]'"):
        Emitter("kafka:told", "count")
