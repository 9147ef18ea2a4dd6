"""A browser for tests of the page, and the service that they share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.server.page.running import Running, running
from tests.support import need

_SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "browser"
PATIENCE = 30_000
"""Milliseconds that something may take to appear, on a machine that is busy with Spark."""


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium. Without one a test is skipped, under CI it fails."""
    done = subprocess.run([_SCRIPT], capture_output=True, text=True, check=False, timeout=900)
    told = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    need(f"a browser ({told[-1]})", done.returncode == 0)
    return done.stdout.strip()


# A started Playwright has a running event loop, in which other tests can't run theirs: it ends
# with the module.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """The browser, without a window."""
    # Who is root, as in a container, has no sandbox.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield made
        made.close()


@pytest.fixture(scope="module")
def service(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The service that a module's tests share."""
    del chromium  # asked for first: without a browser no service is started
    with running(tmp_path_factory.mktemp("service")) as made:
        yield made


class Visits:
    """Opens pages, and keeps what the browser complains of."""

    def __init__(self, browser: Browser, address: str, token: str) -> None:
        self._browser, self.address, self._token = browser, address, token
        self.complaints: list[str] = []
        self.expected: list[str] = []
        """Texts of complaints that the test is about."""

    def __call__(self, path: str = "/", *, known: bool = True, **context: Any) -> Page:
        """A page of a visitor who has never been here; `known` ones have the token."""
        given = {"viewport": {"width": 1280, "height": 800}, "timezone_id": "UTC", **context}
        made = self._browser.new_context(base_url=self.address, locale="en-US", **given)
        made.set_default_timeout(PATIENCE)
        page = made.new_page()
        page.on("console", lambda told: told.type == "error" and self._heard(told.text))
        page.on("pageerror", lambda error: self._heard(str(error)))
        page.on("dialog", lambda dialog: (self._heard(f"dialog {dialog.message}"), dialog.accept()))
        page.goto(f"{path}#token={self._token}" if known else path)
        return page

    def _heard(self, text: str) -> None:
        self.complaints.append(text)

    def end(self) -> None:
        """Close all, and see that nobody complained."""
        for context in self._browser.contexts:
            context.close()
        rest = [one for one in self.complaints if not any(text in one for text in self.expected)]
        assert not rest, rest


@pytest.fixture
def visit(browser: Browser, service: Running) -> Iterator[Visits]:
    """Opens pages of the service; console errors, CSP violations and dialogs fail the test."""
    visits = Visits(browser, service.address, service.token)
    yield visits
    visits.end()


@pytest.fixture
def page(visit: Callable[..., Page]) -> Page:
    """A visitor at the overview."""
    return visit("/")
