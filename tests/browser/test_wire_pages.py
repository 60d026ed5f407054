"""The pages about the protocol in a browser: what lights up together, keys, search, colours, narrow screens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.explain.render import html
from tests.unit.explain.page_list import page_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Visitor

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("wire_pages")]

SHARE_FETCH = "api/ShareFetch/request-v2.html"
PAGES = (
    "index.html",
    SHARE_FETCH,
    "api/StreamsGroupHeartbeat/response-v0.html",
    "api/StreamsGroupDescribe/response-v1.html",
    "api/Fetch/response-v17.html",
    "record/ConsumerGroupCurrentMemberAssignmentValue/v0.html",
    "header/RequestHeader/v2.html",
    "error/TRANSACTIONAL_ID_AUTHORIZATION_FAILED.html",
)
GROUP_ID = '.node[data-path="ShareFetchRequest.GroupId"]'
TOPICS = '.node[data-path="ShareFetchRequest.Topics"]'


def marked_bytes(page: Page) -> bytes:
    return bytes.fromhex("".join(page.locator(".b.on").all_inner_texts()))


def marked_nodes(page: Page) -> list[str | None]:
    return [node.get_attribute("data-path") for node in page.locator(".node.on").all()]


def bytes_of(page: Page, selector: str) -> bytes:
    start, end = map(int, (page.locator(selector).get_attribute("data-at") or "").split("-"))
    return page_of("ShareFetchRequest", 2).example.data[start:end]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_page_scrolls_sideways(visitor: Visitor, path: str, width: int):
    page = visitor.open(path, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_hovering_a_field_marks_its_bytes_and_nothing_else(visitor: Visitor):
    page = visitor.open(SHARE_FETCH)
    page.hover(GROUP_ID)
    assert marked_bytes(page) == bytes_of(page, GROUP_ID) == b"\x0forders-workers"
    assert marked_nodes(page) == ["ShareFetchRequest.GroupId"]
    assert "orders-workers" in page.locator(".told-bytes").inner_text()
    assert page.locator('tr.on[data-field="ShareFetchRequest.GroupId"]').count() == 1
    page.hover("h1")
    assert marked_bytes(page) == b""


def test_hovering_an_array_marks_all_of_it(visitor: Visitor):
    page = visitor.open(SHARE_FETCH)
    page.hover(TOPICS)
    assert marked_bytes(page) == bytes_of(page, TOPICS)
    assert len(marked_bytes(page)) > 16


def test_hovering_bytes_marks_their_field(visitor: Visitor):
    page = visitor.open(SHARE_FETCH)
    page.hover('.b[data-path="ShareFetchRequest.MaxBytes"]')
    assert marked_nodes(page) == ["ShareFetchRequest.MaxBytes"]
    page.hover('.b.dim[data-path="ShareFetchRequest.GroupId"]')
    assert "length" in page.locator(".told-bytes").inner_text()


def test_hovering_a_row_marks_the_bytes_of_every_element(visitor: Visitor):
    page = visitor.open("api/StreamsGroupHeartbeat/response-v0.html")
    field = "StreamsGroupHeartbeatResponse.ActiveTasks[].SubtopologyId"
    page.hover(f'tr[data-field="{field}"]')
    marked = marked_nodes(page)
    assert len(marked) > 1
    assert {path.replace("[0]", "[]").replace("[1]", "[]") for path in marked if path} == {field}


def test_a_click_keeps_the_mark_and_the_address_leads_back(visitor: Visitor):
    page = visitor.open(SHARE_FETCH)
    page.click(GROUP_ID)
    page.hover("h1")
    assert marked_nodes(page) == ["ShareFetchRequest.GroupId"]
    assert page.url.endswith("#at-ShareFetchRequest.GroupId")
    page.reload()
    assert marked_nodes(page) == ["ShareFetchRequest.GroupId"]
    page.click(GROUP_ID)
    page.hover("h1")
    assert marked_nodes(page) == []


def test_a_tap_marks_on_a_touch_screen(visitor: Visitor):
    page = visitor.open(SHARE_FETCH, width=390, height=844, has_touch=True, is_mobile=True)
    page.tap(GROUP_ID)
    assert marked_bytes(page) == b"\x0forders-workers"
    box = page.locator(".b.on").first.bounding_box()
    assert box, "the marked bytes are on the screen"
    assert 0 <= box["y"] < 844


def test_the_tree_by_keyboard(visitor: Visitor):
    page = visitor.open(SHARE_FETCH)
    page.focus(TOPICS)
    page.keyboard.press("ArrowRight")
    assert marked_nodes(page) == ["ShareFetchRequest.Topics[0]"]
    page.keyboard.press("ArrowDown")
    assert marked_nodes(page) == ["ShareFetchRequest.Topics[0].TopicId"]
    page.keyboard.press("ArrowLeft")
    assert marked_nodes(page) == ["ShareFetchRequest.Topics[0]"]
    page.keyboard.press("End")
    assert marked_nodes(page) == ["ShareFetchRequest tags"]
    page.keyboard.press("Home")
    assert marked_nodes(page) == ["Frame"]


def test_the_bytes_by_keyboard(visitor: Visitor):
    page = visitor.open(SHARE_FETCH)
    page.focus('.b[data-path="Frame.Size"]')
    page.keyboard.press("ArrowRight")
    assert marked_nodes(page) == ["RequestHeader.RequestApiKey"]
    page.keyboard.press("ArrowDown")
    below = page.evaluate("document.activeElement.getBoundingClientRect().top")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.getBoundingClientRect().top") < below
    page.keyboard.press("Enter")
    assert "#at-" in page.url
    page.keyboard.press("Escape")
    assert "#at-" not in page.url


def test_tree_and_bytes_are_one_tab_stop_each(visitor: Visitor):
    page = visitor.open(SHARE_FETCH)
    assert page.locator('.node[tabindex="0"]').count() == 1
    assert page.locator('.b[tabindex="0"]').count() == 1
    assert page.locator('.b[role="option"]').count() == len(page_of("ShareFetchRequest", 2).example.spans)


@pytest.mark.parametrize(("width", "row_bytes"), [(1280, 16), (390, 8), (320, 8)])
def test_bytes_in_a_row(visitor: Visitor, width: int, row_bytes: int):
    page = visitor.open(SHARE_FETCH, width=width)
    tops = page.evaluate("[...document.querySelectorAll('.half')].map((half) => half.getBoundingClientRect().top)")
    size = len(page_of("ShareFetchRequest", 2).example.data)
    assert len(set(tops)) == -(-size // row_bytes)


def test_colours_follow_the_system_until_chosen_and_the_choice_stays(visitor: Visitor):
    page = visitor.open(SHARE_FETCH, color_scheme="dark")

    def ground() -> str:
        colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return colour

    assert ground() == "rgb(18, 22, 28)"
    page.click(".theme")
    assert ground() == "rgb(255, 255, 255)"
    page.goto(visitor.address("index.html"))
    assert ground() == "rgb(255, 255, 255)"
    page.click(".theme")
    assert "dark" in (page.get_attribute(".theme", "aria-label") or "")
    page.click(".theme")
    assert ground() == "rgb(18, 22, 28)"


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("sharefetchreq", "api/ShareFetch/request-v2.html"),
        ("110", "error/FENCED_MEMBER_EPOCH.html"),
        ("fenced member", "error/FENCED_MEMBER_EPOCH.html"),
        ("FencedMemberEpochException", "error/FENCED_MEMBER_EPOCH.html"),
        ("acknowledgementbatches", "#f-Topics.Partitions.AcknowledgementBatches"),
        ("kip-1312", "api/UnregisterController/"),
        ("StreamsGroupMetadataValue", "record/StreamsGroupMetadataValue/v0.html"),
    ],
)
def test_search_finds_messages_fields_and_errors(visitor: Visitor, typed: str, path: str):
    page = visitor.open(SHARE_FETCH)
    page.keyboard.press("/")
    page.keyboard.type(typed)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert path in page.url


def test_search_says_when_there_is_nothing(visitor: Visitor):
    page = visitor.open("index.html")
    page.fill("#search", "zookeeper znode")
    page.wait_for_selector("#hits li")
    assert "Nothing" in page.locator("#hits").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#hits").is_hidden()


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("78", ["ShareFetch", "OFFSET_NOT_AVAILABLE"]),
        ("kip-1312", ["UnregisterController"]),
        ("quotas describe", ["DescribeClientQuotas", "DescribeConfigs"]),
    ],
)
def test_the_list_can_be_filtered(visitor: Visitor, typed: str, names: list[str]):
    page = visitor.open("index.html")
    page.fill("#filter", typed)
    shown = page.locator("tr[data-find]:visible th").all_inner_texts()
    assert {text.split()[0] for text in shown} == set(names)


def test_the_list_can_be_cut_to_a_group(visitor: Visitor):
    page = visitor.open("index.html")
    page.click("text=Streams groups")
    shown = page.locator("tr[data-find]:visible th").all_inner_texts()
    assert {text.split()[0] for text in shown} == {
        "StreamsGroupHeartbeat",
        "StreamsGroupDescribe",
        "StreamsGroupTopologyDescriptionUpdate",
    }
    assert page.locator("#errors").is_hidden()
    page.fill("#filter", "no such thing")
    assert page.locator(".nothing").is_visible()


@pytest.mark.parametrize("path", PAGES)
def test_pages_can_be_read_without_scripts(visitor: Visitor, path: str):
    page = visitor.open(path, java_script_enabled=False)
    assert page.locator("h1").is_visible()
    for control in ("search", ".theme", ".filter", ".told-bytes"):
        assert page.locator(control).filter(visible=True).count() == 0


def test_less_motion_where_it_is_asked_for(visitor: Visitor):
    page = visitor.open(SHARE_FETCH, reduced_motion="reduce")
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_print_shows_all_bytes(visitor: Visitor):
    page = visitor.open("api/Fetch/response-v17.html", color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    hidden = page.evaluate(
        "(() => { const hex = document.querySelector('.hex'); return hex.scrollHeight - hex.clientHeight; })()"
    )
    assert hidden <= 1
    assert page.locator(".top").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_a_page_in_one_file_works_alone(visitor: Visitor):
    target = visitor.folder.parent / "alone.html"
    target.write_text(html.render(page_of("ShareFetchRequest", 2)), encoding="utf-8")
    page = visitor.open("../alone.html")
    page.hover(GROUP_ID)
    assert marked_bytes(page) == b"\x0forders-workers"
