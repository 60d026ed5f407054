"""Who watches the traffic: what reaches a viewer, what is left out, and that nobody else pays for it."""

from __future__ import annotations

import pytest

from ottla.broker.telemetry import traffic
from ottla.broker.telemetry.traffic import FRAMES_PER_SECOND_MAX, PENDING_MAX, VIEWERS_MAX, Wanted
from ottla.explain.filters import make_filters
from ottla.wire.types import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.unit.broker.telemetry.watched import Watched, frames, status

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.fixture
def watched() -> Watched:
    return Watched()


def beat(watched: Watched, error_code: int = 0, client_id: str = "app") -> None:
    watched.exchange(BEAT, HeartbeatResponse(error_code=error_code), 4, client_id)


def test_nothing_is_attached_while_nobody_watches(watched: Watched):
    assert (watched.dispatch.tap, watched.dispatch.observers) == (None, [])
    first, second = watched.watch(), watched.watch()
    assert watched.dispatch.tap is watched.traffic
    first.close()
    assert watched.dispatch.observers == [watched.traffic]
    second.close()
    assert (watched.dispatch.tap, watched.dispatch.observers) == (None, [])


def test_a_request_is_seen_before_it_is_answered(watched: Watched):
    viewer = watched.watch()
    asked = watched.ask(BEAT, 4, size_bytes=40)
    (request,) = frames(viewer)
    assert (request["kind"], request["api"], request["version"], request["size_bytes"]) == (
        "request",
        "Heartbeat",
        4,
        44,
    )
    assert (request["client_id"], request["principal"], request["client"]) == ("app", "User:ann", "127.0.0.1:50000")
    watched.answer(asked, HeartbeatResponse(error_code=27), 10)
    (response,) = frames(viewer)
    assert (response["kind"], response["correlation_id"]) == ("response", request["correlation_id"])
    assert (response["errors"], response["text"]) == ({"REBALANCE_IN_PROGRESS": 1}, "")
    assert request["text"] == "group g"
    assert response["latency_ms"] >= 0
    assert response["at_us"] >= request["at_us"]


def test_a_response_is_shown_only_with_its_request(watched: Watched):
    asked = watched.ask(BEAT, 4)
    viewer = watched.watch()
    watched.answer(asked, HeartbeatResponse())
    assert frames(viewer) == []


def test_filters_choose_clients_and_apis(watched: Watched):
    by_client, by_api = watched.watch(client="work*"), watched.watch(api="ListGroups")
    beat(watched, client_id="worker-1")
    watched.exchange(ListGroupsRequest(), ListGroupsResponse(), 4, "app")
    assert {each["client_id"] for each in frames(by_client)} == {"worker-1"}
    assert [each["api"] for each in frames(by_api)] == ["ListGroups", "ListGroups"]


def test_errors_alone_come_with_their_requests(watched: Watched):
    viewer = watched.watch(errors_only=True)
    beat(watched)
    asked = watched.ask(BEAT, 4, size_bytes=40)
    assert frames(viewer) == []
    watched.answer(asked, HeartbeatResponse(error_code=25))
    shown = frames(viewer)
    assert [each["kind"] for each in shown] == ["request", "response"]
    assert shown[0]["size_bytes"] == 44
    assert shown[1]["errors"] == {"UNKNOWN_MEMBER_ID": 1}


def test_errors_at_any_level_count(watched: Watched):
    viewer = watched.watch(errors_only=True)
    found = FindCoordinatorResponse.Coordinator(key="g", node_id=-1, host="", port=-1, error_code=15)
    watched.exchange(FindCoordinatorRequest(coordinator_keys=("g",)), FindCoordinatorResponse(coordinators=(found,)), 4)
    assert [each["errors"] for each in frames(viewer)] == [{}, {"COORDINATOR_NOT_AVAILABLE": 1}]


def test_a_slow_viewer_loses_the_oldest_and_is_told(watched: Watched, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(traffic, "RING_FRAMES_MAX", 10)
    viewer = watched.watch()
    for _ in range(8):
        beat(watched)
    assert watched.rendered == 0, "nothing becomes text before the viewer takes it"
    watched.clock.advance(1_000)
    assert status(viewer)["dropped"] == 6
    for _ in range(8):
        beat(watched)
    assert frames(viewer)[0]["correlation_id"] == 12


def test_a_ring_holds_so_many_bytes(watched: Watched, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(traffic, "RING_BYTES_MAX", 1_000)
    viewer = watched.watch()
    for _ in range(5):
        watched.ask(BEAT, 4, size_bytes=396)
    assert len(frames(viewer)) == 2
    assert viewer.dropped == 3


def test_above_the_limit_one_in_so_many_is_shown(watched: Watched):
    viewer = watched.watch()
    shown = []
    for second in range(4):
        for _ in range(10 * FRAMES_PER_SECOND_MAX):
            beat(watched)
            shown += [second] * len(frames(viewer))
        watched.clock.advance(1_000)
    told = status(viewer)
    assert told["one_in"] == 20, "ten exchanges of two frames for each that may be shown"
    assert told["seen_per_second"] == 20 * FRAMES_PER_SECOND_MAX
    for second in range(4):
        assert shown.count(second) <= FRAMES_PER_SECOND_MAX + 1
    assert shown.count(3) > 0.5 * FRAMES_PER_SECOND_MAX
    watched.clock.advance(1_000)
    assert status(viewer)["one_in"] == 1


def test_a_sample_has_all_that_one_client_asks_in_turn(watched: Watched):
    viewer = watched.watch()
    apis = set()
    for _ in range(2):
        for _ in range(FRAMES_PER_SECOND_MAX):
            beat(watched)
            watched.exchange(ListGroupsRequest(), ListGroupsResponse(), 4)
            apis |= {each["api"] for each in frames(viewer)} if viewer.one_in > 1 else set()
        watched.clock.advance(1_000)
    assert apis == {"Heartbeat", "ListGroups"}


def test_text_is_made_for_a_short_time_at_once(watched: Watched, monkeypatch: pytest.MonkeyPatch):
    viewer = watched.watch()
    beat(watched)
    monkeypatch.setattr(traffic, "TAKE_NS_MAX", 0)
    assert frames(viewer) == []
    monkeypatch.undo()
    assert len(frames(viewer)) == 2


def test_so_many_watch_at_a_time(watched: Watched):
    viewers = [watched.watch() for _ in range(VIEWERS_MAX)]
    assert watched.traffic.is_full
    viewers[0].close()
    assert not watched.traffic.is_full


def test_requests_that_are_never_answered_are_forgotten(watched: Watched):
    viewer = watched.watch(errors_only=True)
    first = watched.ask(BEAT, 4)
    for _ in range(PENDING_MAX):
        watched.ask(BEAT, 4)
    watched.answer(first, HeartbeatResponse(error_code=25))
    assert frames(viewer) == []


def test_a_stream_ends_with_the_right_to_it(watched: Watched):
    viewer = watched.traffic.watch(Wanted(make_filters()), watched.text.frame, lambda viewer: None)
    assert viewer.take() is None
