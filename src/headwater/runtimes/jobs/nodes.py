"""Jobs of a flow file's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.compose.frozen import thawed
from headwater.errors import FlowError
from headwater.runtimes.jobs.job import Job, Step
from headwater.sustain.units import seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.compose import Composition


def job_of(
    flow: Composition,
    name: str,
    *,
    version: str = "1",
    static: Mapping[str, Any] | None = None,
    folder: str | None = None,
) -> Job:
    """The job that a node of kind job is; `static` are the values of its static inputs."""
    node: Any = flow[name]
    if node.kind != "job":
        raise FlowError(f"node {name!r} of flow {flow.name!r} is a {node.kind}, not a job")
    per = None if isinstance(node.per, str) else node.per
    steps = tuple(
        Step(each, **{**dict(keys), "after": tuple(dict(keys).get("after", ()))})
        for each, keys in (getattr(node, "steps", None) or {}).items()
    )
    return Job(
        flow.name,
        name,
        version,
        run=node.run,
        call=node.call,
        spark=node.spark,
        steps=steps,
        slots=node.slots,
        retries=node.retries,
        backoff=seconds(node.backoff),
        timeout=None if node.timeout is None else seconds(node.timeout),
        schema=node.schema,
        count=None if per is None else per.count,
        every=None if per is None or per.time is None else seconds(per.time),
        static={**thawed(node.static), **(static or {})},
        folder=folder,
    )
