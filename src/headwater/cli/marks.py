"""`headwater mark`, `marks`, `marked`, `unmark` and `erase`: private records and their results."""

from __future__ import annotations

import json as encoder
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, console, print_json, print_table
from headwater.cli.results import Store
from headwater.cli.spark import replaying
from headwater.cli.values import json_rows, parse_id
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 20

Source = Annotated[
    str, typer.Argument(metavar="SOURCE", help="The source's name.", show_default=False)
]
Where = Annotated[
    str | None,
    typer.Option(help="SQL condition on the source's columns.", show_default=False),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        metavar="ID",
        help="A record's id, as in the source's id column; may be repeated.",
        show_default=False,
    ),
]
Reason = Annotated[str, typer.Option(help="Why; it is kept in the store.", show_default=False)]


def mark(
    store: Store,
    source: Source,
    where: Where = None,
    id: Ids = None,
    reason: Reason = "",
    json: Json = False,
) -> None:
    """Mark records, and so every result that holds one, now and as they come.

    Where the store keeps the source's records, later ones that match are marked as well.

    Example: `headwater mark prov orders --where "country = 'CH'" --reason "asked on May 2"`
    """
    given = _ids(where=where, id=id)

    import headwater as hw

    with hw.open(store) as opened, replaying(opened):
        report = opened.mark(source, where=where, ids=given, reason=reason)
    head = {"mark": report.number, "source": report.source, "records": report.records}
    said = f"mark {report.number} on {source}: {_counted(report.records, 'record')}"
    _print(head, report.results, said, json)


def marks(store: Store, json: Json = False) -> None:
    """List the marks: what they hold, and why.

    Example: `headwater marks prov`
    """
    import headwater as hw

    with hw.open(store) as opened:
        table = opened.marks()
    print_table(table, json, note=_counted(table.num_rows, "mark"))


def marked(
    store: Store,
    sink: Annotated[
        str | None, typer.Argument(metavar="SINK", help="Only results of this sink.")
    ] = None,
    json: Json = False,
) -> None:
    """List the results that hold a marked record, with the mark and its reason.

    Example: `headwater marked prov invoices --json`
    """
    import headwater as hw

    with hw.open(store) as opened, replaying(opened):
        table = opened.marked(sink)
    count = len(set(zip(table["sink"].to_pylist(), table["result_id"].to_pylist(), strict=True)))
    print_table(table, json, note=_counted(count, "result"))


def unmark(
    store: Store,
    number: Annotated[
        int, typer.Argument(metavar="MARK", help="The mark's number.", show_default=False)
    ],
    json: Json = False,
) -> None:
    """Take a mark away; the records and results themselves stay as they are.

    Example: `headwater unmark prov 3`
    """
    import headwater as hw

    with hw.open(store) as opened:
        opened.unmark(number)
    if json:
        print_json([encoder.dumps({"unmarked": number}), "\n"])
    else:
        console().print(f"mark {number} was taken away")


def erase(
    store: Store,
    source: Source,
    where: Where = None,
    id: Ids = None,
    mark: Annotated[
        int | None, typer.Option(help="The records of this mark.", show_default=False)
    ] = None,
    reason: Reason = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Remove the contents of records from the store, for good; ids and edges stay.

    It asks first, unless `--yes` is given. Results keep their values; those that hold such a record
    are listed. The source's own files are not touched.

    Example: `headwater erase prov orders --where "customer = 1207" --reason "asked on May 2"`
    """
    given = _ids(where=where, id=id, mark=mark)

    import headwater as hw

    with hw.open(store) as opened, replaying(opened):
        asked: dict[str, Any] = {"where": where, "ids": given, "mark": mark, "reason": reason}
        if not yes:
            if not _is_terminal():
                raise HeadwaterError("erasing can't be undone: say --yes where nobody can be asked")
            plan = opened.erase(source, **asked, dry_run=True)
            contents = _counted(plan.records, "record")
            typer.confirm(
                f"Erase {contents} of source {source} from the store, for good? "
                f"(Results that hold one, and stay: {plan.results.num_rows:,})",
                abort=True,
                err=True,
            )
        report = opened.erase(source, **asked)
    head = {"source": report.source, "records": report.records, "copies": report.copies}
    copies = _counted(report.copies, "copy", "copies")
    said = f"erased {_counted(report.records, 'record')} of {source}, {copies} removed"
    _print(head, report.results, said, json)


def _ids(**given: Any) -> list[Any] | None:
    """The ids as they were meant, once it is clear that one way to say which was used."""
    if sum(bool(value) or value == 0 for value in given.values()) != 1:
        ways = ", ".join(f"--{name}" for name in given)
        raise typer.BadParameter(f"say which records, with one of {ways}")
    return [parse_id(text) for text in given["id"]] if given["id"] else None


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _print(head: dict[str, Any], results: pa.Table, said: str, json: bool) -> None:
    if json:
        rows = encoder.loads("".join(json_rows(results)))
        print_json([encoder.dumps({**head, "results": rows}, ensure_ascii=False), "\n"])
        return
    console().print(said)
    count = results.num_rows
    note = _counted(count, "result")
    if count > SHOWN:
        note += f", the first {SHOWN} shown; --json has all"
    print_table(results.slice(0, SHOWN), json, note=note)


def _counted(count: int, one: str, many: str | None = None) -> str:
    """A number and what it counts.

    >>> _counted(1, "record"), _counted(1200, "record")
    ('1 record', '1,200 records')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
