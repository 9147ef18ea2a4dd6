"""The provenance of an execution, in the lines that `headwater.prov.emit` publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.runtimes.jobs.events import Execution, entity, output_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.runtimes.jobs.job import Job, Step

_MOST = 5_000
"""Elements in a line, as the emitter has it."""


def groups(
    job: Job, execution: Execution, made: Mapping[str, tuple[int, int]], at: float
) -> list[dict[str, Any]]:
    """What each step used and made, a line for each of them.

    `made` says of each step in which generation it ran, and how many events it made. A step that a
    smart rerun did not run again is told as the execution that it was.
    """
    lines = []
    for step in job.steps:
        name = _activity(job, execution, step, made[step.name][0])
        used = [_input(job, each.id, each.entity) for each in execution.events]
        for before in step.after:
            used += _outputs(job, execution, job.step(before), *made[before])
        generated = _outputs(job, execution, step, *made[step.name])
        when = {"time": int(at * 1000)}
        elements = [{"type": "used", "activity": name, "entity": each, **when} for each in used]
        elements += [
            {"type": "wasGeneratedBy", "entity": each, "activity": name, **when}
            for each in generated
        ]
        function = job.node if len(job.steps) == 1 else f"{job.node}.{step.name}"
        told = {"execution": name, "function": function, "job": job.flow}
        lines += [
            {"group": elements[start : start + _MOST], **told}
            for start in range(0, len(elements), _MOST)
        ]
    return lines


def _activity(job: Job, execution: Execution, step: Step, generation: int) -> str:
    name = execution.key if not generation else f"{execution.key}.r{generation}"
    return f"{job.flow}/{name}" if len(job.steps) == 1 else f"{job.flow}/{name}/{step.name}"


def _input(job: Job, id: str | int, name: str | None) -> str:
    return entity(job.flow, f"{job.node}.events", id) if name is None else name


def _outputs(
    job: Job, execution: Execution, step: Step, generation: int, number: int
) -> Iterable[str]:
    last = step is job.steps[-1]
    place = job.node if last else f"{job.node}.{step.name}"
    # The last step's are the execution's own; it runs in every generation.
    name = execution.key if not generation else f"{execution.key}.r{generation}"
    named = (job.flow, place, job.version, name)
    return [entity(job.flow, place, output_id(*named, n)) for n in range(number)]
