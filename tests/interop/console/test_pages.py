"""Every page of the console in a real browser, with groups of all four kinds at work on ottla and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.component.console.served import Browser as Reader

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.interop

SERIOUS = ("serious", "critical")
PAGES_MAX = 150
"""Pages that a walk along the links looks at."""
DEEP = "/wire/"
"""The pages about the protocol are the site's; a few of them stand for all."""


class Visitor:
    """A browser window that is logged in; what the browser complains about fails the test."""

    def __init__(self, browser: Browser, reader: Reader, **options: Any) -> None:
        self._origin = reader.server.address.rstrip("/")
        self._context = browser.new_context(**options)
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(f"{self.page.url}: {error}"))
        self.page.on("console", self._heard)
        self.page.on("request", self._asked)
        self.page.goto(f"{self._origin}/?token={reader.token}")

    def _heard(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(f"{self.page.url}: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self._origin, "data:")):
            self.complaints.append(f"{self.page.url} asks {request.url}")

    def open(self, path: str) -> Page:
        answer = self.page.goto(urljoin(self._origin, path), wait_until="domcontentloaded")
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status}"
        return self.page

    def links(self) -> set[str]:
        """The pages of the console that this one leads to."""
        # Links of drawings know their address only as it is written.
        whole = "all => all.map(a => new URL(a.getAttribute('href'), document.baseURI).href)"
        found: list[str] = self.page.eval_on_selector_all("main a[href], nav a[href]", whole)
        own = [each.partition("#")[0] for each in found if each.startswith(self._origin)]
        return {each.removeprefix(self._origin) or "/" for each in own if not urlsplit(each).path.endswith(".json")}

    def close(self) -> None:
        self._context.close()
        assert self.complaints == []


@pytest.fixture
def visitor(chrome: Browser, reader: Reader) -> Iterator[Visitor]:
    visiting = Visitor(chrome, reader)
    yield visiting
    visiting.close()


def walk(visitor: Visitor) -> list[str]:
    """All pages that links lead to from the overview, one of each for what differs only in its name or query."""
    waiting, seen, kinds = ["/"], [], set()
    while waiting and len(seen) < PAGES_MAX:
        path = waiting.pop(0)
        visitor.open(path)
        seen.append(path)
        for link in sorted(visitor.links()):
            kind = kind_of(link)
            if kind not in kinds:
                kinds.add(kind)
                waiting.append(link)
    return seen


def kind_of(path: str) -> tuple[object, ...]:
    """Pages with the same kind are made by the same code. Groups differ by their kind, which is in their name here."""
    parts = urlsplit(path)
    steps = parts.path.strip("/").split("/")
    if steps[0] == "wire":
        return tuple(steps[:2])
    names = ("billing", "audit", "risk-checks", "word-totals", "__consumer_offsets", "payments")
    masked = [each if at == 0 or each in names or each.isalpha() else "…" for at, each in enumerate(steps)]
    return (*masked, tuple(sorted(key.partition("=")[0] for key in parts.query.split("&"))))


@pytest.fixture(scope="module")
def paths(chrome: Browser, reader: Reader) -> list[str]:
    """A page of each kind, found by following links; all of them answered, and the browser had nothing to complain."""
    visitor = Visitor(chrome, reader)
    seen = walk(visitor)
    visitor.close()
    return seen


def test_every_link_leads_somewhere(paths: list[str]):
    seen = paths
    assert len(seen) > 30, seen
    for start in ("/topics/", "/groups/", "/nodes/", "/findings/", "/security/", "/wire/", "/live"):
        assert any(each.startswith(start) for each in seen), (start, seen)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_accessible_and_fit_a_phone(theme: str, paths: list[str], chrome: Browser, reader: Reader):
    visitor = Visitor(chrome, reader, color_scheme=theme, viewport={"width": 320, "height": 700})
    axe, problems = Axe(), []
    for path in paths:
        page = visitor.open(path)
        if path.endswith(".svg"):
            continue
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 320:
            problems.append(f"{path} is {width} px wide")
        for violation in axe.run(page).response["violations"]:
            if violation["impact"] in SERIOUS:
                targets = [node["target"] for node in violation["nodes"][:3]]
                problems.append(f"{path}: {violation['id']} at {targets}")
    visitor.close()
    assert problems == []


def test_the_keyboard_is_enough(visitor: Visitor):
    page = visitor.open("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("g")
    page.keyboard.press("g")
    page.wait_for_url("**/groups")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("billing")
    page.keyboard.press("Enter")
    page.wait_for_url("**/groups?*q=billing*")
    page.get_by_role("link", name="billing", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/groups/billing")


def test_a_page_follows_what_happens(visitor: Visitor):
    page = visitor.open("/groups/billing")
    before = page.inner_text("main")
    page.wait_for_function("before => document.getElementById('main').innerText !== before", arg=before, timeout=30_000)


def test_without_scripts_pages_are_complete(chrome: Browser, reader: Reader):
    visitor = Visitor(chrome, reader, java_script_enabled=False)
    for path in ("/", "/topics", "/groups", "/groups/word-totals", "/quorum", "/live"):
        visitor.open(path)
        assert visitor.page.get_by_role("heading", level=1).count() == 1, path
        assert len(visitor.page.inner_text("main")) > 200, path
    visitor.close()
