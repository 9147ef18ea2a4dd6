"""The page in a browser, as people use it, against a service that works.

All of it is one file: its tests share the service, which takes half a minute to start.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.server.page.conftest import Visits
from tests.server.page.doing import (
    GRAPH,
    SPARK,
    VIEWS,
    bright,
    coloured,
    condition,
    full,
    go,
    node,
    rows,
    said,
    tab_to,
    uncovered,
    vertices,
)
from tests.server.page.running import Running, moment, served, until

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def alert(service: Running) -> dict[str, Any]:
    """An alert that has been there for long."""
    return service.alerts(order="oldest", limit=10)[5]


def to_result(page: Page, alert: dict[str, Any]) -> None:
    page.goto(f"/trace?sink=stopped&result={alert['result_id']}")


# --- all views ----------------------------------------------------------------------------------


def test_a_visitor_goes_through_all_views(page: Page) -> None:
    expect(page.get_by_role("status").filter(has_text="Connected")).to_be_visible()
    for view in VIEWS:
        go(page, view)
        expect(full(page, view)).to_be_visible()
        expect(page.get_by_role("link", name=view, exact=True)).to_have_attribute(
            "aria-current", "page"
        )
    page.go_back()
    expect(page).to_have_title("Compose · Headwater")


def test_a_phone_scrolls_no_view_sideways(visit: Visits) -> None:
    page = visit("/", viewport={"width": 390, "height": 844}, has_touch=True)
    for view in VIEWS:
        go(page, view)
        expect(full(page, view)).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{view} is {wide} px wider than the screen"


def test_the_page_is_dark_where_the_system_is(visit: Visits) -> None:
    page = visit("/", color_scheme="dark")
    for view in VIEWS:
        go(page, view)
        expect(full(page, view)).to_be_visible()
        until(lambda: bright(page) < 200)
    page.get_by_role("button", name="Theme: as the system").click()
    page.get_by_role("button", name="Theme: light").wait_for()
    until(lambda: bright(page) > 600)
    page.reload()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()


def test_times_are_in_the_viewers_zone(visit: Visits, alert: dict[str, Any]) -> None:
    page = visit("/trace", timezone_id="Asia/Tokyo")
    expect(page.get_by_text("Times are in your zone, Asia/Tokyo.")).to_be_visible()
    to_result(page, alert)
    there = moment(alert["event_time"]) + timedelta(hours=9)
    shown = page.locator(f'time[datetime="{alert["event_time"]}"]').first
    expect(shown).to_have_text(there.strftime("Jan 1, 2025, %H:%M:%S.999999"))


# --- Overview -----------------------------------------------------------------------------------


def test_overview_shows_rates_and_last_results_as_they_change(page: Page) -> None:
    card = page.get_by_role("region", name="Flow traffic")
    expect(card.locator(".badge").first).to_have_text("running")
    rated = re.compile(r"^standing, filter; .*[\d.]+/s → [\d.]+/s; queue \d")
    expect(node(card, "standing")).to_have_attribute("aria-label", rated, timeout=SPARK)
    expect(card.locator(".fg-edge-rate").first).to_have_text(re.compile(r"[\d.]+/s"))
    clock = card.locator(".clock strong")
    before = clock.text_content() or ""
    newest = rows(card, "Last results of stopped of traffic").first
    first = newest.get_by_role("link").text_content() or ""
    expect(clock).not_to_have_text(before, timeout=SPARK)
    expect(newest.get_by_role("link")).not_to_have_text(first, timeout=SPARK)
    node(card, "standing").click()
    expect(card.get_by_role("heading", name="standing")).to_be_visible()
    expect(card.get_by_text("events in")).to_be_visible()


def test_the_whole_flow_is_in_sight_when_overview_opens(page: Page) -> None:
    card = page.get_by_role("region", name="Flow traffic")
    last = node(card, "accidents")
    expect(last).to_be_in_viewport(ratio=1)
    until(lambda: uncovered(last))


# --- Trace --------------------------------------------------------------------------------------


def test_find_an_alert_by_vehicle_and_time_and_see_its_four_records(
    page: Page, service: Running, alert: dict[str, Any]
) -> None:
    go(page, "Trace")
    page.get_by_role("combobox", name="Results of").select_option("stopped")
    at = moment(alert["event_time"])
    page.get_by_label("From").fill((at - timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%S"))
    page.get_by_label("Before").fill((at + timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%S"))
    condition(page, "vid", alert["vid"])
    page.get_by_role("button", name="Search").click()
    found = rows(page, "Results of stopped")
    expect(found).to_have_count(1)
    expect(found).to_contain_text(str(alert["result_id"]))
    found.get_by_role("link").click()

    expect(page.get_by_role("heading", level=1)).to_have_text(f"stopped {alert['result_id']}")
    told = service.get("/backward", sink="stopped", result_id=alert["result_id"])["rows"]
    ids = [row["id"] for row in told]
    assert len(ids) == 4
    expect(rows(page, "Records of reports")).to_have_count(4)
    for one in ids:
        expect(rows(page, "Records of reports").filter(has_text=one)).to_have_count(1)
        expect(page.get_by_role("link", name=f"record reports {one}")).to_be_visible()
    expect(page.get_by_text("4 records").first).to_be_visible()


def test_export_an_alert_with_its_records(page: Page, alert: dict[str, Any]) -> None:
    to_result(page, alert)
    for words, name in (("PROV-JSON", "provenance.json"), ("GraphML", "provenance.graphml")):
        page.get_by_text("Export", exact=True).click()
        with page.expect_download() as saving:
            page.get_by_role("link", name=words, exact=True).click()
        assert saving.value.suggested_filename == name
        assert str(alert["result_id"]) in Path(saving.value.path()).read_text()
        page.get_by_role("heading", level=1).click()


def test_what_no_result_matches_and_what_is_no_sql_is_told(page: Page, visit: Visits) -> None:
    visit.expected.append("422")
    go(page, "Trace")
    condition(page, "vid", -5)
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("heading", name="No result matches")).to_be_visible()
    page.get_by_role("link", name="All results of stopped").click()
    page.get_by_label("SQL condition").fill("no_such_column = 1")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("alert").filter(has_text="no_such_column")).to_be_visible()


def test_go_on_from_a_record_to_all_its_results(
    page: Page, service: Running, alert: dict[str, Any]
) -> None:
    to_result(page, alert)
    last = rows(page, "Records of reports").last
    record = last.get_by_role("link").first.text_content() or ""
    last.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"reports {record}")
    told = service.get("/forward", source="traffic.standing.v1/reports", id=record)["rows"]
    reached = [row["result_id"] for row in told if row["sink"] == "stopped"]
    assert alert["result_id"] in reached
    expect(rows(page, "Results in stopped")).to_have_count(len(reached))
    for one in reached:
        expect(page.get_by_role("link", name=f"result stopped {one}")).to_be_visible()
    expect(rows(page, "Results in stopped").first).to_contain_text("final")


def test_compute_an_alert_again_step_by_step(
    page: Page, service: Running, alert: dict[str, Any]
) -> None:
    to_result(page, alert)
    with service.still():
        page.get_by_role("button", name="Compute it again, step by step").click()
        expect(page.get_by_text("Computing it again…")).to_be_visible()
        matches = "Computed again from its 4 records alone: it matches what was delivered."
        expect(page.get_by_text(matches)).to_be_visible(timeout=SPARK)
    steps = page.locator("details.layer")
    expect(steps).not_to_have_count(0)
    page.get_by_role("button", name="Collapse all").click()
    expect(page.locator("details.layer[open]")).to_have_count(0)
    page.get_by_role("button", name="Expand all").click()
    expect(page.locator("details.layer[open]")).to_have_count(steps.count())
    source = steps.filter(has=page.locator(".badge", has_text=re.compile("^source$")))
    expect(source.locator("tbody tr")).to_have_count(4)
    source.locator("summary").click()
    expect(source.get_by_role("table")).to_be_hidden()
    page.get_by_role("button", name=re.compile("^source reports: 4 rows")).click()
    expect(source.get_by_role("table")).to_be_visible()


def test_why_a_driving_car_is_in_no_alert(page: Page, service: Running) -> None:
    events = service.get("/streams/reports/events", after=100, limit=100)["rows"]
    driving = next(row for row in events if row["speed"] > 0)
    go(page, "Trace")
    page.get_by_label("Id, or an entity's name").fill(str(driving["tid"]))
    page.get_by_role("button", name="See its results").click()
    expect(page.get_by_role("heading", name="It is in no result")).to_be_visible()
    expect(page.get_by_text("speed")).to_be_visible()
    end = page.get_by_role("listitem").filter(has_text="A filter removed it")
    with service.still():
        page.get_by_role("button", name="Why is it in no result?").click()
        expect(end.first).to_be_visible(timeout=SPARK)
    expect(end.first).to_contain_text("speed = 0")
    expect(page.get_by_text("this is final").first).to_be_visible()


def test_a_copied_link_opens_the_same_view(visit: Visits, alert: dict[str, Any]) -> None:
    page = visit("/trace", permissions=["clipboard-read", "clipboard-write"])
    condition(page, "vid", alert["vid"])
    page.get_by_role("button", name="Search").click()
    expect(rows(page, "Results of stopped").first).to_contain_text(str(alert["vid"]))
    page.get_by_role("button", name="Copy link").click()
    said(page, "Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    other = visit(copied.removeprefix(visit.address), known=False)
    expect(other.get_by_label("Column")).to_have_value("vid")
    expect(other.get_by_label("Value")).to_have_value(str(alert["vid"]))
    expect(rows(other, "Results of stopped").first).to_contain_text(str(alert["vid"]))
    rows(page, "Results of stopped").last.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^stopped -?\d+$"))
    page.get_by_role("button", name="Copy link").click()
    said(page, "Copied")
    heading = page.get_by_role("heading", level=1).text_content() or ""
    other.goto(page.evaluate("navigator.clipboard.readText()"))
    expect(other.get_by_role("heading", level=1)).to_have_text(heading)


# --- Live ---------------------------------------------------------------------------------------


def shown(page: Page) -> Locator:
    return page.get_by_text(re.compile(r"[\d,]+ of [\d,]+ vertices shown"))


def test_the_live_graph_grows_until_it_is_paused(visit: Visits) -> None:
    page = visit(GRAPH)
    expect(page.get_by_text("Following")).to_be_visible()
    before = shown(page).text_content() or ""
    expect(shown(page)).not_to_have_text(before, timeout=SPARK)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused")).to_be_visible()
    held = shown(page).text_content() or ""
    waiting = page.get_by_role("button", name=re.compile(r"Resume · \d+ batch"))
    expect(waiting).to_be_visible(timeout=SPARK)
    expect(shown(page)).to_have_text(held)
    waiting.click()
    expect(shown(page)).not_to_have_text(held)
    expect(page.get_by_text("Following")).to_be_visible()


def test_a_record_is_alive_and_later_expired(visit: Visits, service: Running) -> None:
    with service.still():
        record = service.stand()["tid"]
        page = visit(f"/trace?source=reports&id={record}")
        expect(page.get_by_text("may still grow").first).to_be_visible()
        page.goto(GRAPH)
        page.get_by_label("Find an id").fill(str(record))
        page.get_by_role("button", name="Find").click()
        details = page.get_by_role("complementary", name="Selected")
        expect(details.get_by_text("alive: it may still reach results", exact=True)).to_be_visible()
        expect(details.locator(".mark.source").first).not_to_have_class(re.compile("expired"))
    over = details.get_by_text("expired: it can reach no more results", exact=True)
    expect(over).to_be_visible(timeout=SPARK)
    expect(details.locator(".mark.source").first).to_have_class(re.compile("expired"))
    details.get_by_role("link", name="Trace it to its results").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"reports {record}")
    expect(rows(page, "Results in stopped")).to_contain_text("final")


def test_a_mark_colours_a_record_and_its_results(visit: Visits, service: Running) -> None:
    page = visit(GRAPH)
    expect(shown(page)).to_be_visible()
    until(lambda: coloured(page, "--result") > 0)
    assert coloured(page, "--marked") == 0
    with service.still():
        record = service.stand()["tid"]
    page.goto(f"/trace?source=reports&id={record}")
    page.get_by_role("button", name="Mark it…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("its sensor was repaired")
    dialog.get_by_role("button", name="Mark it").click()
    said(page, "Marked")
    expect(page.get_by_text("◆ marked: its sensor was repaired")).to_be_visible()
    rows(page, "Results in stopped").get_by_role("link").click()
    expect(page.get_by_text("◆ holds a marked record")).to_be_visible()
    page.goto(GRAPH)
    page.get_by_label("Marked only").check()
    marked = page.locator(".counters div").filter(has_text="Marked").locator("dd")
    expect(marked).to_have_text("2")
    page.get_by_label("Find an id").fill(str(record))
    page.get_by_role("button", name="Find").click()
    details = page.get_by_role("complementary", name="Selected")
    expect(details.get_by_text("◆ marked record")).to_be_visible()
    expect(details.locator(".neighbours .mark.result.marked")).to_have_count(1)
    until(lambda: coloured(page, "--marked") > 0)


def test_scrub_to_an_earlier_watermark_and_back(visit: Visits) -> None:
    page = visit(GRAPH)
    expect(shown(page)).to_be_visible()
    now = vertices(page)
    slider = page.get_by_role("slider", name="Watermark")
    slider.focus()
    slider.press("Home")
    expect(page.get_by_text("As of watermark").first).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_be_disabled()
    until(lambda: vertices(page) < now)
    expect(page).to_have_url(re.compile("at="))
    page.get_by_role("button", name="Now", exact=True).click()
    expect(page.get_by_text("Following")).to_be_visible()
    until(lambda: vertices(page) >= now)


# --- Streams ------------------------------------------------------------------------------------


def test_publish_reports_of_a_standing_car_and_see_its_alert(
    visit: Visits, service: Running
) -> None:
    page = visit("/streams")
    entry = rows(page, "Streams").filter(has=page.get_by_role("link", name="reports", exact=True))
    expect(entry).to_contain_text("live")
    expect(entry).to_contain_text("1 consumer")
    entry.get_by_role("link", name="reports").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("reports")
    with service.still():
        reports = service.standing()
        vid = reports[0]["vid"]
        page.get_by_label("Events for reports, as JSON").fill("\n".join(map(json.dumps, reports)))
        expect(page.get_by_text("5 events of the right columns")).to_be_visible()
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(page.get_by_text(re.compile(r"Published 5 events at position \d+"))).to_be_visible()
        expect(rows(page, "Last events").filter(has_text=str(vid)).first).to_be_visible()
        page.goto(f"/trace?sink=stopped&c=vid:%3D:{vid}")
        service.wait("/results", lambda told: told["rows"], sink="stopped", where=f"vid = {vid}")
        page.reload()
        expect(rows(page, "Results of stopped")).to_have_count(1)
        page.goto("/streams?stream=stopped")
        expect(rows(page, "Last events").filter(has_text=str(vid))).to_have_count(1)


def test_wrong_events_are_told_before_they_are_sent(visit: Visits) -> None:
    page = visit("/streams?stream=reports")
    box = page.get_by_label("Events for reports, as JSON")
    publish = page.get_by_role("button", name="Publish", exact=True)
    expect(publish).to_be_enabled()
    for wrong, told in (
        ('{"tid": 1,', "JSON"),
        ('{"tid": "many"}', "tid"),
        ('{"tid": 1, "colour": "red"}', "colour"),
        ("[1, 2]", "an event is an object"),
    ):
        box.fill(wrong)
        expect(page.get_by_role("alert").filter(has_text=told).first).to_be_visible()
        expect(publish).to_be_disabled()
    box.fill('{"tid": 1}')
    expect(page.get_by_text("will be null")).to_be_visible()


def test_register_a_query_and_listen_to_it(visit: Visits) -> None:
    visit.expected.append("404")
    page = visit("/streams")
    page.get_by_role("button", name="Register a query").first.click()
    page.get_by_label("Name").fill("fast_cars")
    page.get_by_label("SQL").fill("SELECT tid, vid, speed FROM nowhere")
    page.get_by_role("button", name="Register", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="nowhere").first).to_be_visible(timeout=SPARK)
    page.get_by_label("SQL").fill("SELECT tid, vid, speed FROM reports WHERE speed > 70")
    page.get_by_role("button", name="Register", exact=True).click()
    said(page, "fast_cars is registered", SPARK)
    entry = rows(page, "Registered queries").filter(has_text="fast_cars")
    entry.get_by_role("button", name="Listen").click()
    expect(rows(page, "Results of fast_cars").first).to_be_visible(timeout=SPARK)
    expect(page).to_have_url(re.compile("query=fast_cars"))
    entry.get_by_role("button", name="Unregister").click()
    page.get_by_role("dialog").get_by_role("button", name="Unregister").click()
    said(page, "fast_cars is unregistered", SPARK)
    expect(page.get_by_role("heading", name="No query is registered")).to_be_visible()
    expect(rows(page, "Streams").filter(has_text="fast_cars")).to_have_count(1)


# --- Compose ------------------------------------------------------------------------------------


def test_compose_a_flow_deploy_it_change_it_and_undo(visit: Visits) -> None:
    page = visit("/compose")
    page.get_by_role("button", name=re.compile("^reports")).click()
    expect(node(page, "reports")).to_be_visible()
    page.get_by_role("button", name=re.compile("^filter")).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("fast")
    dialog.get_by_label("where").fill("speed > 60")
    dialog.get_by_role("button", name="Add").click()
    expect(node(page, "fast")).to_be_visible()
    page.get_by_role("button", name=re.compile("^sink")).click()
    dialog.get_by_label("Name").fill("out")
    dialog.get_by_label("stream").fill("speeders")
    dialog.get_by_role("button", name="Add").click()
    expect(node(page, "out")).to_be_visible()
    page.get_by_label("Name of the flow").fill("speeding")
    expect(page.get_by_text("not deployed", exact=True)).to_be_visible()

    page.get_by_role("button", name="Deploy").click()
    expect(dialog.get_by_text("speeding is new: 1 unit will be started.")).to_be_visible()
    dialog.get_by_role("button", name="Deploy").click()
    expect(page.get_by_text("speeding runs as version 1")).to_be_visible(timeout=SPARK)
    rated = re.compile(r"^fast, filter; .*[1-9][\d.]*/s → [\d.]+/s")
    expect(node(page, "fast")).to_have_attribute("aria-label", rated, timeout=SPARK)
    edge = page.locator(".fg-edge-rate").last
    expect(edge).to_have_text(re.compile(r"[\d.]+/s"), timeout=SPARK)

    node(page, "fast").click()
    page.get_by_label("where").fill("speed > 80")
    expect(page.get_by_text("1 change to version 1")).to_be_visible()
    page.get_by_role("button", name="Deploy").click()
    expect(dialog.get_by_text("speed > 60")).to_be_visible()
    expect(dialog.get_by_text("speed > 80")).to_be_visible()
    dialog.get_by_role("button", name="Change it").click()
    expect(page.get_by_text("speeding runs as version 2")).to_be_visible(timeout=SPARK)
    page.get_by_role("button", name="Undo change").click()
    dialog.get_by_role("button", name="Undo change").click()
    expect(page.get_by_text("speeding runs as version 3")).to_be_visible(timeout=SPARK)
    page.get_by_role("tab", name="YAML").click()
    expect(page.get_by_label("The flow file, YAML")).to_have_value(re.compile("speed > 60"))
    page.get_by_role("button", name="Versions").click()
    expect(dialog.get_by_role("option")).to_have_count(3)
    dialog.get_by_role("button", name="Close").click()

    go(page, "Overview")
    card = page.get_by_role("region", name="Flow speeding")
    card.get_by_role("button", name="Stop", exact=True).click()
    dialog.get_by_role("button", name="Stop").click()
    said(page, "speeding is stopped", SPARK)
    expect(card.get_by_role("button", name="Resume")).to_be_visible()


def test_edits_are_undone_and_problems_told(visit: Visits) -> None:
    page = visit("/compose")
    page.get_by_role("button", name="Show an example").click()
    expect(page.locator(".fg-node")).to_have_count(3)
    node(page, "chosen").click()
    page.get_by_label("where").fill("no_such_column > 1")
    expect(page.get_by_text("1 problem").first).to_be_visible()
    expect(page.get_by_role("region", name="What is wrong")).to_contain_text("no_such_column")
    page.get_by_role("button", name="Undo the last edit (Ctrl+Z)").click()
    expect(page.get_by_role("region", name="What is wrong")).to_be_hidden()
    node(page, "chosen").click()
    page.keyboard.press("Delete")
    expect(page.locator(".fg-node")).to_have_count(2)
    page.keyboard.press("Control+z")
    expect(page.locator(".fg-node")).to_have_count(3)


def test_what_is_begun_before_all_is_known_stays(visit: Visits) -> None:
    page = visit("/")
    held: list[Route] = []
    page.route("**/api/flows", lambda route: held.append(route))
    go(page, "Compose")
    page.get_by_role("button", name="Show an example").click()
    expect(page.locator(".fg-node")).to_have_count(3)
    assert held
    for route in held:
        with page.expect_response("**/api/flows"):
            route.continue_()
    page.wait_for_timeout(500)
    expect(page.locator(".fg-node")).to_have_count(3)


def test_load_a_flow_file_and_save_it(visit: Visits, tmp_path: Path) -> None:
    text = (
        "flow: loaded\n"
        "nodes:\n"
        "  cars:\n"
        "    source: {stream: reports, schema: 'tid bigint, ts timestamp, speed int', id: tid}\n"
        "  slow:   {filter: {from: cars, where: speed < 20}}\n"
        "  out:    {sink: {from: slow, stream: slow-cars}}\n"
    )
    (tmp_path / "loaded.yaml").write_text(text)
    page = visit("/compose")
    page.get_by_text("Open", exact=True).click()
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="A file…").click()
    choosing.value.set_files(tmp_path / "loaded.yaml")
    expect(page.locator(".fg-node")).to_have_count(3)
    expect(page.get_by_label("Name of the flow")).to_have_value("loaded")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save").click()
    assert saving.value.suggested_filename == "loaded.yaml"
    assert Path(saving.value.path()).read_text() == text


# --- Sustain ------------------------------------------------------------------------------------


def test_sustain_judges_every_queue(visit: Visits) -> None:
    page = visit("/sustain?flow=traffic")
    queue = rows(page, "Queues of traffic")
    expect(queue).to_have_count(7)
    lead = queue.filter(has_text="standing").first
    expect(lead).to_contain_text(re.compile("healthy|bursting|growing|not known yet"))
    expect(queue.filter(has_text="accidents")).to_contain_text("with standing")
    unit = page.get_by_role("region", name="Unit standing")
    expect(unit.get_by_role("img", name=re.compile("^Queue length: now"))).to_be_visible()
    page.get_by_label("Flow").select_option("notes")
    expect(rows(page, "Queues of notes").first).to_contain_text("said")


# --- tokens, trouble, hostility -----------------------------------------------------------------


def test_writing_asks_for_the_token(visit: Visits, service: Running) -> None:
    visit.expected.append("401")
    page = visit("/streams?stream=notes", known=False)
    box = page.get_by_label("Events for notes, as JSON")
    box.fill('{"id": 700, "at": "2027-01-15T08:20:00Z", "body": "with a token"}')
    page.get_by_role("button", name="Publish", exact=True).click()
    dialog = page.get_by_role("dialog", name="Token for writing")
    dialog.get_by_label("Token", exact=True).fill("not-the-token-at-all")
    dialog.get_by_role("button", name="Use it").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    dialog.get_by_label("Token", exact=True).fill(service.token)
    dialog.get_by_role("button", name="Use it").click()
    expect(page.get_by_text(re.compile("Published 1 event at position"))).to_be_visible()
    # Nothing of it is in the address, nor left to who comes next.
    assert service.token not in page.url
    assert page.evaluate("localStorage.length") == 0


def test_the_page_says_when_the_service_is_gone_and_goes_on_when_it_is_back(
    visit: Visits, service: Running
) -> None:
    visit.expected += ["ERR_", "dynamically imported module", "This view can't be loaded"]
    with served(service.folder, "--no-run") as address:
        page = visit(address + "/streams", known=False)
        state = page.locator(".connection")
        expect(state).to_have_text("Connected")
        expect(rows(page, "Streams").filter(has_text="reports")).to_be_visible()
    expect(state).to_have_text("Not reachable")
    expect(rows(page, "Streams").filter(has_text="reports")).to_be_visible()
    page.get_by_role("link", name="Trace").click()
    expect(page.get_by_role("alert")).to_be_visible()
    go(page, "Streams")
    with served(service.folder, "--no-run", port=int(address.rpartition(":")[2])):
        expect(state).to_have_text("Connected")
        expect(rows(page, "Streams").filter(has_text="reports")).to_be_visible()


HOSTILE = {
    801: '<img src=x onerror="alert(1)">',
    802: "</script><script>alert(2)</script>",
    803: "\u202etxt.exe\u202c and \u05e9\u05dc\u05d5\u05dd",
    804: "long " + 10_000 * "x",
    805: "'); DROP TABLE results; --",
}


def test_hostile_texts_are_shown_as_text(visit: Visits, service: Running) -> None:
    for number_, body in HOSTILE.items():
        service.note(number_, body)
    service.wait("/results", lambda told: len(told["rows"]) == 5, sink="kept", where="id > 800")
    page = visit("/streams?stream=notes")
    for number_ in HOSTILE:
        expect(rows(page, "Last events").filter(has_text=str(number_))).to_be_visible()
    harmless(page)
    rows(page, "Last events").filter(has_text="801").click()
    expect(page.locator("pre.code").last).to_contain_text("<img src=x onerror=")
    page.goto("/streams")
    expect(rows(page, "Streams").filter(has_text="notes")).to_be_visible()
    harmless(page)
    page.goto("/")
    kept = page.get_by_role("region", name="Flow notes")
    expect(rows(kept, "Last results of kept of notes").first).to_be_visible()
    harmless(page)
    page.goto("/trace?sink=kept&where=id+%3E+800")
    found = rows(page, "Results of kept")
    expect(found).to_have_count(5)
    expect(found.filter(has_text="<img src=x onerror=")).to_have_count(1)
    expect(found.filter(has_text="⟨U+202E⟩")).to_have_count(1)
    harmless(page)
    for text, shown_ in ((HOSTILE[802], HOSTILE[802]), ("long xxx", "Show all 10,005 characters")):
        page.goto("/trace?sink=kept&where=id+%3E+800")
        found.filter(has_text=text).get_by_role("link").click()
        expect(page.get_by_text(shown_).first).to_be_visible()
        harmless(page)
    condition_ = "/trace?sink=kept&where=" + "%27%3Cimg+src%3Dx+onerror%3Dalert(3)%3E"
    visit.expected.append("422")
    page.goto(condition_)
    expect(page.get_by_role("alert").first).to_be_visible()
    harmless(page)


def harmless(page: Page) -> None:
    """Nothing was made of the texts, and none of them makes the page wider."""
    assert page.locator("img, script:not([src]), iframe, object, embed").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# --- keyboard -----------------------------------------------------------------------------------


def test_trace_an_alert_with_the_keyboard(page: Page) -> None:
    tab_to(page, page.get_by_role("link", name="Trace"))
    page.keyboard.press("Enter")
    first = rows(page, "Results of stopped").first
    tab_to(page, first)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    records = rows(page, "Records of reports")
    expect(records).to_have_count(4)
    tab_to(page, page.get_by_role("link", name=re.compile("^record reports")).first)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What it reached")).to_be_visible()
    tab_to(page, page.get_by_role("link", name="Search", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_label("SQL condition")).to_be_visible()


def test_compose_a_flow_with_the_keyboard(visit: Visits) -> None:
    page = visit("/compose")
    tab_to(page, page.get_by_role("button", name=re.compile("^reports")))
    page.keyboard.press("Enter")
    expect(node(page, "reports")).to_be_visible()
    tab_to(page, page.get_by_role("button", name=re.compile("^filter")))
    page.keyboard.press("Enter")
    where = page.get_by_role("dialog").get_by_label("where")
    tab_to(page, where)
    page.keyboard.type("speed = 0")
    tab_to(page, page.get_by_role("dialog").get_by_role("button", name="Add"))
    page.keyboard.press("Enter")
    expect(page.locator(".fg-node")).to_have_count(2)
    tab_to(page, node(page, "reports").or_(page.locator('.fg-node[tabindex="0"]')).last)
    page.keyboard.press("ArrowLeft")
    expect(node(page, "reports")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name of the node")).not_to_have_value("reports")
    page.keyboard.press("Delete")
    expect(page.locator(".fg-node")).to_have_count(1)
