"""The picture of an answer in HTML, with tables of the rows' own columns; no scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.drawing.graph import svg
from headwater.drawing.text import brief, escaped, moment, number, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.drawing.shown import Item, Shown

_COLUMNS = 12
"""Columns of a table; what is left out is told."""
_LONG, _LONGEST = 48, 600
"""Characters of a value in its cell, and when it is pointed at."""
_STYLE = (
    ".hw-shown{font:13px system-ui,-apple-system,sans-serif;max-width:100%}"
    ".hw-shown figure{margin:0;overflow-x:auto}.hw-shown svg{max-width:none;height:auto}"
    ".hw-shown figcaption,.hw-shown p{margin:.35em 0;opacity:.85}"
    ".hw-shown .hw-rows{overflow-x:auto;margin:.35em 0}"
    ".hw-shown table{border-collapse:collapse;font-size:12px;margin:0}"
    ".hw-shown caption{text-align:left;font-weight:600;padding:.25em 0;opacity:.85}"
    ".hw-shown th,.hw-shown td{padding:2px 9px 2px 0;text-align:left;white-space:nowrap;"
    "border-bottom:1px solid rgba(128,128,128,.3);background:none;color:inherit}"
    ".hw-shown td.hw-number{text-align:right;font-variant-numeric:tabular-nums}"
    ".hw-shown td.hw-null{opacity:.55}"
)


def html(shown: Shown) -> str:
    """The picture with its caption, then a table for each source or sink."""
    out = [
        f'<div class="hw-shown"><style>{_STYLE}</style>',
        f"<figure>{svg(shown)}<figcaption>{escaped(shown.caption)}</figcaption></figure>",
    ]
    out += [f"<p>{escaped(note)}</p>" for note in shown.notes]
    fixed, many = shown.results, shown.records
    if shown.direction == "forward":
        fixed, many = shown.records, shown.results
    for items in (fixed, many):
        for name in dict.fromkeys(item.name for item in items):
            total = shown.total if items is many and len({i.name for i in items}) == 1 else None
            out += _table([item for item in items if item.name == name], total)
    return "\n".join([*out, "</div>"])


def _table(items: Sequence[Item], total: int | None) -> Iterator[str]:
    names = list(dict.fromkeys(name for item in items for name in item.values))
    shown = names[:_COLUMNS]
    first = items[0]
    what = f"{first.kind}{'' if len(items) == 1 else 's'} of {first.name}"
    count = number(len(items))
    if total is not None and total > len(items):
        count += f" of {number(total)}"
    left_out = ""
    if len(shown) < len(names):
        left_out = f"; {len(shown)} of {len(names)} columns"
    id_name = "id" if first.kind == "record" else "result_id"
    heads = "".join(f'<th scope="col">{escaped(brief(n, _LONG))}</th>' for n in shown)
    yield (
        f'<div class="hw-rows"><table><caption>{count} {escaped(what)}{left_out}</caption>'
        f'<thead><tr><th scope="col">{id_name}</th><th scope="col">event_time</th>{heads}</tr>'
        "</thead><tbody>"
    )
    for item in items:
        time = "" if item.time is None else moment(item.time)
        cells = "".join(_cell(item.values.get(name)) for name in shown)
        yield f"<tr><td>{escaped(item.id)}</td><td>{escaped(time)}</td>{cells}</tr>"
    yield "</tbody></table></div>"


def _cell(value: object) -> str:
    if value is None:
        return '<td class="hw-null">null</td>'
    text = said(value)
    kind = ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        kind = ' class="hw-number"'
    short = brief(text, _LONG)
    title = "" if short == text else f' title="{escaped(text[:_LONGEST])}"'
    return f"<td{kind}{title}>{escaped(short)}</td>"
