"""`python -m headwater.drawing prov stopped 6428296555958328890 alert.svg`: an answer as a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.store import open as open_store

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Draws what a result came from, or with --forward what a record reached."""
    parser = argparse.ArgumentParser(prog="python -m headwater.drawing", description=main.__doc__)
    parser.add_argument("store")
    parser.add_argument("name", metavar="SINK", help="the sink, or the source with --forward")
    parser.add_argument("id", metavar="ID", help="of the result, or of the record with --forward")
    parser.add_argument("file", type=Path, help="what is written: SVG, or HTML if it ends so")
    parser.add_argument("--forward", action="store_true")
    given = parser.parse_args(arguments)
    try:
        with open_store(given.store) as store:
            if given.forward:
                shown = store.show(source=given.name, id=given.id)
            else:
                shown = store.show(given.name, given.id)
    except HeadwaterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    text = shown.html() if given.file.suffix == ".html" else shown.svg()
    given.file.write_text(f"{text}\n", encoding="utf-8")
    print(shown.caption)
    return 0


if __name__ == "__main__":
    sys.exit(main())
