"""Pictures of the page for the docs: `scripts/screenshots` runs this."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.server.page.doing import SPARK, full, go, node, rows, said
from tests.server.page.running import until

LARGEST = 200_000
"""Bytes of a picture: the docs stay small."""
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
_OPEN = re.compile(r"open (http://\S+)/#token=(\S+)")
_ALERT = re.compile(r"that alert: http://[^/]+(/trace\?\S+)")


class Demo:
    """A demo that runs: its address, its token, and where its first alert is."""

    def __init__(self, output: Iterator[str]) -> None:
        text = ""
        for line in output:
            text += line
            if "as they come" in line:
                break
        found, alert = _OPEN.search(text), _ALERT.search(text)
        assert found, f"the demo did not start:\n{text}"
        assert alert, text
        self.address, self.token, self.alert = found[1], found[2], alert[1]

    def alive(self) -> str:
        """A record that may still reach results."""
        alive: list[str] = []

        def look() -> bool:
            told = httpx.get(f"{self.address}/api/graph", timeout=60).json()["vertices"]
            alive.extend(o["id"] for o in told if o["kind"] == "source" and not o["expired"])
            return bool(alive)

        until(look, 300)
        return alive[-1]


@contextmanager
def demo() -> Iterator[Demo]:
    """`headwater demo` in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="headwater-pictures-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "headwater", "demo", "traffic", "--reports=6000", "--port=0"],
            cwd=folder,
            env={**os.environ, "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield Demo(process.stdout)
        finally:
            process.terminate()
            process.wait(60)


class Pictures:
    """Takes them, one file each."""

    def __init__(self, browser: Browser, demo: Demo, folder: Path) -> None:
        self._browser, self._demo, self._folder = browser, demo, folder

    def visit(self, path: str, **context: object) -> Page:
        """A page of a visitor who has the token."""
        given = {"viewport": DESK, "timezone_id": "UTC", "locale": "en-US", **context}
        made = self._browser.new_context(base_url=self._demo.address, **given)
        made.set_default_timeout(SPARK)
        page = made.new_page()
        page.goto(f"{path}#token={self._demo.token}")
        return page

    def take(self, page: Page, name: str) -> None:
        """The page as it is now; without the pointer, which may hold it."""
        page.mouse.move(640, 2)
        page.wait_for_timeout(1_500)  # until what slides in has come to rest
        file = self._folder / f"{name}.png"
        page.screenshot(path=file, animations="disabled")
        assert file.stat().st_size <= LARGEST, f"{file} has {file.stat().st_size} bytes"
        print(file, file.stat().st_size)


def take_all(take: Pictures, demo: Demo) -> None:
    """A picture of every view."""
    page = take.visit(demo.alert)
    expect(rows(page, "Records of reports")).to_have_count(4)
    take.take(page, "trace")
    page.get_by_role("button", name="Compute it again, step by step").click()
    expect(page.get_by_text("it matches what was delivered")).to_be_visible(timeout=SPARK)
    page.get_by_role("heading", name="Step by step").evaluate("one => one.scrollIntoView()")
    take.take(page, "trace-steps")

    page.goto(f"/trace?source=reports&id={demo.alive()}")
    page.get_by_role("button", name="Mark it…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("its sensor is being repaired")
    page.get_by_role("dialog").get_by_role("button", name="Mark it").click()
    said(page, "Marked")
    page.goto("/live?flow=traffic.standing.v1&limit=300")
    marked = page.locator(".counters div").filter(has_text="Marked").locator("dd")
    expect(marked).to_have_text(re.compile("^[2-9]$"), timeout=SPARK)
    page.locator(".stage canvas").focus()
    for key in ("End", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    take.take(page, "live")
    page.goto("/compose?flow=traffic")
    node(page, "positions").click()
    expect(page.get_by_label("Name of the node")).to_have_value("positions")
    take.take(page, "compose")
    go(page, "Sustain")
    expect(page.get_by_text("keep up")).to_be_visible(timeout=2 * SPARK)
    take.take(page, "sustain")
    go(page, "Overview")
    healthy = re.compile("healthy")
    expect(node(page, "standing")).to_have_attribute("aria-label", healthy, timeout=2 * SPARK)
    take.take(page, "overview")
    for name, context in (
        ("dark", {"color_scheme": "dark"}),
        ("phone", {"viewport": PHONE, "device_scale_factor": 1.5}),
    ):
        other = take.visit("/", **context)
        expect(full(other, "Overview")).to_be_visible()
        take.take(other, name)
    page.goto("/streams")
    page.get_by_role("button", name="Register a query").first.click()
    page.get_by_label("Name").fill("fast_cars")
    page.get_by_label("SQL").fill("SELECT tid, vid, speed FROM reports WHERE speed > 90")
    page.get_by_role("button", name="Register", exact=True).click()
    said(page, "fast_cars is registered", SPARK)
    rows(page, "Registered queries").get_by_role("button", name="Listen").click()
    expect(rows(page, "Results of fast_cars").nth(3)).to_be_visible(timeout=SPARK)
    page.get_by_role("button", name="Register a query").first.click()
    query = rows(page, "Registered queries")
    expect(query).to_contain_text("running", timeout=SPARK)
    expect(query).to_contain_text(re.compile(r"[1-9][\d.,]*/s"), timeout=SPARK)
    page.evaluate("scrollTo(0, 0)")
    take.take(page, "streams")


def main(folder: Path, chromium: str) -> None:
    """Start a demo, take pictures of it into a folder, and end it."""
    folder.mkdir(parents=True, exist_ok=True)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with demo() as running, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        take_all(Pictures(browser, running, folder), running)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
