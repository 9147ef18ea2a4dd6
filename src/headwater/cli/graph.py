"""`headwater graph`: the live graph of records and results; `headwater watch`: standing queries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, print_json, print_table
from headwater.cli.results import Store
from headwater.cli.values import parse_time

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.query.follow import GraphChange
    from headwater.query.graph import Graph

SHOWN = 20


def graph(
    store: Store,
    flow: Annotated[str | None, typer.Option(help="The flow, where several keep a graph.")] = None,
    at: Annotated[
        str | None,
        typer.Option(help="The graph as it stood at this watermark (ISO 8601, UTC)."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Print changes as batches are committed.")
    ] = False,
    after: Annotated[
        int, typer.Option(min=0, help="With --follow: go on after this position.")
    ] = 0,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, help="With --follow: end when nothing came for so many seconds."),
    ] = None,
    to_kafka: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="With --follow: publish the changes, to a broker of Kafka."
        ),
    ] = None,
    topic: Annotated[str | None, typer.Option(help="With --to-kafka: the topic.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="With --to-kafka: a file of more properties of the client."),
    ] = None,
    dot: Annotated[bool, typer.Option("--dot", help="Print it for Graphviz.")] = False,
    json: Json = False,
) -> None:
    """Show the live graph: records, results, the edges between them, and who can reach no more.

    With `--follow --json` each batch is one line; its `position` is where `--after` goes on. With
    `--to-kafka` a line says that the batch is in the topic; the next call goes on after it.

    Examples: `headwater graph prov --dot | dot -Tsvg > graph.svg`,
    `headwater graph prov --follow --json`,
    `headwater graph prov --follow --to-kafka localhost:9092 --topic graph`
    """
    if follow and (dot or at is not None):
        raise typer.BadParameter("--follow prints changes: it goes with neither --dot nor --at")
    if dot and json:
        raise typer.BadParameter("choose one of --dot and --json")
    if (to_kafka is None) != (topic is None):
        raise typer.BadParameter("--to-kafka and --topic go together")
    if (to_kafka is not None and not follow) or (config is not None and to_kafka is None):
        raise typer.BadParameter("publish with --follow --to-kafka HOST:PORT --topic TOPIC")
    moment = parse_time(at)

    import headwater as hw

    with hw.open(store) as opened:
        if follow:
            try:
                given: dict[str, Any] = {"after": after, "flow": flow, "timeout": timeout}
                if topic is None:
                    changes = opened.follow(**given)
                else:
                    properties = None if config is None else str(config)
                    changes = opened.publish_graph(
                        topic, bootstrap=to_kafka, config=properties, **given
                    )
                for change in changes:
                    _print_change(change, json)
            except KeyboardInterrupt:
                raise typer.Exit from None
            return
        found = opened.graph(at=moment, flow=flow)
    if dot:
        sys.stdout.writelines(dot_lines(found))
    elif json:
        print_json([encoded(_tables(found)), "\n"])
    else:
        for name, table in _tables(found).items():
            more = table.num_rows - SHOWN
            note = f"{table.num_rows:,} {name}" + (f", {SHOWN} shown" if more > 0 else "")
            print_table(table.slice(0, SHOWN), False, note=note)


def watch(
    store: Store,
    sink: Annotated[
        str, typer.Argument(metavar="SINK", help="The sink's name.", show_default=False)
    ],
    where: Annotated[
        str | None, typer.Option(help="SQL condition on the results' columns.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(help="Hand each match to this webhook (http…) or stream (a folder)."),
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(min=0, help="Begin after this position.", show_default="what comes from now"),
    ] = None,
    marked: Annotated[
        bool, typer.Option("--marked", help="Only results that hold a marked record.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="End when nothing came for so many seconds.")
    ] = None,
) -> None:
    """Print each new result that a condition selects, with its source records, as JSON lines.

    Example: `headwater watch prov accidents --where "n > 2" --to https://alerts.example/hook`
    """
    import headwater as hw

    with hw.open(store) as opened:
        try:
            found = opened.watch(
                sink, where=where, to=to, after=after, marked=marked, timeout=timeout
            )
            for match in found:
                print(match.to_json(), flush=True)
        except KeyboardInterrupt:
            raise typer.Exit from None


def _tables(found: Graph) -> dict[str, pa.Table]:
    return {"vertices": found.vertices, "edges": found.edges, "labels": found.labels}


def encoded(values: dict[str, Any]) -> str:
    """Tables and values as JSON."""
    from headwater.service.posting import as_json

    return as_json({k: v.to_pylist() if hasattr(v, "to_pylist") else v for k, v in values.items()})


def _print_change(change: GraphChange, json: bool) -> None:
    tables = {"vertices": change.vertices, "edges": change.edges, "labels": change.labels}
    head = {
        "position": change.position,
        "flow": change.flow,
        "batch": change.batch,
        "watermark": change.watermark,
    }
    if json:
        print(encoded({**head, **tables}), flush=True)
        return
    counts = ", ".join(f"{table.num_rows:,} {name}" for name, table in tables.items())
    at = change.watermark.isoformat() if change.watermark else "no watermark yet"
    print(f"{change.position}  {change.flow} batch {change.batch} ({at}): {counts}", flush=True)


def dot_lines(found: Graph) -> list[str]:
    """The graph in Graphviz's language; what can reach no more is drawn grey."""
    past = {(row["kind"], row["name"], row["id"]) for row in found.labels.to_pylist()}
    lines = ["digraph headwater {\n", "  rankdir=LR;\n", '  node [fontname="sans-serif"];\n']
    for row in found.vertices.to_pylist():
        key = row["kind"], row["name"], row["id"]
        shape = "ellipse" if row["kind"] == "source" else "box"
        fill = ', style=filled, fillcolor="#dddddd"' if key in past else ""
        lines.append(f'  {_node(*key)} [label="{row["name"]} {row["id"]}", shape={shape}{fill}];\n')
    for row in found.edges.to_pylist():
        record = _node("source", row["source"], row["source_id"])
        lines.append(f"  {record} -> {_node('result', row['sink'], row['result_id'])};\n")
    return [*lines, "}\n"]


def _node(kind: str, name: str, id: int) -> str:
    return f'"{kind}/{name}/{id}"'
