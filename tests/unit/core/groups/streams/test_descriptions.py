"""The gate and the push where scenarios do not reach: every condition by itself, and notes that cannot be written."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ottla.core.coordinator.contract import Context, Outcome, Reply
from ottla.core.groups.streams.configuration import Status
from ottla.core.groups.streams.description_epochs import DescriptionEpochs
from ottla.core.groups.streams.description_request import may_request_description, should_request_description
from ottla.core.groups.streams.description_update import DescriptionUpdates
from ottla.core.groups.streams.group import StreamsGroup
from ottla.core.groups.streams.members import StreamsGroupMember
from ottla.core.groups.streams.topology import Topology
from ottla.core.groups.table import GroupTable
from ottla.wire.errors import ErrorCode
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from ottla.wire.types.streams_group_topology_description_update import StreamsGroupTopologyDescriptionUpdateRequest
from simulation.environment import Environment

WINDOW_MS = 30_000
_Response = StreamsGroupHeartbeatResponse


def context(now_ms: int = 0, *, plugin: str = "some.Plugin", token: str = "A") -> Context:
    environment = Environment()
    if plugin:
        environment.settings.set("group.streams.topology.description.plugin.class", plugin)
    return Context(now_ms, now_ms, environment.world, token)


def group(**fields: Any) -> StreamsGroup:
    made = StreamsGroup("g")
    made.topology = Topology(0)
    made.members["A"] = StreamsGroupMember("A")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


# --- the gate ---------------------------------------------------------------------------------------------------------

STALE = _Response.Status(Status.STALE_TOPOLOGY, "")
DELAYED = _Response.Status(Status.ASSIGNMENT_DELAYED, "")


def asked(group: StreamsGroup, now_ms: int = 0, **given: Any) -> bool:
    response = _Response(error_code=given.get("error_code", 0), status=given.get("status", ()))
    return should_request_description(
        group,
        response,
        context(now_ms, plugin=given.get("plugin", "some.Plugin")),
        api_version=given.get("api_version", 1),
        member_epoch=given.get("member_epoch", 0),
    )


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        ({}, {"api_version": 0}),
        ({}, {"plugin": ""}),
        ({}, {"member_epoch": -1}),
        ({}, {"member_epoch": -2}),
        ({}, {"error_code": ErrorCode.FENCED_MEMBER_EPOCH}),
        ({"topology": None}, {}),
        ({"topology": Topology(-1)}, {}),
        ({"description_epochs": DescriptionEpochs(0, -1)}, {}),
        ({"description_epochs": DescriptionEpochs(-2, 0)}, {}),
        ({}, {"status": (DELAYED, STALE)}),
    ],
)
def test_each_condition_alone_keeps_the_flag_off_and_the_back_off_untouched(
    fields: dict[str, Any], given: dict[str, Any]
) -> None:
    made = group(**fields)
    assert not asked(made, **given)
    made.topology, made.description_epochs = Topology(0), DescriptionEpochs()
    assert asked(made)


@pytest.mark.parametrize("epochs", [(-1, -1), (-2, -1), (-2, 5), (3, -1), (-1, 3)])
def test_what_is_not_stored_and_not_refused_at_this_epoch_is_asked_for(epochs: tuple[int, int]) -> None:
    made = group(description_epochs=DescriptionEpochs(*epochs))
    assert asked(made, status=(DELAYED,))
    assert not asked(made, WINDOW_MS - 1)
    assert asked(made, WINDOW_MS)


def test_quick_look_never_hides_a_member_that_would_be_asked() -> None:
    for epochs in ((-1, -1), (-2, -1), (0, -1), (-2, 0), (3, 3)):
        for now_ms in (0, WINDOW_MS - 1, WINDOW_MS):
            made = group(description_epochs=DescriptionEpochs(*epochs))
            asked(made)
            quick = may_request_description(made, 1, now_ms, has_plugin=True)
            assert quick or not asked(made, now_ms)
    assert may_request_description(StreamsGroup("new"), 1, 0, has_plugin=True)
    assert not may_request_description(group(), 0, 0, has_plugin=True)
    assert not may_request_description(group(), 1, 0, has_plugin=False)


# --- notes that cannot be written -------------------------------------------------------------------------------------


class PushedGroup:
    """One group, and pushes whose outcomes a test decides."""

    def __init__(self) -> None:
        self.group = group()
        self.table = GroupTable()
        self.table.put(self.group)
        self.updates = DescriptionUpdates("streams", self.table)

    def settle(self, subject: Any, outcome: Outcome) -> Any:
        return self.updates.subjects[type(subject)](subject, outcome, context())

    def note(self, outcome: Outcome) -> Reply:
        """Push, let the plugin take it, and let the note end so."""
        request = StreamsGroupTopologyDescriptionUpdateRequest("g", "A")
        (effect,) = self.settle(self.updates.update(request, context()).after, Outcome()).effects
        (reply,) = self.settle(self.settle(effect, Outcome()).after, outcome).replies
        assert list(self.updates.tokens()) == []
        assert isinstance(reply, Reply)
        return reply


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        (ErrorCode.UNKNOWN_SERVER_ERROR, True),
        (ErrorCode.NOT_COORDINATOR, False),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, False),
    ],
)
def test_note_that_cannot_be_written_is_the_answer(code: ErrorCode, waits: bool) -> None:
    pushed = PushedGroup()
    answer = pushed.note(Outcome(code, message="the disk"))
    assert (answer.token, answer.message.error_code, answer.message.error_message) == ("A", code, "the disk")
    assert pushed.group.back_off.is_active(0, WINDOW_MS - 1) is waits


def test_note_that_is_written_ends_the_back_off_of_its_epoch_only() -> None:
    pushed = PushedGroup()
    pushed.group.back_off.arm_if_not_active(0, 0, lambda: 0.5)
    assert pushed.note(Outcome()).message.error_code == 0
    assert not pushed.group.back_off.is_active(0, 1)
    pushed.group.back_off.arm_if_not_active(1, 0, lambda: 0.5)
    pushed.note(Outcome())
    assert pushed.group.back_off.is_active(1, 1)


def test_parked_pushes_are_told_when_leadership_is_lost() -> None:
    pushed = PushedGroup()
    pushed.updates.update(StreamsGroupTopologyDescriptionUpdateRequest("g", "A"), context())
    assert list(pushed.updates.tokens()) == ["A"]


def test_mark_is_not_written_twice() -> None:
    pushed = PushedGroup()
    request = StreamsGroupTopologyDescriptionUpdateRequest("g", "A")
    (record,) = pushed.updates.update(request, context()).records
    assert record.value.stored_description_topology_epoch == -2
    pushed.group.replay_group(record.key, replace(record.value))
    assert list(pushed.updates.update(request, context()).records) == []
