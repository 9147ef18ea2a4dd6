"""The store that the tests of exports share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater import store as stores
from headwater.query import Store
from tests.export.stores import build


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small store."""
    return build(tmp_path_factory.mktemp("store"))


@pytest.fixture
def store(place: Path) -> Iterator[Store]:
    """That store."""
    with stores.open(place) as opened:
        yield opened
