"""Exports read back by the packages that others use, as plain values."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from prov.model import Literal, ProvDerivation, ProvDocument, ProvEntity, ProvGeneration

from headwater.query import Store

Named = dict[str, dict[str, Any]]


def exported(store: Store, format: str = "prov-json", **asked: Any) -> bytes:
    """What `store.export` writes to a stream."""
    out = io.BytesIO()
    done = store.export(out, format=format, **asked)
    assert done.bytes == len(out.getvalue())
    return out.getvalue()


def document(text: bytes, format: str = "json") -> ProvDocument:
    """A document of PROV; what the package only warns of is an error here, as in all tests."""
    strictly = {"profile": "strict"} if format == "provn" else {}
    return ProvDocument.deserialize(content=text.decode(), format=format, **strictly)


def entities(read: ProvDocument) -> Named:
    """Records and results by name, with their attributes as Python knows them."""
    found: Named = {}
    for record in read.get_records(ProvEntity):
        attributes = {str(key): _plain(value) for key, value in record.attributes}
        assert len(attributes) == len(record.attributes)
        if attributes["prov:type"] != "prov:Plan":
            assert str(record.identifier) == record.identifier.uri
            found[str(record.identifier)] = attributes
    return found


def derivations(read: ProvDocument) -> list[tuple[str, str, str]]:
    """(generated, used, activity) of each derivation."""
    return _named(read, ProvDerivation, 3)


def generations(read: ProvDocument) -> list[tuple[str, str, Any]]:
    """(entity, activity, time) of each generation."""
    return [
        (str(entity), str(run), time)
        for entity, run, time in (one.args for one in read.get_records(ProvGeneration))
    ]


def _named(read: ProvDocument, kind: Any, count: int) -> list[Any]:
    return [tuple(str(one) for one in record.args[:count]) for record in read.get_records(kind)]


def _plain(value: Any) -> Any:
    if not isinstance(value, Literal):
        return value if isinstance(value, str | int | float | datetime) else str(value)
    match str(value.datatype):
        case "xsd:long":
            return int(value.value)
        case "xsd:decimal":
            return Decimal(value.value)
        case "xsd:date":
            return date.fromisoformat(value.value)
        case "xsd:base64Binary":
            return base64.b64decode(value.value)
    raise AssertionError(value)


def told(table: pa.Table, own: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The rows of an answer as attributes: `own` gives the names of own columns in it."""
    for row in table.to_pylist():
        said: dict[str, Any] = {}
        if row["event_time"] is not None:
            said["hw:event_time"] = row["event_time"]
        for column, shown in own.items():
            value = row[shown]
            if isinstance(value, dict):
                for part, inside in value.items():
                    said[f"column:{column}.{part}"] = inside
            elif value is not None:
                said[f"column:{column}"] = json_text(value)
        yield said


def json_text(value: Any) -> Any:
    """Lists are told as JSON; all else as it is."""
    return json.dumps(value) if isinstance(value, list) else value


def decoded(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes with the columns' real names."""
    return {unquote(key): value for key, value in attributes.items()}
