"""The console in a browser: arrow keys in drawings, zoom and folds without losing the place, clocks, live updates."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import ottla.testing
from ottla.client import Client
from ottla.testing import Broker
from ottla.testing.ports import PortReservation
from tests.component.broker.description_requests import IN_MEMORY, PLUGIN, Push
from tests.component.broker.raw_client import RawClient
from tests.component.broker.streams_requests import join, topology
from tests.component.console.large_topology import large_description
from tests.component.console.served import Browser as Reader
from tests.component.console.served import console
from tests.component.share_scene import JOBS, begin_with, worker

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("console-drawings")]

expect = pytest.importorskip("playwright.sync_api").expect
WINDOW = f"/groups/workers/window/{JOBS}/0"
TOPOLOGY = "/groups/app/topology"


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """A console of a broker with a share group that holds records, and a large topology."""
    with closing(PortReservation()) as inspect:
        inspect.release()
        settings: dict[str, Any] = {
            "ottla.inspect.listeners": f"http://127.0.0.1:{inspect.port}",
            PLUGIN: IN_MEMORY,
            "group_share_record_lock_duration_ms": 60_000,
            **{f"group_streams_{each}session_timeout_ms": 3_600_000 for each in ("", "max_")},
        }
        with ottla.testing.broker(**settings) as broker, working(broker), console(broker.bootstrap_servers) as reading:
            _describe(broker)
            reading.until("/groups.json", lambda data: data["total"] == 2)
            yield reading


@contextmanager
def working(broker: Broker) -> Iterator[None]:
    """A worker of a share group, in a thread: Playwright has a loop in this one."""
    is_ready, is_over = threading.Event(), threading.Event()

    async def work() -> None:
        async with Client(broker.bootstrap_servers) as client:
            await begin_with(client, "workers")
            await worker(client, "workers")
            is_ready.set()
            await asyncio.to_thread(is_over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        assert is_ready.wait(60)
        yield
    finally:
        is_over.set()
        thread.join()


def _describe(broker: Broker) -> None:
    raw = RawClient.at(broker.bootstrap_servers)
    raw.ask(join("app", "A", topology(JOBS)), 1)
    assert raw.ask(Push("app", "A", 0, large_description(JOBS, 3, 30)), 0).error_code == 0
    raw.close_all()


class Visitor:
    def __init__(self, browser: Browser, reader: Reader) -> None:
        self._browser, self._reader = browser, reader
        self._contexts: list[Any] = []
        self.complaints: list[str] = []

    def open(self, path: str, **options: Any) -> Page:
        context = self._browser.new_context(**options)
        self._contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        origin = self._reader.server.address.rstrip("/")
        page.goto(f"{origin}/?token={self._reader.token}")
        page.goto(f"{origin}{path}")
        return page

    def close(self) -> None:
        for each in self._contexts:
            each.close()
        assert self.complaints == []


@pytest.fixture
def visitor(browser: Browser, reader: Reader) -> Iterator[Visitor]:
    visiting = Visitor(browser, reader)
    yield visiting
    visiting.close()


def test_arrow_keys_go_over_the_ranges_and_enter_opens_the_records(visitor: Visitor):
    page = visitor.open(WINDOW)
    page.locator(".window a").first.focus()
    first = page.locator(".told").text_content()
    page.keyboard.press("ArrowRight")
    second = page.locator(".told").text_content()
    assert first != second
    page.keyboard.press("ArrowLeft")
    assert page.locator(".told").text_content() == first
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.tabIndex") == 0
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/topics/{JOBS}/records?partition=0&from=5&limit=4")


def test_clocks_run_and_count_down(visitor: Visitor):
    page = visitor.open(WINDOW)
    page.keyboard.press("p")
    assert page.evaluate("document.getAnimations().length") == page.locator(".clock").count() == 1
    text = page.locator(".clocks span[data-left]").first
    expect(text).not_to_have_text(text.text_content() or "")


class Updates:
    """Answers requests of the page for its own content, and notes what is shown."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._held: list[Any] = []
        self._is_held = False
        page.evaluate(
            "const main = document.getElementById('main'); window.shown = [];"
            "new MutationObserver(() => shown.push(main.textContent)).observe(main, { childList: true });"
        )
        page.route(page.url.partition("?")[0] + "**", lambda route: self._take(route))

    def _take(self, route: Any) -> None:
        if self._is_held:
            self._is_held = False
            self._held.append(route)
        else:
            route.continue_()

    def begin(self) -> Any:
        """As when an event comes; returns the request, which waits."""
        self._is_held = True
        with self._page.expect_request(lambda request: request.resource_type == "fetch"):
            self._page.keyboard.press("p")
            self._page.keyboard.press("p")
        return self._held.pop()

    def show(self, text: str) -> None:
        """Answer a last request, and wait until that is shown: whatever came before has had its time."""
        answer(self.begin(), text)
        expect(self._page.locator("#main")).to_have_text(text)

    def shown(self) -> list[str]:
        found: list[str] = self._page.evaluate("shown")
        return found


def answer(route: Any, text: str, status: int = 200) -> None:
    route.fulfill(status=status, content_type="text/html", body=f"<main id=main>{text}</main>")


def test_a_selection_that_is_made_while_the_page_is_loaded_stays(visitor: Visitor):
    page = visitor.open(WINDOW)
    updates = Updates(page)
    request = updates.begin()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
    with page.expect_event("requestfinished"):
        answer(request, "what the reader does not want now")
    page.wait_for_load_state("networkidle")
    page.evaluate("getSelection().removeAllRanges()")
    updates.show("what comes later")
    assert updates.shown() == ["what comes later"]


def test_a_page_that_was_left_meanwhile_does_not_come_back(visitor: Visitor):
    page = visitor.open(TOPOLOGY)
    updates = Updates(page)
    late = updates.begin()
    page.get_by_role("group", name="Names").get_by_role("link", name="full").click()
    page.wait_for_url("**names=full")
    answer(late, "the names that were left")
    updates.show("what comes later")
    assert "the names that were left" not in updates.shown()


def test_a_page_about_what_was_deleted_says_so(visitor: Visitor):
    page = visitor.open(f"/topics/{JOBS}")
    updates = Updates(page)
    request = updates.begin()
    with page.expect_event("load"):
        answer(request, "", 404)
    visitor.complaints = [each for each in visitor.complaints if "404" not in each]


def test_who_wants_no_motion_gets_text(visitor: Visitor):
    page = visitor.open(WINDOW, reduced_motion="reduce")
    assert page.evaluate("document.getAnimations().length") == 0
    assert not page.locator(".clock").first.is_visible()
    assert page.locator(".clocks span[data-left]").first.is_visible()


def test_folding_and_zooming_keep_the_place(visitor: Visitor):
    page = visitor.open(f"{TOPOLOGY}?open=all&zoom=200", viewport={"width": 800, "height": 600})
    page.evaluate("document.querySelector('.picture').scrollLeft = 120")
    page.evaluate("scrollTo(0, 200)")
    page.get_by_role("group", name="Names").get_by_role("link", name="full").click()
    page.wait_for_url("**names=full")
    expect(page.locator(".box", has_text="KSTREAM-MAPVALUES-0000000001").locator(".label")).to_have_count(1)
    assert page.evaluate("document.querySelector('.picture').scrollLeft") == 120
    assert page.evaluate("scrollY") > 0


def test_subtopologies_open_by_key(visitor: Visitor):
    page = visitor.open(TOPOLOGY)
    assert page.locator(".box.processor").count() == 0
    page.locator("a.box.subtopology").first.focus()
    assert "subtopology 0: 30 processors" in (page.locator(".told").text_content() or "")
    page.keyboard.press("Enter")
    page.wait_for_url("**open=0")
    expect(page.locator(".box.processor")).to_have_count(28)


def test_boxes_tell_their_whole_names(visitor: Visitor):
    page = visitor.open(f"{TOPOLOGY}?open=all")
    page.locator(".box.source").first.focus()
    page.keyboard.press("ArrowDown")
    assert (page.locator(".told").text_content() or "").startswith("processor KSTREAM-")


@pytest.mark.parametrize("path", [WINDOW, f"{TOPOLOGY}?open=all&names=full", TOPOLOGY])
def test_nothing_is_wider_than_a_small_screen(path: str, visitor: Visitor):
    page = visitor.open(path, viewport={"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("path", [WINDOW, f"{TOPOLOGY}?open=0", f"{TOPOLOGY}?colour=lag"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_stands_in_anybodys_way(path: str, theme: str, visitor: Visitor):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(visitor.open(path, color_scheme=theme)).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize("width", [1280, 1024])
@pytest.mark.parametrize("path", ["/", "/transactions"])
def test_the_buttons_stay_beside_the_sections(path: str, width: int, visitor: Visitor):
    page = visitor.open(path, viewport={"width": width, "height": 800})
    boxes = page.locator(".top > *").evaluate_all("all => all.map(each => each.getBoundingClientRect().toJSON())")
    assert max(each["top"] for each in boxes) < min(each["bottom"] for each in boxes), boxes


def test_bytes_are_pasted_into_a_wide_field(visitor: Visitor):
    page = visitor.open("/wire/decode")
    field, whole = page.locator("textarea").bounding_box(), page.locator("form.filter").bounding_box()
    assert field is not None
    assert whole is not None
    assert field["width"] > 0.9 * whole["width"]


def test_a_phone_shows_which_section_is_open(visitor: Visitor):
    page = visitor.open("/pipeline", viewport={"width": 390, "height": 800})
    box = page.locator(".sections [aria-current]").bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= 390 - box["width"]
