"""What all OpenLineage events of Headwater have in common, told live or exported."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater import __version__

if TYPE_CHECKING:
    from datetime import datetime

PRODUCER = f"urn:headwater:{__version__}"
OWN = "urn:headwater:openlineage:1-0-0"
"""The schema of Headwater's own facets, `facets.json` beside this file."""
STORE, PROGRESS = "headwater_store", "headwater_progress"
"""Headwater's own facets."""


def own_schema(name: str) -> str:
    """The address of the schema of a facet of Headwater's own.

    >>> own_schema("StoreRunFacet")
    'urn:headwater:openlineage:1-0-0#/$defs/StoreRunFacet'
    """
    return f"{OWN}#/$defs/{name}"


@cache
def own_schemas() -> dict[str, Any]:
    """The JSON schema of Headwater's own facets."""
    text = files("headwater.lineage").joinpath("facets.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


def jobs() -> str:
    """The namespace of jobs: that of whoever runs them, by `OPENLINEAGE_NAMESPACE`."""
    return os.environ.get("OPENLINEAGE_NAMESPACE") or "headwater"


def fields(schema: pa.Schema | pa.StructType) -> list[dict[str, Any]]:
    """The columns of rows, as the facet `schema` has them.

    >>> fields(pa.schema([("speed", pa.int32())]))
    [{'name': 'speed', 'type': 'int32'}]
    """
    return [_field(field) for field in schema]


def _field(field: pa.Field) -> dict[str, Any]:
    if pa.types.is_struct(field.type):
        return {"name": field.name, "type": "struct", "fields": fields(field.type)}
    return {"name": field.name, "type": str(field.type)}


def moment(at: datetime) -> str:
    """A time in UTC as events have it."""
    return at.isoformat().replace("+00:00", "Z")
