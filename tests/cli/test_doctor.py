"""`headwater doctor`: what it finds, and what it advises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli import doctor


def test_a_sound_machine_and_store(headwater, spark, store: Path) -> None:
    shown = headwater("doctor", store, "--json")
    assert shown.code == 0
    checks = {check["name"]: check for check in shown.json}
    assert all(check["ok"] for check in checks.values())
    assert {"python", "java", "pyspark", "duckdb", "memory", "cores", "disk", "spark"} <= set(
        checks
    )
    assert "results" in checks["store"]["found"]
    assert "format" in checks["store"]["found"]


def test_a_problem_is_exit_code_1_with_advice(headwater, spark, tmp_path: Path) -> None:
    shown = headwater("doctor", tmp_path)
    assert shown.code == 1
    (line,) = [line for line in shown.out.splitlines() if line.startswith("problem")]
    assert "store" in line
    assert "→ name the folder that a flow ran into" in line


def script(folder: Path, text: str) -> None:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{text}\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("says", "ok", "found"),
    [
        ("""echo 'openjdk version "17.0.15" 2025-04-15' >&2""", True, "17.0.15"),
        ("""echo 'openjdk version "21" 2023-09-19' >&2""", True, "21"),
        ("""echo 'java version "1.8.0_402"' >&2""", False, "1.8.0_402"),
        ("exit 1", False, "does not run"),
        ("echo hello", False, "does not say its version"),
    ],
)
def test_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, ok: bool, found: str
) -> None:
    script(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check = doctor.java()
    assert check.ok == ok
    assert found in check.found
    assert "install Java 17" in check.advice


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    check = doctor.java()
    assert (check.ok, check.found) == (False, "not found")


def test_a_missing_package() -> None:
    assert not doctor._package("no-such-package").ok


def test_a_place_for_a_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor.lake(tmp_path / "lake")
    assert found.ok
    assert f"delta:{tmp_path / 'lake'} can be written" in found.found
    assert not (tmp_path / "lake").exists(), "nothing is left behind"
    (tmp_path / "file").write_text("")
    assert "can't be written" in doctor.lake(tmp_path / "file").found
    monkeypatch.setitem(sys.modules, "deltalake", None)
    missing = doctor.lake(tmp_path / "lake")
    assert not missing.ok
    assert missing.advice == "pip install 'headwater[delta]'"


def test_a_broker_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    missing = doctor.answers("127.0.0.1:1")
    assert not missing.ok
    assert missing.advice == "pip install 'headwater[kafka]'"


def test_every_module_can_do_without_kafka_and_delta() -> None:
    """What is not used is not needed: all of Headwater is imported without both extras."""
    code = (
        "import importlib, pkgutil, sys\n"
        "sys.modules.update(dict.fromkeys(('confluent_kafka', 'deltalake')))\n"
        "import headwater\n"
        "for found in pkgutil.walk_packages(headwater.__path__, 'headwater.'):\n"
        "    if not found.name.endswith('__main__'): importlib.import_module(found.name)\n"
        "print(len(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
