"""`headwater jobs`, `depends`, `paths`, and `--entity`: questions across foreign jobs."""

from __future__ import annotations

import json as encoder
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headwater.cli.output import Json, console, print_json, print_rich, print_table, rich_table
from headwater.cli.results import Store
from headwater.cli.spark import replaying
from headwater.cli.values import json_rows
from headwater.plain import plain

if TYPE_CHECKING:
    from headwater.query.jobs import Diagnosis

Entity = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="An entity of foreign jobs, or hw:<flow>/<source-or-sink>/<id>.",
        show_default=False,
    ),
]
Steps = Annotated[
    bool, typer.Option("--steps", help="With --entity: the entities between jobs as well.")
]

_FINDINGS = {
    "slow_nodes": "nodes more than twice as slow as the others, by the medians of a function",
    "never_generated": "entities used but never generated, though the function's others are",
    "never_used": "entities generated but never used, though the function's others are",
}


def ask_entity(
    store: Path, direction: Literal["backward", "forward"], entity: str, steps: bool, json: bool
) -> None:
    """Print what an entity depends on, or what depends on it."""
    import headwater as hw

    with hw.open(store) as opened, replaying(opened):
        table = getattr(opened, direction)(entity=entity, steps=steps)
    count = len(set(table["id"].to_pylist()))
    what = "entity" if count == 1 else "entities"
    print_table(table, json, note=f"{count:,} {what}")


def depends(
    store: Store,
    effect: Annotated[
        str, typer.Argument(metavar="ENTITY", help="An entity's name.", show_default=False)
    ],
    cause: Annotated[
        str,
        typer.Argument(metavar="ON", help="The entity it may depend on.", show_default=False),
    ],
    json: Json = False,
) -> None:
    """Tell whether one entity depends on another, across jobs and flows.

    Example: `headwater depends prov counts/part-3 tweets/part-0/line-17`
    """
    import headwater as hw

    with hw.open(store) as opened, replaying(opened):
        answer = opened.depends(effect, cause)
    if json:
        told = {"entity": effect, "on": cause, "depends": answer}
        print_json([encoder.dumps(told, ensure_ascii=False), "\n"])
    else:
        typer.echo("yes" if answer else "no")


def jobs(
    store: Store,
    diagnose: Annotated[
        str | None,
        typer.Option(metavar="JOB", help="Show what looks wrong in this job.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """List the foreign jobs that were reduced, and what was counted.

    With `--diagnose`, which also works while the job runs: slow nodes, entities used but never
    generated, or generated but never used.

    Example: `headwater jobs prov --diagnose hashtags`
    """
    import headwater as hw

    with hw.open(store) as opened:
        if diagnose is not None:
            _print_diagnosis(opened.diagnosis(diagnose), json)
            return
        table = opened.jobs()
    if json:
        counted = [
            {**row, "rejected": dict(row["rejected"]), "filtered": dict(row["filtered"])}
            for row in table.to_pylist()
        ]
        print_json([encoder.dumps(plain(counted), ensure_ascii=False, indent=1), "\n"])
        return
    shown = "job state strategy elements rejected filtered hot dependencies inputs outputs"
    note = f"{table.num_rows} job{'' if table.num_rows == 1 else 's'}"
    print_table(_counted(table.select(shown.split())), json, note=note)


def paths(
    store: Store,
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's name.", show_default=False)],
    through: Annotated[
        str | None,
        typer.Option(metavar="FUNCTION", help="A function to pass.", show_default=False),
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="NAME", help="The entity to start from.")
    ] = None,
    input: Annotated[str | None, typer.Option(metavar="NAME", help="The entity to end at.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Paths to list at most.")] = 100,
    json: Json = False,
) -> None:
    """List the paths from a job's outputs to its inputs, vertex by vertex.

    The job must be open still, or reduced with `--keep full`.

    Example: `headwater paths prov hashtags --through reduce --output counts/spark`
    """
    import headwater as hw

    with hw.open(store) as opened:
        table = opened.paths(job, through=through, output=output, input=input, limit=limit)
    count = len(set(table["path"].to_pylist()))
    cut = (table.schema.metadata or {}).get(b"note", b"").decode()
    if json and cut:
        print(f"headwater: {cut}", file=sys.stderr)
    print_table(table, json, note=cut or f"{count:,} path{'' if count == 1 else 's'}")


def _print_diagnosis(found: Diagnosis, json: bool) -> None:
    tables = {name: getattr(found, name) for name in _FINDINGS}
    if json:
        rows = {name: encoder.loads("".join(json_rows(table))) for name, table in tables.items()}
        told = {"job": found.job, "finished": found.finished, **rows}
        print_json([encoder.dumps(told, ensure_ascii=False, indent=1), "\n"])
        return
    out = console()
    for name, meaning in _FINDINGS.items():
        table = tables[name]
        out.print(f"{meaning}: {table.num_rows or 'none'}")
        if table.num_rows:
            print_rich(out, rich_table(_rounded(table)))
        out.print()


def _counted(table: Any) -> Any:
    """The table with the sums of what was counted by reason or type."""
    import pyarrow as pa

    for name in ("rejected", "filtered"):
        sums = [sum(count for _, count in pairs) for pairs in table[name].to_pylist()]
        at = table.column_names.index(name)
        table = table.set_column(at, name, pa.array(sums, pa.int64()))
    return table


def _rounded(table: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(at, field.name, pc.round(table.column(at), 3))
    return table
