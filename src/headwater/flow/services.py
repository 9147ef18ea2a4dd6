"""`frame.service(…)`: its parameters, checked at once, and its two frames."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pyspark.sql import Column
from pyspark.sql import functions as F

from headwater.columns import quoted
from headwater.errors import FlowError
from headwater.flow import expressions as ex
from headwater.flow import nodes
from headwater.flow.frame import Frame
from headwater.flow.functions import made_schema
from headwater.flow.nodes.functions import ANSWER, ATTEMPTS, REASON
from headwater.service.posting import as_json

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from headwater.flow.flow import Flow

Request = Sequence[str] | Mapping[str, Column | str]
Target = str | Callable[..., Any]


class Answered(Frame):
    """The rows that a service answered, each with its answer; `failures` are the others."""

    __slots__ = ("_called", "_dead")

    def __init__(self, flow: Flow, node: nodes.Node, called: Frame, dead: Frame | None) -> None:
        super().__init__(flow, node)
        self._called = called
        self._dead = dead

    @property
    def failures(self) -> Frame:
        """The rows that have no answer: their own columns, the `reason` and the `attempts`."""
        if self._dead is None:
            own, said = _own(self._called), _service(self._called).column
            if taken := sorted({REASON, ATTEMPTS} & {c.casefold() for c in own}):
                raise FlowError(
                    f"service: failures have a column {taken[0]!r}, and so has step "
                    f"{self._called.step!r}; rename its own before the service"
                )
            dead = self._called.filter(_part(said, REASON).isNotNull())
            self._dead = dead.select(
                *map(quoted, own), *(_part(said, n).alias(n) for n in (REASON, ATTEMPTS))
            )
        return self._dead

    def named(self, step: str) -> Answered:
        """The same rows under a step name of the user's choice."""
        return Answered(self._flow, super().named(step)._node, self._called, self._dead)


def service(
    frame: Frame,
    target: Target,
    *,
    request: Request | None,
    response: StructType | str,
    static: Mapping[str, Any] | None,
    **policy: Any,
) -> Answered:
    """The rows of a frame that a service answered."""
    _require_target(target)
    answer = made_schema(frame, response, "service")
    _require_new(frame, answer.fieldNames())
    sent = _request(frame, request)
    fixed = dict(static or {})
    _require_static(target, fixed, [name for name, _ in sent])
    _require_policy(**policy)
    called = frame._add(
        nodes.Service,
        target=target,
        request=sent,
        response=answer,
        column=_unused(frame.columns),
        static=tuple(fixed.items()),
        **policy,
    )
    said = _service(called).column
    good = called.filter(_part(said, REASON).isNull()).select(
        *map(quoted, frame.columns),
        *(_part(said, ANSWER, name).alias(name) for name in answer.fieldNames()),
    )
    return Answered(frame.flow, good._node, called, None)


def _service(called: Frame) -> nodes.Service:
    node = called._node
    assert isinstance(node, nodes.Service)
    return node


def _own(called: Frame) -> list[str]:
    return [c for c in called.columns if c != _service(called).column]


def _part(*names: str) -> Column:
    return F.col(".".join(f"`{name.replace('`', '``')}`" for name in names))


def _unused(columns: Sequence[str]) -> str:
    """A name for the column that says what came of a call."""
    folded = {c.casefold() for c in columns}
    name, number = "service", 1
    while name in folded:
        number += 1
        name = f"service_{number}"
    return name


def _require_target(target: Target) -> None:
    if isinstance(target, str):
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise FlowError(f"service: {target!r} is no URL with http or https")
        if parts.username is not None or parts.password is not None:
            raise FlowError(
                "service: a URL with a user's name or password is refused; "
                "give a function that sends them"
            )
    elif not callable(target):
        raise FlowError(
            f"service takes a URL or a function of an event, not {type(target).__name__}"
        )


def _require_new(frame: Frame, names: Sequence[str]) -> None:
    there = {c.casefold() for c in frame.columns}
    if len(there) < len(frame.columns):
        raise FlowError(f"service: two columns of step {frame.step!r} have one name; rename one")
    for name in names:
        if name.casefold() in there:
            raise FlowError(
                f"service: {name!r} is in the response and a column of step {frame.step!r}; "
                "rename one"
            )


def _request(frame: Frame, request: Request | None) -> tuple[tuple[str, ex.Expr], ...]:
    if isinstance(request, str):
        raise FlowError(f"service: request takes a list of column names: [{request!r}]")
    if request is None:
        request = frame.columns
    if isinstance(request, Mapping):
        given = {n: ex.either(value, what="service") for n, value in request.items()}
    else:
        for name in request:
            if name not in frame.columns:
                raise FlowError(
                    f"service: request names {name!r}, which step {frame.step!r} lacks; "
                    f"it has {', '.join(frame.columns)}"
                )
        given = {name: ex.column(quoted(name), what="service") for name in request}
    if not given:
        raise FlowError("service: the request has no columns")
    return tuple((name, frame._resolved(expr, "service")) for name, expr in given.items())


def _require_static(target: Target, static: dict[str, Any], sent: Sequence[str]) -> None:
    if isinstance(target, str):
        if clash := sorted(set(static) & set(sent)):
            raise FlowError(f"service: {clash} are both in the request and static")
        try:
            as_json(static)
        except (TypeError, ValueError) as error:
            raise FlowError(f"service: static can't be written as JSON: {error}") from error
        return
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return
    try:
        signature.bind({}, **static)
    except TypeError as error:
        raise FlowError(
            f"service: {nodes.name_of(target)} can't be called as fn(event, **static): {error}"
        ) from error


def _require_policy(concurrency: Any, retries: Any, timeout: Any, backoff: Any) -> None:
    for name, value, least in (("concurrency", concurrency, 1), ("retries", retries, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise FlowError(f"service: {name}={value!r} must be a whole number from {least} on")
    for name, seconds, zero in (("timeout", timeout, False), ("backoff", backoff, True)):
        fits = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not fits or not (0 <= seconds < float("inf")) or (seconds == 0 and not zero):
            raise FlowError(f"service: {name}={seconds!r} must be a number of seconds")
