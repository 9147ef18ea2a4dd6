"""`headwater copy`: a store into another, from a file to a lake or back."""

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.output import Json, console, print_json
from headwater.cli.progress import counted
from headwater.cli.results import Store


def copy(
    store: Store,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="A place without a store: a folder, or delta:…")
    ],
    json: Json = False,
) -> None:
    """Copy a store: from a file to a lake, or back.

    The copy answers as the original does, and flows can go on with it and their checkpoints; go on
    with one of the two only. No flow may run meanwhile.

    Example: `headwater copy prov delta:/lake/prov`
    """
    from headwater.store.copying import copy as copied

    with counted("copying", "reading") as tell:
        edges = copied(store, target, tell)
    if json:
        print_json([encoder.dumps({"edges": edges}), "\n"])
        return
    told = f"{edges:,} edges and all that belongs to them are in {target}"
    console().print(told, highlight=False)
