"""What is built: the files of the package and no others, and metadata that says what it needs."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import headwater as hw
from tests.support import need

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
INFO = f"headwater-{hw.__version__}.dist-info"


@cache
def project() -> dict[str, Any]:
    """The project's part of pyproject.toml."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return dict(told["project"])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which `scripts/dist` has put what it builds."""
    folder = tmp_path_factory.mktemp("dist")
    script = [str(ROOT / "scripts" / "dist"), str(folder)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as pip lays it out: in a folder of packages."""
    folder = tmp_path_factory.mktemp("site")
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def metadata(installed: Path) -> Message:
    return email.message_from_string((installed / INFO / "METADATA").read_text())


def files(folder: Path) -> set[str]:
    return {
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def canonical(requirement: str) -> tuple[str, SpecifierSet]:
    """A requirement however it is written, and whoever asks for it."""
    read = Requirement(requirement)
    return read.name, read.specifier


def test_the_wheel_has_every_file_of_the_package_and_no_other(installed: Path) -> None:
    assert {entry.name for entry in installed.iterdir()} == {"headwater", INFO}
    there = files(installed / "headwater")
    assert there == files(SOURCES / "headwater")
    assert {"py.typed", "compose/schema.json", "server/page/index.html"} <= there
    assert {Path(file).suffix for file in there} >= {".css", ".js", ".yaml", ".json", ".typed"}


def test_the_wheel_has_the_licence(installed: Path, metadata: Message) -> None:
    [name] = metadata.get_all("License-File", [])
    assert (installed / INFO / "licenses" / name).read_text() == (ROOT / "LICENSE").read_text()
    assert metadata["License-Expression"] == project()["license"]


def test_the_version_is_said_in_one_place(metadata: Message) -> None:
    assert metadata["Version"] == hw.__version__
    assert "version" in project()["dynamic"]
    assert f"## {hw.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_it_needs_what_the_project_says(metadata: Message) -> None:
    told = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert set(map(canonical, told)) == set(map(canonical, project()["dependencies"]))
    assert metadata["Requires-Python"] == project()["requires-python"]


def test_the_extras_are_those_of_the_project_and_all_is_their_union(metadata: Message) -> None:
    extras: dict[str, set[Any]] = {name: set() for name in metadata.get_all("Provides-Extra", [])}
    for line in metadata.get_all("Requires-Dist", []):
        if (found := re.search(r"extra == ['\"](\w+)['\"]", line)) is not None:
            extras[found[1]].add(canonical(line))
    said = project()["optional-dependencies"]
    assert extras.keys() == said.keys() == {"server", "kafka", "delta", "all"}
    every = extras.pop("all")
    assert extras == {name: set(map(canonical, said[name])) for name in extras}
    assert every == set().union(*extras.values())


def test_the_tests_are_run_with_all_extras() -> None:
    """They are repeated among the tests' requirements, from which the pins are compiled."""
    lines = (ROOT / "requirements" / "test.in").read_text().splitlines()
    extras = project()["optional-dependencies"]
    assert {one for name in extras if name != "all" for one in extras[name]} <= set(lines)


def test_the_description_is_the_readme(metadata: Message) -> None:
    assert metadata.get_payload() == (ROOT / "README.md").read_text()


def test_the_command_is_there(installed: Path) -> None:
    told = (installed / INFO / "entry_points.txt").read_text().split()
    assert told == ["[console_scripts]", "headwater", "=", project()["scripts"]["headwater"]]
    module, _, name = project()["scripts"]["headwater"].partition(":")
    assert callable(getattr(import_module(module), name))


def test_it_runs_from_there_alone(installed: Path, tmp_path: Path) -> None:
    """A flow file that ships is checked against a schema that ships, outside the checkout."""
    script = (
        "from pathlib import Path; import headwater as hw; from headwater.cli.app import main; "
        f"assert Path(hw.__file__).is_relative_to({str(installed)!r}), hw.__file__; "
        "import sys; flow = Path(hw.__file__).parent / 'examples' / 'linear_road.yaml'; "
        "sys.argv[1:] = ['flow', 'check', str(flow)]; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_source_distribution_can_be_built_and_tested(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as opened:
        there = {name.partition("/")[2] for name in opened.getnames()}
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    need("git, and a checkout", listed.returncode == 0)
    ours = {name for name in listed.stdout.split("\0") if name and not name.startswith(".ci/")}
    assert ours - there == {name for name in ours if not (ROOT / name).exists()}
    assert {"Makefile", "LICENSE", "CHANGELOG.md", "pyproject.toml"} <= there
    assert not any(Path(name).name in (".venv", ".git", "__pycache__") for name in there)


@pytest.mark.long
def test_the_wheel_in_an_environment_of_its_own() -> None:
    """Installed outside the checkout, without and with extras (minutes: all packages anew)."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(ROOT / "scripts" / "verify"), "wheel"],
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=1_800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the README: an alert of 4 reports" in done.stdout
