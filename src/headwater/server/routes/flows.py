"""Flows: deploy, change, undo, stop, remove; plans, statuses, histories, versions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from pydantic import Field

from headwater.compose import Composition, CompositionError, forms
from headwater.compose.checking import check as violations_of
from headwater.compose.difference import difference
from headwater.compose.evidence import last_events
from headwater.compose.frozen import thawed
from headwater.compose.layout import layout, layout_of
from headwater.compose.planning import deployable
from headwater.compose.violations import Violation
from headwater.errors import HeadwaterError, UnknownName
from headwater.runtimes.jobs import JobQueue
from headwater.server.answers import answer
from headwater.server.board import EVERY
from headwater.server.failures import Refused
from headwater.server.permitting import code_of, refusals, require_permitted
from headwater.server.routes.common import ERRORS, NAME, Body, FlowName
from headwater.server.sending import Event, EventStream, follow

if TYPE_CHECKING:
    from headwater.deploy.records import DeploymentFiles
    from headwater.server.service import Service

TEXT = 1 << 18
"""Characters of a flow file at most."""
NODES = 1_000
"""Nodes of a flow at most."""


class FlowText(Body):
    """A flow file, to be looked at."""

    text: Annotated[str, Field(max_length=TEXT, description="The flow file, YAML or JSON.")]


class Deploy(FlowText):
    """A flow file, to be deployed."""

    since: Annotated[
        Literal["now", "start", "left"],
        Field(description="Which events units that a change adds see."),
    ] = "now"


class Document(Body):
    """A flow as a document: its name and its nodes."""

    document: dict[str, Any]


def router(service: Service) -> APIRouter:
    """The routes of flows."""
    routes = APIRouter(prefix="/api/flows", tags=["flows"], responses=ERRORS)
    board, work = service.board, service.work

    @routes.get("")
    async def flows() -> Response:
        """All deployed flows, a line each."""
        return answer({"flows": await work.look(board.flows)})

    @routes.post("")
    async def deploy(body: Deploy) -> Response:
        """Deploy a flow, or change the one of its name while it runs."""
        return answer(await work.change(lambda: _deploy(service, body)))

    @routes.post("/check")
    async def check(body: FlowText) -> Response:
        """Everything that can be said of a flow file without running it."""
        return answer(await work.look(lambda: _check(service, body.text)))

    @routes.post("/write")
    async def write(request: Request, body: Document) -> Response:
        """The flow file of a document."""
        if len(await request.body()) > TEXT:
            raise Refused(413, f"a flow has {TEXT:,} characters at most", "TooLarge")
        return answer({"text": await work.look(lambda: _written(body.document))})

    @routes.get("/kinds")
    async def kinds() -> Response:
        """The kinds of nodes, with their keys."""
        return answer({"kinds": forms.kinds(), "examples": forms.examples()})

    @routes.get("/follow", response_class=EventStream)
    async def following(request: Request) -> Response:
        """All flows as they run, every second, as server-sent events named `status`."""
        return follow(service, request, _statuses(service))

    @routes.get("/{flow}")
    async def flow(flow: FlowName) -> Response:
        """A flow: its file, its plan and its versions."""
        return answer(await work.look(lambda: _flow(service, flow)))

    @routes.delete("/{flow}")
    async def remove(flow: FlowName) -> Response:
        """Stop a flow and forget it; its streams and its results stay."""

        def done() -> None:
            _files(service, flow)
            service.host.remove(flow)

        await work.change(done)
        return answer({"removed": flow})

    @routes.get("/{flow}/plan")
    async def plan(flow: FlowName) -> Response:
        """What the flow compiles to: labels, sub-flows, units, streams."""
        found = await work.look(lambda: _flow(service, flow))
        return answer({"plan": found["plan"], "layout": found["layout"]})

    @routes.get("/{flow}/status")
    async def status(flow: FlowName) -> Response:
        """The flow's units, nodes and streams as they were measured last."""
        _files(service, flow)
        told = await work.look(lambda: board.status(flow))
        if told is None:
            raise UnknownName(f"flow {flow!r} has not been measured yet; ask again in a second")
        return answer(told)

    @routes.get("/{flow}/history")
    async def history(flow: FlowName) -> Response:
        """Queue lengths over the last minutes, by the first node of each unit."""
        _files(service, flow)
        return answer(await work.look(lambda: board.history(flow)))

    @routes.get("/{flow}/versions/{version}")
    async def version(flow: FlowName, version: Annotated[int, Path(ge=1, le=1 << 31)]) -> Response:
        """A version of the flow: how it came, and its file."""
        files = _files(service, flow)
        if version not in files.versions():
            raise UnknownName(f"flow {flow!r} has no version {version}")
        change, text = files.change(version), files.composition(version).to_yaml()
        return answer({**_change(files, change.version), "text": text})

    for action in ("undo", "stop", "resume"):
        _add_action(routes, service, action)

    @routes.post("/{flow}/jobs/{node}/{action}")
    async def job(
        flow: FlowName,
        node: Annotated[str, Path(pattern=NAME)],
        action: Literal["pause", "resume"],
    ) -> Response:
        """Have a job start nothing more for now, or go on."""
        folder = _files(service, flow).folder / "jobs" / node
        if not (folder / "queue.db").exists():
            raise UnknownName(f"flow {flow!r} has no job {node!r}")

        def done() -> None:
            with JobQueue(folder) as queue:
                queue.pause() if action == "pause" else queue.resume()

        await work.change(done)
        return answer({"flow": flow, "node": node, "paused": action == "pause"})

    return routes


def _add_action(routes: APIRouter, service: Service, action: str) -> None:
    meanings = {
        "undo": "Go back to the version before.",
        "stop": "Stop the flow; `resume` goes on from there.",
        "resume": "Go on with a flow that was stopped.",
    }

    async def act(flow: FlowName) -> Response:
        return answer(await service.work.change(lambda: _acted(service, flow, action)))

    routes.add_api_route(
        f"/{{flow}}/{action}",
        act,
        methods=["POST"],
        name=action,
        description=meanings[action],
    )


def _acted(service: Service, flow: str, action: str) -> dict[str, Any]:
    _files(service, flow)
    deployment = service.host.deployment(flow)
    begun = time.perf_counter()
    before = deployment.files.change(deployment.version).units if deployment.version else []
    getattr(deployment, action)()
    if action != "undo":
        return {"flow": flow, "version": deployment.version, "wanted": deployment.wanted}
    return _done(deployment.files, before, time.perf_counter() - begun)


def _written(document: dict[str, Any]) -> str:
    _require_few(document)
    try:
        return forms.written(document)
    except (RecursionError, yaml.YAMLError) as error:
        raise CompositionError([Violation("shape", "this can't be a flow file")]) from error


def _require_few(document: dict[str, Any] | None) -> None:
    """Refuse what would keep a thread busy: what is looked at grows faster than nodes do."""
    nodes = None if document is None else document.get("nodes")
    if isinstance(nodes, dict | list) and len(nodes) > NODES:
        raise CompositionError([Violation("shape", f"a flow has {NODES:,} nodes at most")])


def _deploy(service: Service, body: Deploy) -> dict[str, Any]:
    _require_few(forms.document(body.text))
    composition = Composition.parse(body.text)
    require_permitted(composition, service.settings)
    deployable(composition)
    files = service.board.files(composition.name)
    version = files.state()["version"]
    before = files.change(version).units if version else []
    begun = time.perf_counter()
    service.host.deploy(composition, since=body.since)
    return _done(files, before, time.perf_counter() - begun)


def _done(files: DeploymentFiles, before: list[str], seconds: float) -> dict[str, Any]:
    change = files.change(files.state()["version"])
    return {
        "flow": files.folder.name,
        "version": change.version,
        "seconds": round(seconds, 3),
        "kept": [unit for unit in change.units if unit in before],
        "ended": [unit for unit in before if unit not in change.units],
        "started": [unit for unit in change.units if unit not in before],
        "difference": change.difference,
    }


def _check(service: Service, text: str) -> dict[str, Any]:
    told: dict[str, Any] = dict.fromkeys(
        ("flow", "plan", "layout", "document", "yaml", "difference", "last_events")
    )
    try:
        document = forms.document(text)
        _require_few(document)
        told["document"] = document
        composition = Composition.parse(text)
    except CompositionError as error:
        if told["document"] is not None:
            told |= {"flow": told["document"]["flow"], "layout": layout_of(told["document"])}
        return {**told, "violations": [v.as_json() for v in error.violations], "code": []}
    events = last_events(composition, service.streams.folder)
    found = list(violations_of(composition, events.get))
    refused = [composition.origin.of(each) for each in refusals(composition, service.settings)]
    try:
        plan = composition.plan()
        told |= {"plan": plan.as_json(), "layout": layout(plan)}
    except HeadwaterError:
        told["layout"] = layout_of(composition)
    files = service.board.files(composition.name)
    if files.exists and (version := files.state()["version"]):
        told["difference"] = difference(files.composition(version), composition).as_json()
    return {
        **told,
        "flow": composition.name,
        "yaml": composition.to_yaml(),
        "violations": [each.as_json() for each in (*found, *refused)],
        "code": code_of(composition),
        "last_events": events,
    }


def _files(service: Service, flow: str) -> DeploymentFiles:
    files = service.board.files(flow)
    if not files.exists:
        there = ", ".join(service.board.names()) or "none"
        raise UnknownName(f"no flow {flow!r} is deployed here; there is {there}")
    return files


def _flow(service: Service, flow: str) -> dict[str, Any]:
    files = _files(service, flow)
    state = files.state()
    version = state["version"] or state["target"]
    composition = files.composition(version)
    plan = composition.plan()
    return {
        "flow": flow,
        "version": state["version"],
        "wanted": state["wanted"],
        "text": composition.to_yaml(),
        "document": thawed(composition.to_dict()),
        "plan": plan.as_json(),
        "layout": layout(plan),
        "versions": [_change(files, number) for number in files.versions()[-200:]],
    }


def _change(files: DeploymentFiles, version: int) -> dict[str, Any]:
    change = files.change(version)
    return {
        "version": version,
        "at": change.at,
        "action": change.action,
        "difference": change.difference,
        "units": change.units,
        "current": version == files.state()["version"],
    }


async def _statuses(service: Service) -> AsyncIterator[Event | None]:
    """What the board says, whenever it says something new."""
    last: Any = None
    while True:
        told = await service.work.files(service.board.now)
        if told is not last:
            last = told
            yield Event("status", told)
        else:
            yield None
        await asyncio.sleep(EVERY)
