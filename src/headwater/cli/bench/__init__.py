"""`headwater bench`: what provenance costs on this machine. A module for each benchmark."""

from __future__ import annotations

import typer

from headwater.cli.bench import (
    answers,
    capture,
    everything,
    flow,
    live,
    reduce,
    scale,
    serve,
    storage,
)

app = typer.Typer(
    no_args_is_help=True,
    help="Measure what provenance costs on this machine.",
    add_completion=False,
)
app.command()(capture.capture)
app.command()(capture.operators)
app.command()(live.live)
app.command()(reduce.reduce)
app.command()(storage.storage)
app.command()(answers.replay)
app.command()(answers.queries)
app.command()(flow.flow)
app.command()(serve.serve)
app.command()(scale.scale)
app.command("all")(everything.everything)
