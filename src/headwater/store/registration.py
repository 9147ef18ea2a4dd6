"""Binding a flow to a store: its row, and the numbers and tables of its sources and sinks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from headwater.errors import StoreError
from headwater.flow.kafka import FORMAT as KAFKA
from headwater.flow.kafka import topics as kafka_topics
from headwater.store.schema import create_records, create_results

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from headwater.store.batch import FlowRegistration, SinkRegistration, SourceRegistration
    from headwater.store.catalog import Catalog, Sink, Source


def register(
    connection: duckdb.DuckDBPyConnection, catalog: Catalog, flow: FlowRegistration
) -> None:
    """Write a flow that is new, or bring the rows of a known one up to date."""
    parts: list[SourceRegistration | SinkRegistration] = [*flow.sources, *flow.sinks]
    for part in parts:
        _check_columns(part.name, part.schema)
    connection.execute(
        "INSERT OR REPLACE INTO flows VALUES (?, ?, ?, ?, ?, ?, ?, false)",
        [
            flow.flow,
            flow.capture,
            flow.query_id,
            flow.checkpoint,
            flow.fingerprint,
            json.dumps(dict(flow.definition)),
            flow.program,
        ],
    )
    sources = {known.name: known for known in catalog.sources if known.flow == flow.flow}
    sinks = {known.name: known for known in catalog.sinks if known.flow == flow.flow}
    source_no = max((known.no for known in catalog.sources), default=0)
    sink_no = max((known.no for known in catalog.sinks), default=0)
    for source in flow.sources:
        if source.name in sources:
            _update(connection, "source", sources[source.name], source)
            continue
        source_no += 1
        _insert(connection, "sources", source_no, flow.flow, source)
        if source.definition.get("keep", "none") != "none":
            create_records(connection, source_no, source.schema)
    for sink in flow.sinks:
        if sink.name in sinks:
            _update(connection, "sink", sinks[sink.name], sink)
            continue
        sink_no += 1
        _insert(connection, "sinks", sink_no, flow.flow, sink)
        create_results(connection, sink_no, sink.schema)


def tables_of(connection: duckdb.DuckDBPyConnection, catalog: Catalog) -> None:
    """Make the tables of all that is registered."""
    for source in catalog.sources:
        if source.kept:
            create_records(connection, source.no, source.schema)
    for sink in catalog.sinks:
        create_results(connection, sink.no, sink.schema)


def _insert(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    no: int,
    flow: str,
    part: SourceRegistration | SinkRegistration,
) -> None:
    connection.execute(
        f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)",
        [
            no,
            flow,
            part.name,
            json.dumps(dict(part.definition)),
            part.schema.serialize().to_pybytes(),
        ],
    )


def _update(
    connection: duckdb.DuckDBPyConnection,
    kind: str,
    known: Source | Sink,
    part: SourceRegistration | SinkRegistration,
) -> None:
    # What rows and ids mean must stay; where a source lies, and its options, may change.
    for what, before, now in (
        ("columns", _columns(known.schema), _columns(part.schema)),
        ("id", known.definition.get("id"), part.definition.get("id")),
        ("keep", known.definition.get("keep"), part.definition.get("keep")),
    ):
        if before != json.loads(json.dumps(now)):
            raise StoreError(
                f"{kind} {part.name!r} of flow {known.flow!r} is stored with other {what}: "
                f"{before} then, {now} now; use another store, or another name for the {kind}"
            )
    before, now = (kafka_topics(one.definition.get("options") or {}) for one in (known, part))
    if known.definition.get("format") == KAFKA and now[: len(before)] != before:
        named = ", ".join(before)
        raise StoreError(
            f"{kind} {part.name!r} of flow {known.flow!r} is stored with the topics {named}, whose "
            "places are part of ids: name them first and in this order, new ones after them"
        )
    connection.execute(
        f"UPDATE {kind}s SET definition = ? WHERE {kind}_no = ?",
        [json.dumps(dict(part.definition)), known.no],
    )


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)


def _check_columns(part: str, columns: pa.Schema) -> None:
    seen: set[str] = set()
    for name in columns.names:
        # DuckDB, like Spark by default, takes names that differ only in case for the same.
        if name.casefold() in seen:
            raise StoreError(
                f"{part!r} has two columns called {name!r} (upper and lower case are the "
                "same); rename one of them"
            )
        if name.casefold().startswith("__hw_"):
            raise StoreError(
                f"{part!r} has a column {name!r}; names that begin with __hw_ are reserved"
            )
        seen.add(name.casefold())
