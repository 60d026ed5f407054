"""The report in a browser without network: by mouse, by key, on paper, on small screens, without scripts."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("report")]

STORIES = ("incidents", "healthy", "empty", "crowd")
WIDTHS = (320, 390, 768, 1280)


@pytest.fixture(scope="session")
def report_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pyarrow")
    from ottla.spark.report import facts_of, page
    from tests.unit.spark.report import story

    folder = tmp_path_factory.mktemp("reports")
    for name in STORIES:
        tables, run = ({}, {}) if name == "empty" else getattr(story, name)()
        facts = facts_of(tables, run, story.GENERATED_MS)
        (folder / f"{name}.html").write_text(page(facts))
        (folder / f"{name}.json").write_text(json.dumps(facts))
    return folder


@pytest.fixture
def reader(browser: Browser, report_folder: Path) -> Iterator[Visitor]:
    """Whatever the browser complains about, and every request for anything else, fails the test."""
    reading = Visitor(browser, report_folder)
    yield reading
    for context in reading.contexts:
        context.close()
    assert reading.complaints == []


def facts_of_story(reader: Visitor, name: str = "incidents") -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((reader.folder / f"{name}.json").read_text())
    return facts


def opened(reader: Visitor, name: str = "incidents", **options: Any) -> Page:
    return reader.open(f"{name}.html", offline=True, **options)


def ticks(page: Page, figure: str) -> list[str]:
    return page.locator(f"#{figure} .below .tick").all_inner_texts()


def drag(page: Page, figure: str, start: float, end: float) -> None:
    box = page.locator(f"#{figure} .area").bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], middle, steps=5)
    page.mouse.up()


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORIES)
def test_opens_with_the_network_off(reader: Visitor, name: str):
    page = opened(reader, name)
    facts = facts_of_story(reader, name)
    assert page.locator("h1").inner_text() == facts["headline"]["sentence"]
    assert page.locator(".lights li .said").all_inner_texts() == [area["sentence"] for area in facts["areas"]]


def test_any_group_can_be_found_and_is_drawn(reader: Visitor):
    page, facts = opened(reader, "crowd"), facts_of_story(reader, "crowd")
    groups = facts["tables"]["all_groups"]["rows"]
    wanted = groups[-1]["label"]
    assert page.locator("#all-groups li").count() == 40, "the first, before anything is typed"
    page.get_by_label("Name, kind or state").fill(f"{wanted.upper()} consumer")
    assert page.locator("#all-groups li b").all_inner_texts() == [wanted]
    assert page.locator("#all-groups .rebalanced rect").count() == len(groups[-1]["rebalances_strip"].replace("0", ""))
    assert page.locator("#all-groups [role=status]").inner_text().startswith("1 group")
    page.get_by_label("Name, kind or state").fill("no such group")
    assert page.locator("#all-groups li").count() == 0


def test_numbers_of_the_page_are_those_of_the_json(reader: Visitor):
    page, facts = opened(reader), facts_of_story(reader)
    rows = page.locator("#table-poison tbody tr")
    found = [tuple(row.locator("td").nth(at).inner_text() for at in range(3)) for row in rows.all()]
    assert found == [
        (row["topic"], str(row["partition"]), str(row["offset"])) for row in facts["tables"]["poison"]["rows"]
    ]
    lag = page.locator("#table-lag tbody tr").first.locator("td.num").all_inner_texts()
    first = facts["tables"]["lag"]["rows"][0]
    assert lag[0] == str(first["partitions"])
    assert lag[3] == f"{first['max_lag_records']:,}"


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_scrolls_sideways(reader: Visitor, name: str, width: int):
    page = opened(reader, name, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


LARGER_THAN_THEIR_PLACE = """() => [...document.querySelectorAll("section, figure, .plots, .epochs")].filter(
    place => [...place.children].some(each => each.getBoundingClientRect().height
        && each.getBoundingClientRect().bottom > place.getBoundingClientRect().bottom + 1)
).map(place => place.outerHTML.slice(0, 60))"""


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_part_lies_over_what_follows(reader: Visitor, name: str, width: int):
    assert opened(reader, name, width=width).evaluate(LARGER_THAN_THEIR_PLACE) == []


@pytest.mark.parametrize("name", STORIES)
def test_everything_can_be_read_without_scripts(reader: Visitor, name: str):
    page = opened(reader, name, java_script_enabled=False)
    for section in page.locator("main section").all():
        assert section.is_visible()
    assert page.locator(".theme").first.is_hidden()
    if name == "incidents":
        page.click("#lag-records summary")
        assert page.locator("#table-lag-records-twin tbody tr").first.is_visible()
        assert page.locator("#tasks-1 rect.band").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["incidents", "healthy", "empty"])
def test_axe_finds_nothing(reader: Visitor, name: str, width: int, scheme: str):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = opened(reader, name, width=width, color_scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach((each) => (each.open = true))")
    found = axe.run(page).response["violations"]
    assert [(each["id"], each["impact"], each["nodes"][0]["html"][:200]) for each in found] == []


# --- plots ------------------------------------------------------------------------------------------------------------


def test_the_pointer_shows_the_values_under_it(reader: Visitor):
    page, facts = opened(reader), facts_of_story(reader)
    [drawn] = [each for each in facts["figures"] if each["id"] == "lag-records"]
    billing = dict(drawn["lines"][0]["points"])
    start, end = facts["range"]["from_ms"], facts["range"]["to_ms"]
    area = page.locator("#lag-records .area")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box
    moment = max(billing, key=lambda ms: billing[ms]) + 2000
    page.mouse.move(box["x"] + box["width"] * (moment - start) / (end - start), box["y"] + 20)
    told = page.locator("#lag-records .hint").inner_text()
    assert "billing: 858" in told
    assert "2026-09-21 14:15:" in told
    page.mouse.move(0, 0)
    assert page.locator("#lag-records .hint").is_hidden()


def test_dragging_over_a_plot_zooms_all_of_them(reader: Visitor):
    page = opened(reader)
    page.locator("#lag-records").scroll_into_view_if_needed()
    whole = {name: ticks(page, name) for name in ("lag-records", "tasks-1", "when", "timeline-2")}
    drag(page, "lag-records", 0.25, 0.5)
    zoomed = {name: ticks(page, name) for name in whole}
    assert zoomed["lag-records"] != whole["lag-records"]
    assert len(set(map(tuple, zoomed.values()))) == 1, "all show the same range"
    box = page.locator("#lag-records svg.lines").get_attribute("viewBox") or ""
    assert float(box.split()[2]) == pytest.approx(245 / 4, abs=2)
    page.click("#lag-records .whole")
    assert {name: ticks(page, name) for name in whole} == whole
    assert page.locator("#lag-records .whole").is_hidden()


def test_plots_are_moved_and_zoomed_by_keyboard(reader: Visitor):
    page = opened(reader)
    area = page.locator("#redelivery .area")
    area.focus()
    assert area.evaluate("(each) => getComputedStyle(each).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    assert "risk-checks:" in page.locator("#redelivery .hint").inner_text()
    before = ticks(page, "redelivery")
    page.keyboard.press("+")
    assert ticks(page, "redelivery") != before
    page.keyboard.press("Escape")
    assert ticks(page, "redelivery") == before
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY", "no trap: on to the table of the same"
    page.keyboard.press("Enter")
    assert page.locator("#table-redelivery-twin").is_visible()


def test_every_stop_of_the_keyboard_is_seen(reader: Visitor):
    page = opened(reader, "healthy")
    for _ in range(25):
        page.keyboard.press("Tab")
        style = page.evaluate(
            "(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth })()"
        )
        assert style == "solid2px"


# --- light and dark, times, ids, files --------------------------------------------------------------------------------


def test_colours_follow_the_system_until_chosen(reader: Visitor):
    page = opened(reader, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(18, 22, 28)"
    page.click(".theme")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.reload()
    assert page.evaluate(ground) == "rgb(255, 255, 255)", "the choice stays"


def test_times_are_utc_until_the_reader_asks_for_his_own(reader: Visitor):
    page = opened(reader, timezone_id="America/New_York")
    first = page.locator(".period time").first
    assert first.inner_text() == "2026-09-21 14:13:20"
    assert first.get_attribute("title") == "2026-09-21T14:13:20.000Z"
    page.click(".clock")
    assert first.inner_text() == "2026-09-21 10:13:20"
    assert ticks(page, "lag-records")[0] == "10:14"
    assert "local time" in page.locator("#lag-records .days").inner_text()
    page.click(".clock")
    assert first.inner_text() == "2026-09-21 14:13:20"


def test_a_table_can_be_taken_away_as_a_file(reader: Visitor):
    page, facts = opened(reader, accept_downloads=True), facts_of_story(reader)
    with page.expect_download() as waiting:
        page.click("#table-poison a.csv")
    assert waiting.value.suggested_filename == "poison.csv"
    rows = list(csv.DictReader(Path(waiting.value.path()).read_text().splitlines()))
    assert [int(row["offset"]) for row in rows] == [row["offset"] for row in facts["tables"]["poison"]["rows"]]


def test_cards_show_three_fields_and_more_when_asked(reader: Visitor):
    page = opened(reader, width=390)
    row = page.locator("#table-groups tbody tr").first
    seen = [cell for cell in row.locator("td:not(.more)").all() if cell.is_visible()]
    assert len(seen) == 3
    row.locator(".more button").click()
    assert all(cell.is_visible() for cell in row.locator("td").all())


# --- other readers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_scripts", [True, False])
def test_paper_is_light_and_folded_parts_are_open(reader: Visitor, has_scripts: bool):
    page = opened(reader, color_scheme="dark", java_script_enabled=has_scripts)
    page.emulate_media(media="print", color_scheme="dark")
    height = page.locator("#table-lag-records-twin").bounding_box()
    assert height, "the folded table is on paper"
    assert height["height"] > 100
    assert page.locator(".top").is_hidden()
    if has_scripts:
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_page_prints_as_pdf(reader: Visitor):
    page = opened(reader)
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_nothing_moves_where_less_motion_is_asked_for(reader: Visitor):
    page = opened(reader, reduced_motion="reduce")
    assert page.evaluate("document.getAnimations().length") == 0
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_forced_colours_keep_words_and_bands(reader: Visitor):
    page = opened(reader, forced_colors="active")
    assert page.locator(".lights .badge").first.inner_text() == "◐ recovered"
    fills = page.locator("#when rect.band").evaluate_all("all => all.map((each) => getComputedStyle(each).fill)")
    assert len(set(fills)) == 3
