"""What an OpenLineage event must be: the specification's shape, and Headwater's own facets."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import Any
from urllib.parse import urlparse

import jsonschema
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde

from headwater.lineage.spec import OWN, own_schemas

SCHEMAS = "https://openlineage.io/spec/"
TYPES = {"START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"}
WAYS = {
    "DIRECT": {"IDENTITY", "TRANSFORMATION", "AGGREGATION"},
    "INDIRECT": {"FILTER", "GROUP_BY", "JOIN", "SORT", "WINDOW", "CONDITIONAL"},
}


def as_json(event: RunEvent) -> dict[str, Any]:
    """An event as the client sends it."""
    told: dict[str, Any] = json.loads(Serde.to_json(event))
    conforms(told)
    return told


def conforms(event: dict[str, Any]) -> None:
    """What the schema of a RunEvent requires, of it and of its facets."""
    assert event["eventType"] in TYPES
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert urlparse(event["producer"]).scheme
    assert event["schemaURL"] == f"{SCHEMAS}2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert str(uuid.UUID(event["run"]["runId"])) == event["run"]["runId"]
    for one in (event["job"], *event["inputs"], *event["outputs"]):
        assert isinstance(one["namespace"], str)
        assert isinstance(one["name"], str)
        assert urlparse(one["namespace"]).scheme or "/" not in one["namespace"]
    places = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    for place in places:
        for kind in ("facets", "inputFacets", "outputFacets"):
            for name, facet in place.get(kind, {}).items():
                _facet(name, facet)


def _facet(name: str, facet: dict[str, Any]) -> None:
    own = name != "tags"  # these are the client's
    assert urlparse(facet["_producer"]).scheme == ("urn" if own else "https")
    address = facet["_schemaURL"]
    if not name.startswith("headwater_"):
        assert address.startswith(SCHEMAS), name
    else:
        assert address.startswith(f"{OWN}#/$defs/"), name
        whole = own_schemas()
        part = {"$ref": address.removeprefix(OWN), "$defs": whole["$defs"]}
        jsonschema.Draft202012Validator(part).validate(facet)
    if name == "columnLineage":
        fields = [one for each in facet["fields"].values() for one in each["inputFields"]]
        for field in [*fields, *facet.get("dataset", ())]:
            assert {"namespace", "name", "field"} <= field.keys()
            for way in field["transformations"]:
                assert way["subtype"] in WAYS[way["type"]]
