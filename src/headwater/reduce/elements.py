"""Elements: what a line of a provenance stream may say, and what is wrong with one that may not.

This is the definition, one element at a time. `parsing` reads millions with columns and comes back
here for every line that is not plainly right, so the reasons in dead letters are written here only.

>>> check({"type": "used", "activity": "m1", "entity": "in-7", "node": "n3"}, job="count")
Edge(type='used', source='m1', destination='in-7', function=None, execution=None, node='n3', ...)
>>> reason({"type": "used", "activity": "m1"}, job="count")
'`entity` is missing'
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError
from headwater.reduce.blocks import NO_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping

EDGES: dict[str, tuple[str, str]] = {
    "used": ("activity", "entity"),
    "wasGeneratedBy": ("entity", "activity"),
    "wasDerivedFrom": ("generatedEntity", "usedEntity"),
    "hadMember": ("collection", "entity"),
}
"""The types of which dependencies are made, each with its source's field and its destination's."""

OTHERS = (
    "attribute",
    "entity",
    "activity",
    "agent",
    "wasInformedBy",
    "wasAssociatedWith",
    "wasAttributedTo",
    "actedOnBehalfOf",
    "wasStartedBy",
    "wasEndedBy",
    "wasInvalidatedBy",
    "specializationOf",
    "alternateOf",
    "wasInfluencedBy",
    "mentionOf",
)
"""Types that a stream may have but no dependency is made of: filtered out and counted."""

END = "end"
"""The type of the element after which a job has no more."""

GROUP = "group"
"""The field with the elements of one execution, and the type that such a line may give."""

DEFAULTS = ("function", "execution", "node", "time", "job")
"""Fields that a group may give for all its elements."""

LONGEST = 4096
"""Bytes of UTF-8 that a name may have."""

EARLIEST, LATEST = (
    (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    for moment in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
)
"""The times that can be told, in µs: from year 1 to year 9999."""


class Rejected(HeadwaterError):
    """An element that can't be taken; the text is the reason."""


class Twice(dict[str, Any]):
    """An object of JSON with a field twice: which of them counts can't be known."""

    __slots__ = ("field",)

    def __init__(self, told: Mapping[str, Any], field: str) -> None:
        super().__init__(told)
        self.field = field


@dataclass(frozen=True, slots=True)
class Edge:
    """An element of one of the types of `EDGES`."""

    type: str
    source: str
    destination: str
    function: str | None = None
    execution: str | None = None
    """As told by the element or its group."""
    node: str | None = None
    time: int = NO_TIME
    output: bool = False

    @property
    def activity(self) -> str | None:
        """The activity that is one of its vertices."""
        match self.type:
            case "used":
                return self.source
            case "wasGeneratedBy":
                return self.destination
            case _:
                return None

    @property
    def marked(self) -> str:
        """The entity that `output` is about: what was made or, of `used`, what was used."""
        return self.destination if self.type == "used" else self.source


@dataclass(frozen=True, slots=True)
class Other:
    """An element of one of the types of `OTHERS`."""

    type: str


@dataclass(frozen=True, slots=True)
class End:
    """The end of a job; None if it does not say of which, then it is of the job that is read."""

    job: str | None


Element = Edge | Other | End


def check(element: object, job: str | None, group: Mapping[str, Any] | None = None) -> Element:
    """The element, or `Rejected` with the reason; `group` are the fields of the group it is in.

    With `job` None an element of any job will do.
    """
    if not isinstance(element, dict):
        raise Rejected(f"an element is an object, not {_kind(element)}")
    _require_once(element)
    if GROUP in element and element[GROUP] is not None:
        inside = group is not None
        raise Rejected("a group can't be in a group" if inside else "a group is not one element")
    kind = element.get("type")
    if kind is None:
        raise Rejected("`type` is missing: an element has a type, a group has a list `group`")
    if not isinstance(kind, str):
        raise Rejected(f"`type` is {_kind(kind)}, not text")
    if kind not in EDGES and kind not in OTHERS and kind != END:
        raise Rejected(f"type {_cut(kind)!r} is unknown")
    told = _text(element, "job")
    require_job(told, job)
    if kind == END:
        if group is not None:
            raise Rejected("the end of a job can't be in a group")
        return End(told)
    if kind in OTHERS:
        return Other(kind)
    return _edge(kind, element, group or {})


def check_group(line: Mapping[str, Any], job: str | None) -> tuple[list[Any], dict[str, Any]]:
    """The elements of a group, still to be checked, and the fields that it gives for all."""
    _require_once(line)
    elements = line[GROUP]
    if not isinstance(elements, list):
        raise Rejected(f"`group` is {_kind(elements)}, not a list of elements")
    if line.get("type") not in (None, GROUP):
        raise Rejected("has a `type` and a `group`: it is an element or a group, not both")
    told = {name: _text(line, name) for name in DEFAULTS if name != "time"}
    require_job(told["job"], job)
    return elements, {**told, "time": micros(line.get("time"))}


def reason(element: object, job: str | None = None) -> str | None:
    """Why an element can't be taken, in words; None if it can."""
    try:
        check(element, job)
    except Rejected as error:
        return str(error)
    return None


def require_job(told: str | None, job: str | None) -> None:
    """Refuses what is told of another job."""
    if told is not None and job is not None and told != job:
        raise Rejected(f"it is of job {_cut(told)!r}, not of {job!r}")


def _require_once(told: Mapping[str, Any]) -> None:
    if isinstance(told, Twice):
        raise Rejected(f"`{told.field}` is given twice")


def schema() -> dict[str, Any]:
    """The published JSON schema of a line."""
    text = files("headwater.reduce").joinpath("schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _edge(type: str, element: Mapping[str, Any], group: Mapping[str, Any]) -> Edge:
    source, destination = (_id(element, field) for field in EDGES[type])
    if source == destination and type not in ("used", "wasGeneratedBy"):
        raise Rejected(f"a self-loop: {_cut(source)!r} can't depend on itself")
    told = {
        name: _text(element, name) or group.get(name) for name in ("function", "execution", "node")
    }
    time = micros(element.get("time"))
    output = element.get("output")
    if output is not None and not isinstance(output, bool):
        raise Rejected(f"`output` is {_kind(output)}, not true or false")
    if time == NO_TIME:
        time = group.get("time", NO_TIME)
    return Edge(type, source, destination, **told, time=time, output=bool(output))


def _id(element: Mapping[str, Any], field: str) -> str:
    """The name of a vertex."""
    value = element.get(field)
    if value is None:
        raise Rejected(f"`{field}` is missing")
    if value == "":
        raise Rejected(f"`{field}` is empty")
    text = _text(element, field)
    assert text is not None
    return text


def _text(element: Mapping[str, Any], field: str) -> str | None:
    """A field with a name; an empty one tells nothing."""
    value = element.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Rejected(f"`{field}` is {_kind(value)}, not text")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise Rejected(f"`{field}` is not valid Unicode: it has half a surrogate pair") from None
    if size > LONGEST:
        raise Rejected(f"`{field}` has {size:,} bytes: at most {LONGEST:,} are allowed")
    return value or None


def micros(value: object) -> int:
    """A time in µs: text of ISO 8601, in UTC unless it says otherwise, or milliseconds."""
    if value is None:
        return NO_TIME
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Rejected(f"`time` is {_kind(value)}, not text or a number")
    found = moment(value) if isinstance(value, str) else _from_milliseconds(value)
    if found is None or not EARLIEST <= found <= LATEST:
        raise Rejected(
            f"`time` {_cut(str(value))!r} is neither a time of ISO 8601 nor milliseconds since 1970"
        )
    return found


def moment(text: str) -> int | None:
    """The µs of a time of ISO 8601, if it is one.

    >>> moment("1970-01-01T00:00:01.5Z"), moment("1970-01-01T01:00:00+01:00"), moment("noon")
    (1500000, 0, None)
    """
    try:
        at = datetime.fromisoformat(text)
        zoned = at if at.tzinfo else at.replace(tzinfo=UTC)
        return (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def _from_milliseconds(value: float) -> int | None:
    """Whole milliseconds apart from the rest, so that none of them is rounded."""
    if not abs(value) <= LATEST // 1000 + 1:
        return None
    whole = int(value)
    return whole * 1000 + round((value - whole) * 1000)


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"


def _cut(text: str) -> str:
    """Short enough for a reason."""
    return text if len(text) <= 80 else f"{text[:77]}..."
