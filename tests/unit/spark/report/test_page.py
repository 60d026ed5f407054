"""The page: one file that needs nothing else, and says what the facts say."""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import pytest

from ottla.draw.document import shared
from ottla.draw.forms import iso
from ottla.health import RULES
from ottla.spark.report import facts_of, page
from ottla.spark.report.html_table import CSV_BYTES, DETAILS, SHOWN_ROWS
from ottla.spark.report.listings import LISTINGS
from ottla.spark.report.page import POLICY
from tests.unit.draw.colours import THEMES, contrast, tokens
from tests.unit.explain.html_reader import Tag, read
from tests.unit.spark.report import story
from tests.unit.spark.report.story import GENERATED_MS, finding, rebalance, run_of, tables_of

HOSTILE = '</script><script>alert("x")</script> & <img src=x onerror=alert(1)>\u202e"\'\x1b[31m'
STORIES = ("incidents", "healthy", "empty", "crowd")

Facts = dict[str, Any]


def facts_named(name: str) -> Facts:
    tables, run = ({}, {}) if name == "empty" else getattr(story, name)()
    return facts_of(tables, run, GENERATED_MS)


@pytest.fixture(scope="module")
def facts() -> dict[str, Facts]:
    return {name: facts_named(name) for name in STORIES}


@pytest.fixture(scope="module")
def pages(facts: dict[str, Facts]) -> dict[str, str]:
    return {name: page(each) for name, each in facts.items()}


@pytest.fixture(scope="module")
def documents(pages: dict[str, str]) -> dict[str, Tag]:
    return {name: read(text) for name, text in pages.items()}


def by_id(document: Tag, name: str) -> Tag:
    return document.find(lambda tag: tag.attributes.get("id") == name)[0]


# --- what the file is -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORIES)
def test_one_file_that_asks_for_nothing(pages: dict[str, str], documents: dict[str, Tag], name: str):
    text, document = pages[name], documents[name]
    assert text.startswith("<!doctype html>")
    assert not document.values("src")
    assert not document.named("link")
    assert not re.findall(r"(?:https?:)?//[a-z]|url\((?!#)|@import|fetch\(|XMLHttp|import\(", text)
    assert all(address.startswith(("#", "data:text/csv")) for address in document.values("href"))
    policies = [tag.attributes["content"] for tag in document.named("meta") if "http-equiv" in tag.attributes]
    assert policies == [POLICY]
    assert POLICY.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:")


@pytest.mark.parametrize("name", STORIES)
def test_every_link_leads_somewhere_and_every_id_is_one(documents: dict[str, Tag], name: str):
    ids = documents[name].values("id")
    assert len(ids) == len(set(ids))
    links = {address for address in documents[name].values("href") if address.startswith("#")}
    assert links <= {f"#{each}" for each in ids}
    labels = [label for text in documents[name].values("aria-labelledby") for label in text.split()]
    assert set(labels) <= set(ids)


@pytest.mark.parametrize("name", STORIES)
def test_landmarks_headings_and_language(documents: dict[str, Tag], name: str):
    document = documents[name]
    assert document.named("html")[0].attributes["lang"] == "en"
    assert [len(document.named(tag)) for tag in ("main", "footer", "h1")] == [1, 1, 1]
    headings = [int(tag.name[1]) for tag in document.walk() if re.fullmatch(r"h[1-6]", tag.name)]
    assert max(headings) <= 3
    assert all(after - before <= 1 for before, after in pairwise(headings))


@pytest.mark.parametrize("name", STORIES)
def test_sections_in_their_order(documents: dict[str, Tag], name: str):
    sections = [tag.attributes["id"] for tag in documents[name].named("section")]
    assert sections == ["headline", "findings", "cluster", "groups", "rebalances", "streams", "share", "lag", "quorum",
                        "unseen", "data"]  # fmt: skip


def test_the_same_facts_give_the_same_page(pages: dict[str, str]):
    assert page(json.loads(json.dumps(facts_named("incidents")))) == pages["incidents"]


@pytest.mark.parametrize("name", STORIES)
def test_the_file_is_small(pages: dict[str, str], name: str):
    assert len(pages[name].encode()) < 3_000_000


def test_scripts_and_styles_can_stand_inside_a_document(pages: dict[str, str]):
    assert pages["incidents"].count("</script>") == 2
    assert pages["incidents"].count("</style>") == 1


# --- escaping ---------------------------------------------------------------------------------------------------------


def test_hostile_names_stay_text():
    rows = {
        "findings": [finding("lag-growing", HOSTILE, 1, subject=("group", HOSTILE), evidence={HOSTILE: HOSTILE},
                             next=[{"text": HOSTILE, "command": HOSTILE}])],
        "rebalances": [rebalance(HOSTILE, HOSTILE, 1, 1, 2, trigger=HOSTILE, trigger_members=[HOSTILE])],
        "group_timeline": list(story.events(HOSTILE, "streams", [
            *story.joining([HOSTILE], 1),
            (3, "partition_gained", {"member": HOSTILE, "new": json.dumps([HOSTILE]),
                                     "detail": json.dumps({"role": "active", "process": HOSTILE})}),
        ])),
    }  # fmt: skip
    run = run_of(command=HOSTILE, notes=[HOSTILE], clusters=[HOSTILE], unseen=[{"rule": HOSTILE, "why": HOSTILE}])
    text = page(facts_of(tables_of(rows), run, 0))
    document = read(text)
    assert "alert" not in "".join(tag.text for tag in document.named("script"))
    assert len(document.named("script")) == 2
    assert not document.named("img")
    assert not [tag for tag in document.walk() if any(name.startswith("on") for name in tag.attributes)]
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert HOSTILE.split("\u202e")[0] in document.with_class("finding")[0].named("h3")[0].text


# --- what it says -----------------------------------------------------------------------------------------------------


def test_a_reader_finds_the_planted_fault(documents: dict[str, Tag]):
    document = documents["incidents"]
    assert document.named("h1")[0].text == "1 open problem, 3 resolved"
    [lost] = [tag for tag in document.named("article") if "billing-2" in tag.named("h3")[0].text]
    told = lost.text
    assert "billing-2 stopped without leaving the group billing; orders-2, orders-3 made no progress for 6.3 s." in told
    assert "from 2026-09-21 14:14:20 to 2026-09-21 14:14:26 (6.3 s)" in told
    assert RULES["member-lost"].why in told
    assert "Next steps" in told
    [link] = [tag for tag in lost.named("a") if tag.text == "Epochs of billing"]
    assert "billing-2" in by_id(document, (link.attributes["href"] or "")[1:]).text


def test_a_healthy_cluster_reads_well(documents: dict[str, Tag]):
    document = documents["healthy"]
    assert document.named("h1")[0].text == "No problems found"
    told = by_id(document, "findings").text
    assert "4 groups (1 classic, 1 consumer, 1 share, 1 streams)" in told
    assert "2 of 46 rules could not be checked" in by_id(document, "headline").text
    unseen = by_id(document, "unseen").text
    assert "auth-failures" in unseen
    assert "needs the inspect listener of an ottla broker" in unseen


def test_nothing_to_look_at_says_so(documents: dict[str, Tag]):
    document = documents["empty"]
    assert document.named("h1")[0].text == "No data"
    assert not document.named("figure")
    assert not document.named("table")
    assert document.text.count("not visible") >= 7


@pytest.mark.parametrize("name", STORIES)
def test_tables_say_the_numbers_of_the_json(facts: dict[str, Facts], documents: dict[str, Tag], name: str):
    for table, told in facts[name]["tables"].items():
        if table == "all_groups":  # it is searched, not listed
            continue
        where = by_id(documents[name], f"table-{table}") if told["rows"] or table != "rebalances" else Tag("p", {})
        rows = where.named("tr")[1:]
        assert len(rows) == min(len(told["rows"]), SHOWN_ROWS), table
        for shown, row in zip(rows, told["rows"], strict=False):
            cells = [tag for tag in shown.children if isinstance(tag, Tag)]
            for column, cell in zip(LISTINGS[table].columns, cells, strict=True):
                if column.name != "source":
                    check_cell(cell, row.get(column.name), column.form)


def check_cell(cell: Tag, value: Any, form: str) -> None:
    """What stands in a cell is the value of the JSON, in the form of the page."""
    whole = (cell.values("title") or [cell.text])[0]
    if value is None or value in ("", []):
        assert cell.text == "–"
    elif form == "number":
        assert float(whole.replace(",", "")) == pytest.approx(value, abs=0.05)
    elif form == "plain":
        assert cell.text == str(value)
    elif form == "time":
        assert cell.named("time")[0].attributes["datetime"] == iso(value)
    elif form == "ratio":
        assert float(cell.text.removesuffix(" %")) == pytest.approx(100 * value, abs=0.051)
    elif form == "text":
        assert cell.text == str(value)


def test_findings_and_lights_say_the_numbers_of_the_json(facts: dict[str, Facts], documents: dict[str, Tag]):
    document, told = documents["incidents"], facts["incidents"]
    for card, each in zip(document.with_class("finding"), told["findings"], strict=True):
        assert each["sentence"] in card.named("h3")[0].text
        times = [tag.attributes["datetime"] for tag in card.with_class("when")[0].named("time")]
        assert times == [iso(ms) for ms in (each["since_ms"], each["until_ms"]) if ms is not None]
    for light, area in zip(document.with_class("lights")[0].named("li"), told["areas"], strict=True):
        assert light.named("a")[0].text == area["title"]
        assert light.with_class("said")[0].text == area["sentence"]
        assert area["state"] in light.classes
        resolved = f"{area['resolved']} resolved" in light.with_class("counts")[0].text
        assert resolved is bool(area["resolved"])


@pytest.mark.parametrize("name", ["incidents", "healthy", "crowd"])
def test_every_graphic_has_words_and_a_table(facts: dict[str, Facts], documents: dict[str, Tag], name: str):
    document = documents[name]
    figures = document.named("figure")
    assert {figure.attributes["id"] for figure in figures} - {"when"} == {each["id"] for each in facts[name]["figures"]}
    for figure in figures:
        pictures = figure.find(lambda tag: tag.attributes.get("role") == "img")
        assert pictures
        assert all(len(each.named("title")) >= 1 and each.named("desc")[0].text for each in pictures)
        assert figure.with_class("twin")[0].named("table")


def test_a_twin_has_the_numbers_of_its_plot(facts: dict[str, Facts], documents: dict[str, Tag]):
    [drawn] = [each for each in facts["incidents"]["figures"] if each["id"] == "lag-records"]
    twin = by_id(documents["incidents"], "table-lag-records-twin")
    found = [[cell.text for cell in row.walk() if cell.name in ("td", "th")] for row in twin.named("tr")]
    assert found[0] == ["time", *(line["name"] for line in drawn["lines"])]
    for row, points in zip(found[1:], zip(*(line["points"] for line in drawn["lines"]), strict=True), strict=True):
        assert row[1:] == [f"{value:,}" for _, value in points]


def test_the_path_of_a_line_holds_the_values_themselves(facts: dict[str, Facts], documents: dict[str, Tag]):
    [drawn] = [each for each in facts["incidents"]["figures"] if each["id"] == "lag-seconds"]
    plot = by_id(documents["incidents"], "lag-seconds")
    for line in drawn["lines"]:
        [path] = [tag for tag in plot.named("path") if tag.attributes.get("data-name") == line["name"]]
        found = [tuple(map(float, pair.split(","))) for pair in re.split("[ML]", path.attributes["d"] or "")[1:]]
        assert found == [((ms - story.START_MS) / 1000, -value) for ms, value in line["points"]]


def test_points_far_from_each_other_are_not_joined():
    rows = [
        {
            "group": "g",
            "topic": "t",
            "topic_id": "t",
            "partition": 0,
            "window_start": story.at(second),
            "lag_records": 1,
        }
        for second in (0, 10, 20, 30, 40, 50, 60, 200, 210)
    ]
    document = read(page(facts_of(tables_of({"consumer_lag": rows}), run_of(), 0)))
    [path] = [tag for tag in by_id(document, "lag-records").named("path") if tag.attributes.get("data-name") == "g"]
    assert (path.attributes["d"] or "").count("M") == 2


# --- limits -----------------------------------------------------------------------------------------------------------


def test_long_tables_are_cut_and_offer_a_file(facts: dict[str, Facts], documents: dict[str, Tag]):
    document = documents["crowd"]
    where = by_id(document, "table-rebalances")
    assert len(where.named("tr")) == SHOWN_ROWS + 1
    assert "200 of 2,860 rows, running groups first, longest first" in where.text
    [link] = [tag for tag in where.named("a") if "download" in tag.attributes]
    address = link.attributes["href"] or ""
    assert len(address) <= CSV_BYTES
    lines = unquote(address.split(",", 1)[1]).splitlines()
    count = len(lines) - 1
    assert link.text == f"CSV, the first {count:,} of 2,860 rows"
    assert count > SHOWN_ROWS
    first = facts["crowd"]["tables"]["rebalances"]["rows"][0]
    assert dict(zip(lines[0].split(","), lines[1].split(","), strict=True))["group"] == first["group"]


def test_a_page_that_gets_too_large_tells_less_and_says_so(facts: dict[str, Facts], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.modules["ottla.spark.report.page"], "BYTES_MAX", 1_000_000)
    text = page(facts["crowd"])
    assert len(text.encode()) < 1_000_000
    document = read(text)
    assert "100 of 2,860 rows, running groups first, longest first" in by_id(document, "table-rebalances").text
    assert len(document.named("figure")) == len(facts["crowd"]["figures"]) + 1, "plots stay"


def test_all_groups_are_found_even_if_some_are_not_drawn(facts: dict[str, Facts], monkeypatch: pytest.MonkeyPatch):
    least = DETAILS[-1]._replace(drawn_groups=2)
    monkeypatch.setattr(sys.modules["ottla.spark.report.page"], "DETAILS", (least,))
    [script] = by_id(read(page(facts["crowd"])), "all-groups").named("script")
    groups = json.loads(script.text)
    assert [each[0] for each in groups] == [each["label"] for each in facts["crowd"]["tables"]["all_groups"]["rows"]]
    assert [at for at, (*_, rebalanced, _, _) in enumerate(groups) if rebalanced] == [0, 1]


def test_a_rule_on_many_subjects_is_one_card(documents: dict[str, Tag], facts: dict[str, Facts]):
    [card] = documents["crowd"].with_class("finding")
    assert f"{len(facts['crowd']['findings']) - 1} more like this" in card.text


def test_one_row_is_enough_for_every_plot():
    base = {"group": "g", "topic": "t", "topic_id": "t", "partition": 0, "window_start": story.at(1)}
    rows = {
        "rebalances": [rebalance("g", "consumer", 1, 1, 1.0)],
        "group_timeline": list(story.events("g", "consumer", [(1, "epoch_bumped", {"group_epoch": 1})])),
        "consumer_lag": [base | {"lag_records": 0, "lag_seconds": 0.0}],
        "share_delivery": [base | {"delivered": 0, "redelivered": 0}],
        "quorum_lag": [{"replica": 1, "window_start": story.at(1), "role": "voter", "lag_offsets_max": 0}],
    }
    document = read(page(facts_of(tables_of(rows), run_of(range={}), 0)))
    assert len(document.named("figure")) == 7
    assert "NaN" not in document.text
    assert "inf" not in " ".join(document.values("d"))


# --- form -------------------------------------------------------------------------------------------------------------


def test_tables_are_real(documents: dict[str, Tag]):
    for table in documents["incidents"].named("table"):
        assert table.named("caption")
        assert all(tag.attributes.get("scope") in ("row", "col") for tag in table.named("th"))
        for row in table.named("tbody")[0].named("tr"):
            assert row.named("th")
            assert all(tag.attributes["data-label"] for tag in row.named("td"))


def test_severity_is_never_colour_alone(documents: dict[str, Tag]):
    for tag in documents["incidents"].with_class("light"):
        assert re.match(r"[▲●○✓◐▸–] \w", tag.text), tag.text


@pytest.mark.parametrize("theme", THEMES)
def test_the_colours_of_plots_are_seen(theme: str, pages: dict[str, str]):
    at = THEMES[theme]
    found = tokens(pages["incidents"])
    page_colour = found["page"][at]
    assert contrast(found["line-strong"][at], page_colour) >= 3, "bars have an outline"
    assert contrast(found["warning"][at], page_colour) >= 3, "shaded spans have an outline"
    ramp = [contrast(found[f"s{step}"][at], page_colour) for step in range(5)]
    assert ramp == sorted(ramp), "more is further from the page"


def test_letters_can_be_read_on_the_hues_of_bands():
    found = tokens(shared("ground.css"))
    for theme, at in THEMES.items():
        for hue in range(8):
            assert contrast(found[f"h{hue}"][at], found["page"][at]) >= 3, (theme, hue)


def test_print_is_light_and_unfolded(pages: dict[str, str]):
    printed = pages["incidents"].split("@media print", 1)[1].split("</style>")[0]
    assert "color-scheme: light" in printed
    assert "details::details-content" in printed


def test_groups_can_be_searched_whatever_their_names_are():
    rows = [{"group": f"</script>{number}", "group_epoch": 1, "started": GENERATED_MS} for number in range(20)]
    made = page(facts_of(tables_of({"rebalances": rows}), run_of(), 0))
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', made)
    assert len(json.loads(data)) == 20
    assert json.loads(data)[0][0] == "</script>0"
