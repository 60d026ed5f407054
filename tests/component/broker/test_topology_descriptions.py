"""Topology descriptions (KIP-1331) over a real node: who is asked, pushes, describe, delete, failures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.broker.node import StartError
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)
from tests.component.broker.description_plugins import Unreliable
from tests.component.broker.description_requests import IN_MEMORY, IN_TOPIC, Push, described, description, node, push
from tests.component.broker.raw_client import RawClient, RunningNode, running_node
from tests.component.broker.streams_requests import join, topology

PLACE = "tests.component.broker.description_plugins"
_Beat = StreamsGroupHeartbeatRequest
UPDATE_FAILED = ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with node(tmp_path_factory.mktemp("descriptions"), f"{PLACE}.Unreliable") as made:
        yield made


def start(running: RunningNode, group_id: str, *, version: int = 1) -> bool:
    """Join as member A; whether it is asked."""
    source = running.client.topic().name
    answer = running.client.ask(join(group_id, "A", topology(source)), version)
    assert answer.error_code == 0
    return bool(answer.topology_description_required)


def beat(running: RunningNode, group_id: str, member_epoch: int = 2) -> bool:
    answer = running.client.ask(_Beat(group_id, "A", member_epoch, 0), 1)
    assert answer.error_code == 0
    return bool(answer.topology_description_required)


def status(running: RunningNode, group_id: str) -> int:
    (row,) = described(running, group_id)
    assert (row.topology_description is not None) == (row.topology_description_status == 3)
    return int(row.topology_description_status)


def delete(running: RunningNode, *group_ids: str, version: int = 3) -> dict[str, tuple[int, str | None]]:
    results = running.client.ask(DeleteGroupsRequest(group_ids), version).results
    return {each.group_id: (each.error_code, each.error_message) for each in results}


def leave(running: RunningNode, group_id: str) -> None:
    assert running.client.ask(_Beat(group_id, "A", -1), 1).error_code == 0


def plugin_of(running: RunningNode) -> Unreliable:
    assert running.node.descriptions is not None
    plugin = running.node.descriptions._plugin
    assert isinstance(plugin, Unreliable)
    return plugin


def _wait_for_call(running: RunningNode, *calls: tuple[Any, ...]) -> None:
    """Wait until the plugin was called so, as many times as it stands there."""
    made = plugin_of(running).calls
    running.until(lambda: all(made.count(call) >= calls.count(call) for call in calls))


class Removal:
    """A group whose only member leaves while its push is under way, and which somebody deletes. Both wait."""

    def __init__(self, running: RunningNode, group_id: str) -> None:
        start(running, group_id)
        advertised = running.node.advertised["PLAINTEXT"]
        self._pushing, self._deleting = (RawClient(advertised.host, advertised.port).connection for _ in range(2))
        self._push = self._pushing.send(Push(group_id, "A", 0, description("t")), 0)
        _wait_for_call(running, ("set", group_id, 0))
        leave(running, group_id)
        running.advance(10_000)
        self._delete = self._deleting.send(DeleteGroupsRequest((group_id,)), 3)
        assert running.node.descriptions is not None
        waiting = running.node.descriptions._order._waiting
        running.until(lambda: len(waiting[group_id]) == 1)

    def answers(self) -> list[tuple[int, str | None]]:
        """Of the push and of the delete."""
        pushed = self._pushing.receive(93, 0, self._push)
        (deleted,) = self._deleting.receive(42, 3, self._delete).results
        self._pushing.close()
        self._deleting.close()
        return [(each.error_code, each.error_message) for each in (pushed, deleted)]


# --- all the way ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plugin", [IN_MEMORY, IN_TOPIC])
def test_a_description_is_asked_for_pushed_and_shown(tmp_path: Path, plugin: str) -> None:
    with node(tmp_path, plugin) as running:
        assert start(running, "g")
        assert status(running, "g") == 1
        assert push(running, "g") == (0, None)
        assert not beat(running, "g")
        (row,) = described(running, "g")
        assert row.topology_description_status == 3
        sent = description("t")
        shown = row.topology_description
        assert repr(shown).replace("StreamsGroupDescribeResponse", "") == repr(sent).replace(
            "StreamsGroupTopologyDescriptionUpdateRequest", ""
        )
        running.advance(3_600_000)


def test_fields_that_do_not_fit_a_node_s_type_are_ignored(running: RunningNode) -> None:
    kind = Push.TopologyDescriptionNode
    nodes = tuple(kind("x", node_type, ("t",), "u", ("s",)) for node_type in (1, 2, 3))
    start(running, "overfull")
    sent = Push.TopologyDescription((Push.TopologyDescriptionSubtopology("0", nodes),))
    assert push(running, "overfull", topology_description=sent) == (0, None)
    (row,) = described(running, "overfull")
    shown = [
        (each.source_topics, each.sink_topic, each.stores) for each in row.topology_description.subtopologies[0].nodes
    ]
    assert shown == [(("t",), None, ()), ((), None, ("s",)), ((), "u", ())]


def test_flag_is_one_zero_one_at_0_23_and_37_seconds(running: RunningNode) -> None:
    assert start(running, "patient")
    running.advance(23_000)
    assert not beat(running, "patient")
    running.advance(14_000)
    assert beat(running, "patient")


def test_v0_members_are_not_asked_and_silence_nobody(running: RunningNode) -> None:
    assert not start(running, "mixed", version=0)
    assert beat(running, "mixed")


def test_refused_pushes_do_not_delay_anybody(running: RunningNode) -> None:
    start(running, "strangers")
    running.advance(37_000)
    kind = Push.TopologyDescriptionNode
    odd_node = Push.TopologyDescription((Push.TopologyDescriptionSubtopology("0", (kind("x", 4),)),))
    sink = Push.TopologyDescriptionGlobalStore(kind("x", 3), kind("y", 2))
    odd_store = Push.TopologyDescription((), (sink,))
    assert push(running, "strangers", member_id="B")[0] == ErrorCode.UNKNOWN_MEMBER_ID
    assert push(running, "nobody")[0] == ErrorCode.GROUP_ID_NOT_FOUND
    for fields in (
        {"topology_epoch": 1},
        {"topology_epoch": -1},
        {"topology_description": odd_node},
        {"topology_description": odd_store},
        {"member_id": " "},
        {"group_id": ""},
    ):
        assert push(running, "strangers", **fields)[0] == ErrorCode.INVALID_REQUEST
    assert beat(running, "strangers")


@pytest.mark.parametrize(
    ("group_id", "message"), [("failing", "no space"), ("crashing", "'x'"), ("hanging", "not responded within 30 s")]
)
def test_failures_for_now_are_asked_again_after_twice_the_time(
    running: RunningNode, group_id: str, message: str
) -> None:
    assert start(running, group_id)
    if group_id == "hanging":
        connection = running.client.connect()
        number = connection.send(Push(group_id, "A", 0, description("t")), 0)
        _wait_for_call(running, ("set", "hanging", 0))
        assert not beat(running, group_id)  # heartbeats go on
        running.advance(30_000)
        answer = connection.receive(93, 0, number)
        code, text = answer.error_code, answer.error_message
    else:
        code, text = push(running, group_id)
    assert code == UPDATE_FAILED
    assert message in (text or "")
    assert status(running, group_id) == 1
    running.advance(44_000)
    assert not beat(running, group_id)
    running.advance(30_000)
    assert beat(running, group_id)


def test_refused_for_good_is_never_asked_again(running: RunningNode) -> None:
    start(running, "refusing")
    assert push(running, "refusing") == (UPDATE_FAILED, "too many nodes")
    for _ in range(200):
        running.advance(40_000)
        assert not beat(running, "refusing")
    assert status(running, "refusing") == 1


@pytest.mark.parametrize("group_id", ["raises", "gives nothing"])
def test_plugin_that_is_not_asynchronous_is_refused_for_good(tmp_path: Path, group_id: str) -> None:
    with node(tmp_path, f"{PLACE}.NotAsynchronous") as running:
        start(running, group_id)
        code, message = push(running, group_id)
        assert (code, "secret" in (message or "")) == (UPDATE_FAILED, False)
        running.advance(4_000_000)
        assert not beat(running, group_id)


def test_descriptions_that_cannot_be_had_do_not_hide_others(running: RunningNode) -> None:
    names = ("unreadable", "nonsense", "forgetting", "fine")
    for name in names:
        start(running, name)
        assert push(running, name)[0] == 0
    assert [each.topology_description_status for each in described(running, *names)] == [2, 2, 1, 3]
    (row,) = running.client.ask(StreamsGroupDescribeRequest(("fine",)), 1).groups
    assert (row.topology_description_status, row.topology_description) == (0, None)
    (missing,) = described(running, "missing")
    assert (missing.error_code, missing.topology_description_status) == (ErrorCode.GROUP_ID_NOT_FOUND, 0)


# --- deleting ---------------------------------------------------------------------------------------------------------


def test_groups_whose_description_cannot_be_deleted_stay(running: RunningNode) -> None:
    for name in ("kept", "goes"):
        start(running, name)
        push(running, name)
        assert delete(running, name)[name][0] == ErrorCode.NON_EMPTY_GROUP
        leave(running, name)
    assert ("delete", "kept") not in plugin_of(running).calls
    found = delete(running, "kept", "goes")
    assert found["goes"] == (0, None)
    assert found["kept"][0] == ErrorCode.GROUP_DELETION_FAILED
    assert "secret" not in (found["kept"][1] or "secret")
    assert delete(running, "kept", version=2) == {"kept": (ErrorCode.UNKNOWN_SERVER_ERROR, None)}
    assert described(running, "kept")[0].group_state == "Empty"
    plugin_of(running).is_broken = False
    assert delete(running, "kept") == {"kept": (0, None)}
    assert described(running, "kept")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    plugin_of(running).is_broken = True


def test_group_whose_push_is_under_way_leaves_nothing_behind(tmp_path: Path) -> None:
    with node(tmp_path, f"{PLACE}.Unreliable") as running:
        plugin = plugin_of(running)
        removal = Removal(running, "slow")
        running.change(plugin.may_end.set)
        assert removal.answers() == [(0, None), (0, None)]
        assert plugin.calls == [("set", "slow", 0), ("delete", "slow")]
        assert not plugin.holds("slow")
        assert described(running, "slow")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_delete_does_not_wait_for_a_push_longer_than_the_push_may_take(tmp_path: Path) -> None:
    with node(tmp_path, f"{PLACE}.Unreliable") as running:
        removal = Removal(running, "hanging")
        running.advance(20_000)
        assert removal.answers() == [(UPDATE_FAILED, "the plugin has not responded within 30 s"), (0, None)]


def test_delete_does_not_wait_for_ever_for_a_push_that_cannot_be_cancelled(tmp_path: Path) -> None:
    with node(tmp_path, f"{PLACE}.Unreliable") as running:
        removal = Removal(running, "slow and stubborn")
        running.advance(20_000)
        running.advance(10_000)
        (_, deleted) = removal.answers()
        assert deleted[0] == ErrorCode.GROUP_DELETION_FAILED
        running.change(plugin_of(running).may_end.set)
        assert delete(running, "slow and stubborn") == {"slow and stubborn": (0, None)}
        assert not plugin_of(running).holds("slow and stubborn")


def test_broker_that_stops_sends_pushes_and_deletes_elsewhere(tmp_path: Path) -> None:
    with node(tmp_path, f"{PLACE}.Unreliable") as running:
        removal = Removal(running, "hanging")
    assert removal.answers() == [(ErrorCode.NOT_COORDINATOR, None)] * 2


def test_expired_group_goes_when_the_plugin_has_forgotten_it(tmp_path: Path) -> None:
    with node(tmp_path, f"{PLACE}.Unreliable", offsets_retention_check_interval_ms=60_000) as running:
        start(running, "kept")
        push(running, "kept")
        leave(running, "kept")
        for turn in range(1, 4):
            running.advance(60_000)
            _wait_for_call(running, *[("delete", "kept")] * turn)
            assert described(running, "kept")[0].group_state == "Empty"
        plugin_of(running).is_broken = False
        running.advance(60_000)
        _wait_for_call(running, *[("delete", "kept")] * 4)
        running.advance(60_000)
        assert described(running, "kept")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert plugin_of(running).calls.count(("delete", "kept")) == 4
        assert _metric(running, "cleanup_eligible_total") == 4
        assert _metric(running, "cleanup_cycle_total") >= 5


def _metric(running: RunningNode, name: str) -> int:
    prefix = "kafka_server_group_coordinator_metrics_streams_group_topology_description_"
    (line,) = [each for each in running.node.metrics.page().splitlines() if each.startswith(f"{prefix}{name} ")]
    return int(line.split()[1])


# --- the plugin -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Plugin", "not a dotted name"),
        ("no.such.module.Plugin", "cannot be imported"),
        (f"{PLACE}.Missing", "has no Missing"),
        (f"{PLACE}.NoPlugin", "not derived from TopologyDescriptionPlugin"),
        (f"{PLACE}.Unfinished", "abstract"),
        (f"{PLACE}.CannotBeMade", "no licence"),
        (f"{PLACE}.CannotStart", "over there"),
    ],
)
def test_node_does_not_start_without_its_plugin(tmp_path: Path, name: str, reason: str) -> None:
    place = {"group_streams_topology_description_plugin_place": "over there"} if "Start" in name else {}
    with (
        pytest.raises(StartError, match=f"group.streams.topology.description.plugin.class: .*{reason}"),
        node(tmp_path, name, **place),
    ):
        pass


def test_without_a_plugin_nobody_is_asked(tmp_path: Path) -> None:
    with running_node(tmp_path, ManualClock(), group_streams_initial_rebalance_delay_ms=0) as running:
        assert not start(running, "g")
        code, message = push(running, "g")
        assert (code, message is not None) == (ErrorCode.UNSUPPORTED_VERSION, True)
        assert status(running, "g") == 1
        leave(running, "g")
        assert delete(running, "g") == {"g": (0, None)}


def test_descriptions_in_a_topic_survive_restarts(tmp_path: Path) -> None:
    clock = ManualClock()
    with node(tmp_path, IN_TOPIC, clock) as running:
        for name in ("stays", "goes"):
            start(running, name)
            push(running, name)
        leave(running, "goes")
        assert delete(running, "goes") == {"goes": (0, None)}
    with node(tmp_path, IN_TOPIC, clock) as running:
        assert not beat(running, "stays")
        assert status(running, "stays") == 3
        table = running.node.replicas.get("__ottla_topology_descriptions", 0)
        assert table is not None
        assert table.log_end_offset == 3


def test_descriptions_in_a_topic_are_read_again_by_its_next_leader(tmp_path: Path) -> None:
    with node(tmp_path, IN_TOPIC) as running:
        start(running, "g")
        push(running, "g")
        replica = running.node.replicas.get("__ottla_topology_descriptions", 0)
        assert replica is not None

        def change(**fields: int) -> None:
            running.change(lambda: [setattr(replica, name, value) for name, value in fields.items()])

        leader, epoch = replica.leader, replica.leader_epoch
        change(leader=leader + 1, leader_epoch=epoch + 1)
        assert status(running, "g") == 2
        change(leader=leader, leader_epoch=epoch + 2)
        assert status(running, "g") == 3


def test_a_topic_of_descriptions_that_somebody_deletes_is_made_anew(tmp_path: Path) -> None:
    with node(tmp_path, IN_TOPIC) as running:
        start(running, "g")
        push(running, "g")
        topic = DeleteTopicsRequest.DeleteTopicState("__ottla_topology_descriptions")
        assert running.client.ask(DeleteTopicsRequest((topic,)), 6).responses[0].error_code == 0
        assert status(running, "g") == 1
        assert push(running, "g") == (0, None)
        assert status(running, "g") == 3


def test_descriptions_in_memory_are_gone_with_a_restart_and_that_is_told(tmp_path: Path) -> None:
    with node(tmp_path, IN_MEMORY) as running:
        start(running, "g")
        push(running, "g")
    with node(tmp_path, IN_MEMORY) as running:
        assert not beat(running, "g")
        assert status(running, "g") == 1


def test_description_larger_than_the_topic_takes_is_refused_for_good(tmp_path: Path) -> None:
    with node(tmp_path, IN_TOPIC, message_max_bytes=2_000) as running:
        start(running, "g")
        code, message = push(running, "g", topology_description=description("t" * 3_000))
        assert code == UPDATE_FAILED
        assert "bytes are more than" in (message or "")
        running.advance(4_000_000)
        assert not beat(running, "g")


def test_calls_are_counted(tmp_path: Path) -> None:
    with node(tmp_path, f"{PLACE}.Unreliable") as running:
        for name in ("kept", "failing", "unreadable"):
            start(running, name)
            push(running, name)
            described(running, name)
            leave(running, name)
        delete(running, "kept", "unreadable")
        calls = [f"{call}_{outcome}_total" for call in ("set", "get", "delete") for outcome in ("success", "error")]
        assert [_metric(running, each) for each in calls] == [2, 1, 1, 1, 1, 1]
