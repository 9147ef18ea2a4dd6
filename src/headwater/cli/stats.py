"""`headwater stats`: what a store takes on disk."""

from __future__ import annotations

import json as encoder
from typing import TYPE_CHECKING, Any

from headwater.cli.output import Json, console, print_json, print_rich, rich_table
from headwater.cli.results import Store
from headwater.plain import plain

if TYPE_CHECKING:
    from headwater.query.stats import Stats


def stats(store: Store, json: Json = False) -> None:
    """Show what results and edges take on disk, and how they are encoded.

    Bytes are given per result, per provenance set and per edge; `ratio` is what an edge takes, in
    both directions, compared with one id of 8 bytes.

    Example: `headwater stats prov --json`
    """
    import headwater as hw
    from headwater.store.lake.place import is_lake

    with hw.open(store) as opened:
        found = opened.stats()
    if json:
        print_json([encoder.dumps(_report(found), ensure_ascii=False, indent=1), "\n"])
        return
    out = console()
    for table in (found.sinks, found.relations):
        print_rich(out, rich_table(_shown(table)))
        out.print()
    for note in notes(found, lake=is_lake(store)):
        out.print(note, style="dim", soft_wrap=True)


def notes(found: Stats, *, lake: bool = False) -> list[str]:
    """What one must know to read the figures."""
    if lake:
        return [f"the files of the tables have {_size(found.bytes_file)}"]
    size = f"the file has {_size(found.bytes_file)}"
    free = f", {_size(found.bytes_free)} of it free to be used again" if found.bytes_free else ""
    said = [f"{size}{free}; it has whole blocks, so more than the sum of the relations"]
    if sum(1 for edges in found.sinks["edges"].to_pylist() if edges) > 1:
        said.append("the sinks' edges lie together: their bytes are shared out by number of edges")
    rows = found.relations.to_pylist()
    if waiting := sum(row["rows"] - row["rows_in_file"] for row in rows):
        said.append(
            f"{waiting:,} row{'' if waiting == 1 else 's'} still in memory and DuckDB's log; "
            "bytes and encodings are those of the rows in the file"
        )
    return said


def _report(found: Stats) -> dict[str, Any]:
    file = {"bytes_file": found.bytes_file, "bytes_free": found.bytes_free}
    relations = [
        {**row, "encodings": dict(row["encodings"])} for row in found.relations.to_pylist()
    ]
    return {**file, "sinks": plain(found.sinks.to_pylist()), "relations": plain(relations)}


def _shown(table: Any) -> Any:
    """The table as people read it: two decimals, encodings as text, no empty relations."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "encodings" in table.column_names:
        table = table.filter(pc.greater(table["rows"], 0))
        texts = [
            ", ".join(f"{column} {'/'.join(chosen)}" for column, chosen in row)
            for row in table["encodings"].to_pylist()
        ]
        table = table.set_column(
            table.column_names.index("encodings"), "encodings", pa.array(texts, pa.string())
        )
    for at, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(at, field.name, pc.round(table.column(at), 2))
    return table


def _size(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"
