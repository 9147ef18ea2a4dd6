"""What a store holds, for those who look for something in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.server.answers import as_json, columns
from headwater.server.board import with_unit

if TYPE_CHECKING:
    from headwater.query import Store


def inventory(store: Store) -> dict[str, Any]:
    """All flows, sources and sinks, with how much there is of each."""
    store._refresh()
    catalog, query = store._catalog, store._reader.query
    flows = query(
        "SELECT f.flow, max(f.finished) AS finished, max(b.watermark) AS watermark, "
        "max(json_extract(f.definition, '$.live') IS NOT NULL AND "
        "json_extract(f.definition, '$.live') <> 'null') AS live "
        "FROM flows f LEFT JOIN batches b USING (query_id) GROUP BY f.flow ORDER BY max(b.seq)"
    )
    counts = query(
        "SELECT coalesce(sum(results), 0)::BIGINT AS results, coalesce(sum(edges), 0)::BIGINT AS "
        "edges, coalesce(sum(records), 0)::BIGINT AS records, count(*) AS batches FROM batches"
    )
    named = {sink.name: sink.no for sink in catalog.sinks}
    return {
        "path": str(store._reader.path),
        "flows": [with_unit(row) for row in as_json(flows)["rows"]],
        "sources": [
            {
                "name": source.name,
                "qualified": source.qualified,
                "flow": source.flow,
                "columns": columns(source.schema),
                "kept": source.kept,
                "streams": list(source.streams),
                "step": source.is_step,
            }
            for source in catalog.sources
        ],
        "sinks": [
            {
                "name": sink.name,
                "qualified": sink.qualified,
                "flow": sink.flow,
                "columns": columns(sink.schema),
                "capture": sink.capture,
                "lazy": sink.is_lazy,
                "sources": [source.name for source in catalog.sources_of(sink)],
                "streams": list(sink.streams),
                "results": query(f"SELECT count(*) AS n FROM result_{sink.no}")["n"][0].as_py(),
                "latest": named[sink.name] == sink.no,
            }
            for sink in catalog.sinks
            if not sink.is_step
        ],
        "counts": counts.to_pylist()[0],
        "replays": store.replays,
    }
