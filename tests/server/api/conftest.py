"""A service for each module of tests, and clients of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from headwater.server.service import Service
from tests.server.api import support
from tests.server.api.support import Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The folders of a service."""
    with support.place(tmp_path_factory.mktemp("service")) as made:
        yield made


@pytest.fixture(scope="module")
def service(place: Place) -> Service:
    """A service on them, which a token is needed to write to."""
    return place.service()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[TestClient]:
    """A client without a token."""
    with support.client(service) as made:
        yield made
