"""Streams groups: tasks by member, and the topology with and without processors."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import ottla.testing
from ottla.console.addresses import href
from ottla.testing import Broker
from ottla.wire.types import StreamsGroupHeartbeatRequest
from tests.component.broker.description_requests import IN_MEMORY, PLUGIN, Push, description
from tests.component.broker.raw_client import RawClient
from tests.component.broker.streams_requests import join, topology
from tests.component.console.large_topology import large_description
from tests.component.console.served import Browser

GROUP = "x/y ü ~"
DESCRIBED = "described"
LARGE = {"large": (10, 20), "huge": (9, 50)}
"""Groups with subtopologies, and processors in each of them."""
PATH = href("groups", GROUP)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    at_once = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
    for_long = {f"group_streams_{each}session_timeout_ms": 3_600_000 for each in ("", "max_")}
    with ottla.testing.broker(**{PLUGIN: IN_MEMORY, **at_once, **for_long}) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def source(broker: Broker) -> Iterator[str]:
    """The topic that both groups read: in `x/y ü ~`, one member has all tasks, and another has just come."""
    raw = RawClient.at(broker.bootstrap_servers)
    name = raw.topic(partitions=2).name
    declared = topology(name, changelog=f"{name}-store-changelog")
    epoch = raw.ask(join(GROUP, "first", declared), 0).member_epoch
    for _ in range(3):
        epoch = raw.ask(_heartbeat(GROUP, "first", epoch, 0, 1), 0).member_epoch
    raw.ask(join(GROUP, "second", declared), 0)
    raw.ask(join(DESCRIBED, "A", topology(name)), 1)
    assert raw.ask(Push(DESCRIBED, "A", 0, description(name)), 0).error_code == 0
    for group, (parts, count) in LARGE.items():
        raw.ask(join(group, "A", topology(name)), 1)
        assert raw.ask(Push(group, "A", 0, large_description(name, parts, count)), 0).error_code == 0
    yield name
    raw.close_all()


def _heartbeat(group: str, member: str, epoch: int, *active: int) -> StreamsGroupHeartbeatRequest:
    tasks = (StreamsGroupHeartbeatRequest.TaskIds("0", active),)
    return StreamsGroupHeartbeatRequest(group, member, epoch, -1, active_tasks=tasks, standby_tasks=(), warmup_tasks=())


def test_tasks_by_member(browser: Browser):
    data = browser.until(f"{PATH}.json", lambda data: len(data["members"]) == 2 and bool(data["tasks"]))
    assert data["kind"] == "streams"
    assert {each["task"] for each in data["tasks"]} == {"0_0", "0_1"}
    assert {each["process"] for each in data["members"]} == {"first", "second"}
    states = {each["id"]: each["state"] for each in data["members"]}
    assert states == {"first": "moving", "second": "waiting"}
    assert {(each["member"], each["standing"]) for each in data["tasks"]} == {
        ("first", "running"),
        ("first", "leaving"),
        ("second", "waiting"),
    }
    page = browser.page(PATH)
    for look in ("active", "leaving", "waiting"):
        assert f'class="task task-{look}" title="0_' in page.text
    assert "still held by first" in page.words
    assert "Tasks by member" in page.words
    assert f"{PATH}/topology" in page.links
    assert browser.page(f"{PATH}/timeline").status == 200
    assert browser.page(f"{PATH}/offsets").status == 200


def test_without_a_description_subtopologies_are_drawn_with_their_topics(browser: Browser, source: str):
    browser.until(f"{PATH}.json", lambda data: bool(data["tasks"]))
    data = browser.twin(f"{PATH}/topology.json")["data"]
    (part,) = data["subtopologies"]
    assert (part["reads"], part["tasks"], part["nodes"]) == ([source], 2, None)
    assert part["changelogs"] == [f"{source}-store-changelog"]
    page = browser.page(f"{PATH}/topology")
    assert "Processors are not drawn: the cluster has no topology description" in page.words
    assert 'class="drawing"' in page.text
    assert "0: 2 tasks" in page.words


def test_a_stored_description_is_drawn_with_its_processors(browser: Browser, source: str):
    path = f"/groups/{DESCRIBED}/topology"
    data = browser.until(f"{path}.json", lambda data: data["why_no_processors"] is None)
    assert [each["name"] for each in data["subtopologies"][0]["nodes"]] == ["in", "count", "out"]
    assert [each["is_global"] for each in data["subtopologies"]] == [False, True]
    page = browser.page(path)
    for words in (f"source in ◀ {source}", "processor count [counts]", "sink out ▶ results"):
        assert words in page.words
    assert "<style" not in page.text
    assert "style=" not in page.text
    assert "subtopology 0" not in browser.page(f"{path}?subtopology=1").text.partition("<pre")[2]
    assert browser.ask(f"{path}?subtopology=9").status == 400


def test_subtopologies_fold_and_open(browser: Browser):
    path = f"/groups/{DESCRIBED}/topology"
    data = browser.until(f"{path}.json", lambda data: data["why_no_processors"] is None)
    assert data["folded"] == []
    folded = browser.page(f"{path}?open=1")
    assert browser.twin(f"{path}.json?open=1")["data"]["folded"] == ["0"]
    assert "subtopology 0: 3 processors, 2 tasks" in folded.words
    assert "processor count [counts]" in folded.words, "the text has everything"
    assert f"{path}?open=all" in folded.links
    assert "fold all" in folded.words
    assert browser.ask(f"{path}?open=7").status == 400


def test_the_reader_chooses_how_it_is_drawn(browser: Browser, source: str):
    path = f"/groups/{DESCRIBED}/topology"
    whole, half = browser.page(path), browser.page(f"{path}?zoom=50")
    sizes = [int(re.findall(r'class="drawing[^"]*" width="(\d+)"', each.text)[0]) for each in (whole, half)]
    assert sizes[1] == round(sizes[0] / 2)
    assert 'class="drawing fit"' in browser.page(f"{path}?zoom=fit").text
    assert 'class="box store"' in whole.text
    assert 'class="box store"' not in browser.page(f"{path}?stores=0").text
    by_colour = {each: browser.page(f"{PATH}/topology?colour={each}").text for each in ("member", "process", "lag")}
    assert re.search("<title>A [^<]*: 2 of 2 tasks</title>", by_colour["member"])
    assert "<title>A process first: 2 of 2 tasks</title>" in by_colour["process"]
    assert "<title>0_0: not known</title>" in by_colour["lag"]
    kept = [each for each in half.links if "names=full" in each]
    assert kept == [f"{path}?zoom=50&amp;names=full"]
    for wrong in ("zoom=3", "names=long", "stores=2", "colour=age"):
        assert browser.ask(f"{path}?{wrong}").status == 400, wrong


def test_a_large_topology_is_folded_at_first_and_has_short_names(browser: Browser):
    path = "/groups/large/topology"
    data = browser.until(f"{path}.json", lambda data: data["why_no_processors"] is None)
    assert len(data["folded"]) == 10
    assert browser.page(path).text.count('class="box subtopology"') == 10
    opened = browser.page(f"{path}?open=all")
    assert opened.text.count('class="box processor"') == 10 * 18
    assert ">mapvalues 1</text>" in opened.text
    assert "<title>processor KSTREAM-MAPVALUES-0000000001</title>" in opened.text
    assert ">KSTREAM-MAPVALUES-0000000001</text>" in browser.page(f"{path}?open=0&names=full").text.replace(
        "-</text>", ""
    )


def test_of_a_huge_topology_one_subtopology_is_open_at_a_time(browser: Browser):
    path = "/groups/huge/topology"
    data = browser.until(f"{path}.json", lambda data: data["why_no_processors"] is None)
    assert len(data["folded"]) == 9
    assert browser.twin(f"{path}.json?open=all")["data"]["folded"] == data["folded"]
    page = browser.page(path)
    assert f"{path}?subtopology=8" in page.links
    assert "open all" not in page.words
    alone = browser.page(f"{path}?subtopology=8")
    assert alone.text.count('class="box processor"') == 48
    assert path in alone.links, "folding leads back"


def test_the_drawing_is_a_file_too(browser: Browser):
    browser.until(f"{PATH}.json", lambda data: bool(data["tasks"]))
    answer = browser.page(f"{PATH}/topology.svg")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "style-src 'sha256-" in answer.headers["content-security-policy"]
    assert answer.text.startswith("<svg ")
    assert "x/y ü ~" in answer.text
    stranger = Browser(browser.server, browser.watcher)
    assert stranger.ask(f"{PATH}/topology.svg").status == 303
    assert browser.ask("/groups/none/topology.svg").status == 404


def test_the_style_of_drawings_is_served(browser: Browser):
    assert "svg.drawing" in browser.page("/static/drawing.css").text
