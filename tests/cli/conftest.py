"""How tests call the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headwater.cli import app


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Headwater = Callable[..., Outcome]


def call(*args: object) -> Outcome:
    """Runs `headwater ARGS...` in this process."""
    outcome = CliRunner().invoke(app, [str(arg) for arg in args], prog_name="headwater")
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return Outcome(outcome.exit_code, outcome.stdout, outcome.stderr)


@pytest.fixture(scope="session")
def headwater() -> Headwater:
    """Runs a command: `headwater("results", store, "--json")`."""
    return call


@pytest.fixture(scope="session")
def demo(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished demo of 6,000 reports."""
    folder = tmp_path_factory.mktemp("demo") / "traffic"
    outcome = call("demo", folder, "--reports", 6_000, "--json")
    assert outcome.code == 0
    return folder


@pytest.fixture(scope="session")
def store(demo: Path) -> Path:
    """The store of the finished demo."""
    return demo / "store"
