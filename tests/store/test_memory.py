"""What a store may hold in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import StoreError
from headwater.store.database import MEMORY, connect


def limit(store: Path) -> str:
    store.mkdir(exist_ok=True)
    with connect(store, read_only=False) as connection:
        [(told,)] = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return str(told)


def test_the_environment_says_how_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MEMORY, raising=False)
    usual = limit(tmp_path)
    monkeypatch.setenv(MEMORY, "512MiB")
    assert limit(tmp_path) == "512.0 MiB" != usual


@pytest.mark.parametrize("told", ["", "much", "512", "-1GB", "1GB; DROP"])
def test_what_is_no_size_is_refused(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEMORY, told)
    with pytest.raises(StoreError, match=f"{MEMORY}={told!r} is not a size; write it like 512MiB"):
        connect(tmp_path, read_only=False)
