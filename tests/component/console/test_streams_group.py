"""Streams groups: tasks by member, and the topology with and without processors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ottla.testing
from ottla.console.addresses import href
from ottla.testing import Broker
from ottla.wire.types import StreamsGroupHeartbeatRequest
from tests.component.broker.description_requests import IN_MEMORY, PLUGIN, Push, description
from tests.component.broker.raw_client import RawClient
from tests.component.broker.streams_requests import join, topology
from tests.component.console.served import Browser

GROUP = "x/y ü ~"
DESCRIBED = "described"
PATH = href("groups", GROUP)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    at_once = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
    with ottla.testing.broker(**{PLUGIN: IN_MEMORY, **at_once}) as running:
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
    assert "The processors are not drawn: the cluster has no topology description" in page.words
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
