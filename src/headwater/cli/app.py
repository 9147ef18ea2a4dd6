"""The `headwater` command: its subcommands, and what an error looks like."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from headwater import __version__
from headwater.cli import (
    backward,
    bench,
    compact,
    copy,
    demo,
    doctor,
    export,
    flow,
    forward,
    graph,
    mapreduce,
    marks,
    publish,
    reduce,
    replay,
    results,
    run,
    serve,
    stats,
    streams,
    why_not,
    workflow,
)
from headwater.errors import HeadwaterError


class Commands(TyperGroup):
    """Prints Headwater's own errors as one line, and takes `--debug` wherever it stands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Moves `--debug` to the front, where it belongs."""
        if "--debug" in args:
            args = ["--debug", *(arg for arg in args if arg != "--debug")]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Runs the subcommand; exit code 1 and one line on stderr when Headwater objects."""
        try:
            return super().invoke(ctx)
        except HeadwaterError as error:
            if ctx.params.get("debug"):
                raise
            print(f"headwater: {' '.join(str(error).split())}", file=sys.stderr)
            raise typer.Exit(1) from error


app = typer.Typer(
    name="headwater",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headwater {__version__}")
        raise typer.Exit


@app.callback()
def headwater(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_version),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show an error's traceback.")] = False,
) -> None:
    """Exact record-level provenance for PySpark Structured Streaming.

    Start with `headwater demo`.
    """


app.command()(demo.demo)
app.command()(run.run)
app.command()(results.results)
app.command(context_settings={"ignore_unknown_options": True})(backward.backward)
app.command(context_settings={"ignore_unknown_options": True})(forward.forward)
app.command(context_settings={"ignore_unknown_options": True})(replay.replay)
app.command("why-not", context_settings={"ignore_unknown_options": True})(why_not.why_not)
app.command()(graph.graph)
app.command()(graph.watch)
app.command(context_settings={"ignore_unknown_options": True})(export.export)
app.command()(reduce.reduce)
app.command()(workflow.jobs)
app.command()(workflow.depends)
app.command()(workflow.paths)
app.command()(marks.mark)
app.command()(marks.marks)
app.command()(marks.marked)
app.command()(marks.unmark)
app.command()(marks.erase)
app.command()(mapreduce.mapreduce)
app.command()(publish.publish)
app.command()(serve.serve)
app.command()(stats.stats)
app.command()(compact.compact)
app.command()(copy.copy)
app.command()(doctor.doctor)
app.add_typer(flow.app, name="flow")
app.add_typer(streams.app, name="streams")
app.add_typer(bench.app, name="bench")


def main() -> None:
    """The entry point of the `headwater` command."""
    app(prog_name="headwater")
