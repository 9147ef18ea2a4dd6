"""What a person does on the page, in words; and what they look at."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

VIEWS = {
    "Overview": "/",
    "Trace": "/trace",
    "Live": "/live",
    "Streams": "/streams",
    "Compose": "/compose",
    "Sustain": "/sustain",
}
SPARK = 120_000
"""Milliseconds for what Spark does: a batch, a replay, a change of a flow."""
GRAPH = "/live?flow=traffic.standing.v1"


def go(page: Page, view: str) -> None:
    """Choose a view in the navigation."""
    page.get_by_role("navigation", name="Views").get_by_role("link", name=view).click()
    expect(page).to_have_title(f"{view} · Headwater")


def full(page: Page, view: str) -> Locator:
    """What a view has when it shows what there is."""
    return {
        "Overview": page.get_by_role("region", name="Flow traffic").locator(".fg-node").first,
        "Trace": rows(page, "Results of stopped").first,
        "Live": page.get_by_text(re.compile(r"\d of [\d,]+ vertices shown")),
        "Streams": rows(page, "Streams").filter(has_text="reports"),
        "Compose": page.get_by_role("button", name=re.compile("^reports")).first,
        "Sustain": page.get_by_role("table", name="Queues of").get_by_role("row").nth(1),
    }[view]


def rows(page: Page | Locator, table: str) -> Locator:
    """The rows of a table, without its head."""
    return page.get_by_role("table", name=table, exact=True).locator("tbody tr")


def condition(page: Page, column: str, value: object) -> None:
    """Ask for results that have a value in a column."""
    page.get_by_role("button", name="Condition").click()
    page.get_by_label("Column").last.select_option(column)
    page.get_by_label("Value").last.fill(str(value))


def said(page: Page, text: str | re.Pattern[str], timeout: float | None = None) -> None:
    """See a short message in the corner, and close it."""
    toast = page.locator(".toast").filter(has_text=text)
    expect(toast).to_be_visible(timeout=timeout)
    toast.get_by_role("button", name="Close").click()


def node(page: Page | Locator, name: str) -> Locator:
    """A node of a drawn flow."""
    return page.locator(f'.fg-node[data-node="{name}"]')


def tab_to(page: Page, wanted: Locator, most: int = 90) -> None:
    """Press Tab until something has the focus."""
    expect(wanted).to_be_visible()
    for _ in range(most):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is not reached with {most} times Tab")


def number(text: str | None) -> int:
    """The first number of a text: 1,234 of 2,345."""
    found = re.search(r"\d[\d,]*", text or "")
    assert found, text
    return int(found[0].replace(",", ""))


def bright(page: Page) -> int:
    """How bright the page's ground is: from 0, black, to 765."""
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in re.findall(r"\d+", ground)[:3])


def uncovered(one: Locator) -> bool:
    """Whether nothing lies on the corners of something."""
    told = one.evaluate(
        """one => {
          const { left, top, right, bottom } = one.getBoundingClientRect();
          const free = (x, y) => one.contains(document.elementFromPoint(x, y));
          return [left + 4, right - 4].every((x) => [top + 4, bottom - 4].every((y) => free(x, y)));
        }"""
    )
    return bool(told)


def vertices(page: Page) -> int:
    """How many vertices the live graph has in all."""
    shown = page.get_by_text(re.compile(r"of [\d,]+ vertices shown"))
    return number((shown.text_content() or "").split(" of ")[1])


def coloured(page: Page, name: str) -> int:
    """How many pixels of the live graph have one of the page's colours."""
    told = page.evaluate(
        """name => {
          const probe = document.createElement("canvas").getContext("2d");
          probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
          probe.fillRect(0, 0, 1, 1);
          const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
          const canvas = document.querySelector(".stage canvas");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let n = 0;
          const far = (at, value) => Math.abs(data[at] - value);
          for (let at = 0; at < data.length; at += 4) {
            if (data[at + 3] > 200 && far(at, r) + far(at + 1, g) + far(at + 2, b) < 24) n += 1;
          }
          return n;
        }""",
        name,
    )
    assert isinstance(told, int)
    return told
