"""`headwater flow`: flow files checked, planned, converted; the schema that editors use."""

from __future__ import annotations

import json as encoder
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.deploy import deploy, pause, rerun, resume, run, set_, stop, undo, versions
from headwater.cli.output import Json, console, print_json, print_table
from headwater.cli.streams import Folder
from headwater.cli.sustain import sustain
from headwater.cli.watch import watch

if TYPE_CHECKING:
    from headwater.compose import Composition, Violation
    from headwater.compose.types.inference import Judged

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Check, plan, deploy, change and watch flows.",
)

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A flow file: YAML, JSON, or Python (run).", show_default=False
    ),
]


class Form(StrEnum):
    """What a flow file can be written as."""

    yaml = "yaml"
    python = "python"
    json = "json"


@app.command()
def check(
    file: File,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Only what is wrong, not each column's verdict.")
    ] = False,
    streams: Folder = None,
    json: Json = False,
) -> None:
    """Check a flow file: every rule it breaks, and whether the columns it names are valid.

    The last events of the streams that it reads are evidence, where there are any.

    Exit code 1 when a rule is broken.

    Example: `headwater flow check weather.yaml --streams streams`
    """
    from headwater.compose.checking import examined
    from headwater.compose.evidence import last_events

    if streams is not None and not streams.is_dir():
        raise typer.BadParameter(f"{streams} is no folder", param_hint="--streams")
    with _refused(json):
        flow = _read(file)
        events = last_events(flow, streams)
        violations, judged = examined(flow, events.get)
    if json:
        told = {
            "flow": flow.name,
            "nodes": len(flow),
            "violations": [each.as_json() for each in violations],
            "columns": [each.as_json() for each in judged],
            "last_events": {name: encoder.loads(event) for name, event in events.items()},
        }
        print_json([encoder.dumps(told, ensure_ascii=False, indent=1), "\n"])
    else:
        _print_violations(violations)
        if judged and not quiet:
            _print_judged(judged)
            _print_events(events)
        if not violations:
            typer.echo(f"flow {flow.name}: {len(flow)} nodes, no rule broken")
    if violations:
        raise typer.Exit(1)


@app.command()
def plan(
    file: File,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print a Mermaid picture instead of a table.")
    ] = False,
    json: Json = False,
) -> None:
    """Print what a flow compiles to: labels, cardinalities, sub-flows, runtimes, streams.

    Exit code 1 when a rule is broken or a join is missing.

    Example: `headwater flow plan weather.yaml --mermaid`
    """
    if mermaid and json:
        raise typer.BadParameter("give either --mermaid or --json")
    with _refused(json):
        made = _read(file).plan()
    if json:
        print_json([encoder.dumps(made.as_json(), ensure_ascii=False, indent=1), "\n"])
    else:
        typer.echo(made.to_mermaid() if mermaid else made.to_text())
    if not made.deployable:
        raise typer.Exit(1)


@app.command()
def convert(
    file: File,
    to: Annotated[Form, typer.Option("--to", help="What to write.", show_default=False)],
    json: Annotated[
        bool, typer.Option("--json", help="Print the text inside a JSON object.")
    ] = False,
) -> None:
    """Print a flow file as YAML, Python or JSON; each can be read again.

    Example: `headwater flow convert weather.yaml --to python`
    """
    with _refused(json):
        flow = _read(file)
    text = {Form.yaml: flow.to_yaml, Form.python: flow.to_python, Form.json: flow.to_json}[to]()
    if json:
        text = encoder.dumps({"to": to.value, "text": text}, ensure_ascii=False) + "\n"
    print_json([text])


@app.command()
def schema(
    json: Annotated[
        bool, typer.Option("--json", help="Print it as JSON, which it is anyway.")
    ] = False,
) -> None:
    """Print the JSON schema of flow files, for editors.

    Example: `headwater flow schema > flow.schema.json`
    """
    from headwater.compose.schema import FILE

    print_json([FILE.read_text(encoding="utf-8")])


app.command()(sustain)
for command in (deploy, run, undo, set_, stop, resume, pause, rerun, versions):
    app.command(command.__name__.rstrip("_"))(command)
app.command()(watch)


def _read(file: Path) -> Composition:
    from headwater.compose import Composition

    return Composition.read(file)


@contextmanager
def _refused(json: bool) -> Iterator[None]:
    """Prints what is wrong with a file, a line each, and ends with exit code 1."""
    from headwater.compose import CompositionError

    try:
        yield
    except CompositionError as error:
        if json:
            told = {"violations": [each.as_json() for each in error.violations]}
            print_json([encoder.dumps(told, ensure_ascii=False, indent=1), "\n"])
        else:
            _print_violations(error.violations)
        raise typer.Exit(1) from error


def _print_violations(violations: tuple[Violation, ...]) -> None:
    for each in violations:
        print(" ".join(str(each).split()), file=sys.stderr)


def _print_judged(judged: tuple[Judged, ...]) -> None:
    import pyarrow as pa

    rows = [each.as_json() for each in judged]
    shown = ("node", "key", "name", "verdict", "rule", "reason")
    table = pa.table({name: [row[name] for row in rows] for name in shown})
    counts = {v: sum(each.verdict == v for each in judged) for v in ("valid", "invalid", "unknown")}
    print_table(table, False, note=", ".join(f"{n} {verdict}" for verdict, n in counts.items()))


def _print_events(events: dict[str, str]) -> None:
    from headwater.compose.types.examples import brief

    for name, event in events.items():
        line = f"last event of {name}: {brief(event)}"
        console().print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
