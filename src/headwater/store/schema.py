"""The relations of a store, and the version of their format.

| relation | one row per | columns |
|---|---|---|
| `meta` | fact about the store | `key`, `value`: `format`, `store_id`, `created_at`, `compacted`, `runs` (merged and loose ones of `results_by_id`) |
| `flows` | streaming query of a flow | `flow`, `capture`, `query_id`, `checkpoint`, `fingerprint`, `definition` (JSON), `program` (to replay), `finished` |
| `sources` | source of a flow | `source_no`, `flow`, `name`, `definition` (JSON), `arrow` (its columns) |
| `sinks` | sink of a flow | `sink_no`, `flow`, `name`, `definition` (JSON), `arrow` (its columns) |
| `files` | file of a source with positional ids | `source_no`, `file_key`, `path`; id = `file_key << 32 \\| row_index` |
| `arrivals` | file that a batch read | `source_no`, `seq`, `path`, `modified` (ms) |
| `spans` | (result, source), captured as intervals | `seq`, `sink_no`, `result_id`, `source_no`, `low`, `high`: positions |
| `batches` | committed batch | `seq` (its place in the store), `query_id`, `batch`, `watermark`, `results`, `edges`, `records`, `committed_at` |
| `result_<sink_no>` | result | `__hw_id`, `__hw_time`, `__hw_seq`, `__hw_base` (the id it would have had, if it came before), own columns |
| `record_<source_no>` | kept record | `__hw_id`, `__hw_time`, `__hw_seq`, `__hw_content` (hash), own columns |
| `vertices` | record in a live graph | `seq` (of the batch that delivered it), `source_no`, `id`, `event_time` |
| `labels` | record that can reach no more | `seq`, `source_no`, `id` |
| `marks` | mark on records of a source | `mark_no`, `source_no`, `reason`, `predicate` (or null), `seq` (records of later batches are marked by the predicate), `marked_at` |
| `marked` | marked record | `mark_no`, `id`: those that were there when the mark was made, and later ones that were erased |
| `erased` | record whose contents were erased | `source_no`, `id`, `reason`, `erased_at`, `seq` (the last batch before) |
| `edges` | (result, record) | `seq`, `sink_no`, `result_id`, `source_no`, `source_id`: in order of arrival, each batch by result |
| `edges_by_record` | the same, once compacted | `source_no`, `source_id`, `sink_no`, `result_id`, `seq`: sorted runs by record |
| `results_by_id` | result with edges (of a lake, every result), once compacted | `sink_no`, `result_id`, `seq`: sorted runs by result |
| `jobs` | foreign job | `job_no`, `job`, `input`, `settings` (JSON), `query_id`, `state`, `functions` (JSON: names by bit), counts, `diagnosis` (JSON, once finished), `begun_at`, `finished_at` |
| `job_batches` | committed batch of a job | `job_no`, `query_id`, `batch`, `watermark`, `elements`, `hot`, `residue`, `dependencies`, `committed_at` |
| `entities` | input or output of a job | `id` (hash of the name), `name`: sorted runs by id |
| `dependencies` | (job, output, input) | `job_no`, `output`, `input`, `functions` (bits): sorted runs by output |
| `dependencies_by_input` | the same | `input`, `output`, `job_no`, `functions`: sorted runs by input |
| `fresh_entities`, `fresh_dependencies` | the same, not sorted yet | as above |

Tables of a single job, while it is open or if all of it is kept, are in `store/jobs/tables.py`.

Ids of results are hashes, in no order with their batches: `results_by_id` says in which batch to
look. An edge of `seq <= meta.compacted` is in `edges_by_record` as well; a later one is only in the tail
of `edges`. So *runs up to n, tail after n* is exact for every n up to `compacted`, also when a
compaction happens between reading n and reading the edges.
"""  # noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.store.batch import BASE, CONTENT, ID, SEQ, TIME

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FORMAT = 5
DATABASE = "headwater.duckdb"
SERVING = "serving.json"

RELATIONS = """
CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);
CREATE TABLE flows (
    flow VARCHAR NOT NULL, capture VARCHAR NOT NULL, query_id VARCHAR PRIMARY KEY,
    checkpoint VARCHAR, fingerprint VARCHAR, definition VARCHAR NOT NULL, program BLOB,
    finished BOOLEAN NOT NULL);
CREATE TABLE sources (
    source_no SMALLINT PRIMARY KEY, flow VARCHAR NOT NULL, name VARCHAR NOT NULL,
    definition VARCHAR NOT NULL, arrow BLOB NOT NULL, UNIQUE (flow, name));
CREATE TABLE sinks (
    sink_no SMALLINT PRIMARY KEY, flow VARCHAR NOT NULL, name VARCHAR NOT NULL,
    definition VARCHAR NOT NULL, arrow BLOB NOT NULL, UNIQUE (flow, name));
CREATE TABLE files (
    source_no SMALLINT, file_key BIGINT, path VARCHAR NOT NULL, PRIMARY KEY (source_no, file_key));
CREATE TABLE arrivals (
    source_no SMALLINT NOT NULL, seq BIGINT NOT NULL, path VARCHAR NOT NULL,
    modified BIGINT NOT NULL);
CREATE TABLE spans (
    seq BIGINT, sink_no SMALLINT, result_id BIGINT, source_no SMALLINT, low BIGINT, high BIGINT);
CREATE TABLE batches (
    seq BIGINT NOT NULL, query_id VARCHAR, batch BIGINT, watermark TIMESTAMPTZ,
    results BIGINT NOT NULL, edges BIGINT NOT NULL, records BIGINT NOT NULL,
    committed_at TIMESTAMPTZ NOT NULL, PRIMARY KEY (query_id, batch));
CREATE TABLE vertices (
    seq BIGINT NOT NULL, source_no SMALLINT NOT NULL, id BIGINT NOT NULL, event_time TIMESTAMPTZ);
CREATE TABLE labels (seq BIGINT NOT NULL, source_no SMALLINT NOT NULL, id BIGINT NOT NULL);
CREATE SEQUENCE mark_numbers;
CREATE TABLE marks (
    mark_no INTEGER PRIMARY KEY, source_no SMALLINT NOT NULL, reason VARCHAR NOT NULL,
    predicate VARCHAR, seq BIGINT NOT NULL, marked_at TIMESTAMPTZ NOT NULL);
CREATE TABLE marked (mark_no INTEGER NOT NULL, id BIGINT NOT NULL);
CREATE TABLE erased (
    source_no SMALLINT, id BIGINT, reason VARCHAR NOT NULL, erased_at TIMESTAMPTZ NOT NULL,
    seq BIGINT NOT NULL, PRIMARY KEY (source_no, id));
CREATE TABLE edges (
    seq BIGINT, sink_no SMALLINT, result_id BIGINT, source_no SMALLINT, source_id BIGINT);
CREATE TABLE edges_by_record (
    source_no SMALLINT, source_id BIGINT, sink_no SMALLINT, result_id BIGINT, seq BIGINT);
CREATE TABLE results_by_id (sink_no SMALLINT, result_id BIGINT, seq BIGINT);
CREATE TABLE jobs (
    job_no INTEGER PRIMARY KEY, job VARCHAR NOT NULL UNIQUE, input VARCHAR NOT NULL,
    settings VARCHAR NOT NULL, query_id VARCHAR NOT NULL, state VARCHAR NOT NULL,
    functions VARCHAR NOT NULL, elements BIGINT NOT NULL, bytes BIGINT NOT NULL,
    rejected VARCHAR NOT NULL, filtered VARCHAR NOT NULL, hot BIGINT NOT NULL,
    residue BIGINT NOT NULL, dependencies BIGINT NOT NULL, inputs BIGINT, outputs BIGINT,
    diagnosis VARCHAR, begun_at TIMESTAMPTZ NOT NULL, finished_at TIMESTAMPTZ);
CREATE TABLE job_batches (
    job_no INTEGER NOT NULL, query_id VARCHAR, batch BIGINT, watermark TIMESTAMPTZ,
    elements BIGINT NOT NULL, hot BIGINT NOT NULL, residue BIGINT NOT NULL,
    dependencies BIGINT NOT NULL, committed_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (query_id, batch));
CREATE TABLE entities (id BIGINT NOT NULL, name VARCHAR NOT NULL);
CREATE TABLE fresh_entities (id BIGINT NOT NULL, name VARCHAR NOT NULL);
CREATE TABLE dependencies (
    job_no INTEGER NOT NULL, output BIGINT NOT NULL, input BIGINT NOT NULL, functions BIGINT);
CREATE TABLE dependencies_by_input (
    input BIGINT NOT NULL, output BIGINT NOT NULL, job_no INTEGER NOT NULL, functions BIGINT);
CREATE TABLE fresh_dependencies (
    job_no INTEGER NOT NULL, output BIGINT NOT NULL, input BIGINT NOT NULL, functions BIGINT);
INSERT INTO meta VALUES
    ('store_id', uuid()::VARCHAR), ('created_at', now()::VARCHAR), ('compacted', '0');
"""


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the relations of an empty store, all or none."""
    connection.execute("BEGIN")
    connection.execute(RELATIONS)
    connection.execute("INSERT INTO meta VALUES ('format', ?)", [str(FORMAT)])
    connection.execute("COMMIT")


def quoted(name: str) -> str:
    """A name as an SQL identifier.

    >>> quoted('a "b"')
    '"a ""b\"""'
    """
    return '"' + name.replace('"', '""') + '"'


def create_results(connection: duckdb.DuckDBPyConnection, sink_no: int, columns: pa.Schema) -> None:
    """Make the table of a sink's results."""
    _create(connection, f"result_{sink_no}", (ID, TIME, SEQ, BASE), columns)


def create_records(
    connection: duckdb.DuckDBPyConnection, source_no: int, columns: pa.Schema
) -> None:
    """Make the table of a source's kept records."""
    _create(connection, f"record_{source_no}", (ID, TIME, SEQ, CONTENT), columns)


def _create(
    connection: duckdb.DuckDBPyConnection, table: str, fixed: tuple[str, ...], columns: pa.Schema
) -> None:
    # DuckDB itself derives the native types from Arrow's, so that inserts need no conversion.
    connection.register("hw_columns", columns.empty_table())
    own = [quoted(name) for name in columns.names]
    head = [f"NULL::{'TIMESTAMPTZ' if name == TIME else 'BIGINT'} AS {name}" for name in fixed]
    connection.execute(
        f"CREATE TABLE {table} AS SELECT {', '.join(head + own)} FROM hw_columns LIMIT 0"
    )
    connection.unregister("hw_columns")
