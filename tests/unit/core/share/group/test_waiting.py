"""Answers that wait for state, when something goes wrong on the way."""

from __future__ import annotations

from ottla.core.coordinator.contract import Outcome
from ottla.core.share.group.effects import InitializeState, NewState, Refusal, refusals_of
from ottla.wire.errors import ErrorCode
from ottla.wire.types import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, ShareGroupHeartbeatRequest
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatResponse
from tests.unit.core.share.group.driver import GROUP, Driver

TOPIC_ID = bytes(range(16))
REFUSED = Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE, message="not now")


def test_a_join_that_is_not_written_is_refused():
    driver = Driver()
    driver.environment.topics.put("t", 1, ())
    request = ShareGroupHeartbeatRequest(GROUP, "A", 0, None, ("t",))
    result = driver.family.heartbeat(request, driver.context())
    assert not result.replies
    answer = driver.family.settled(result.after, REFUSED, driver.context()).replies[0].message
    expected = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer == ShareGroupHeartbeatResponse(error_code=expected, error_message="not now")
    assert list(driver.family.unloaded()) == []


def test_an_administrator_whose_wish_is_not_written_is_refused():
    driver = Driver()
    driver.environment.topics.put("t", 1, ())
    kind = AlterShareGroupOffsetsRequest
    topic = kind.AlterShareGroupOffsetsRequestTopic("t", (kind.AlterShareGroupOffsetsRequestPartition(0, 5),))
    result = driver.family.alter_offsets(kind(GROUP, (topic,)), driver.context())
    answer = driver.family.settled(result.after, REFUSED, driver.context()).replies[0].message
    expected = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer == AlterShareGroupOffsetsResponse(error_code=expected, error_message="not now")


def test_a_group_that_is_gone_when_its_state_is_made():
    driver = Driver()
    driver.environment.topics.put("t", 1, ())
    request = ShareGroupHeartbeatRequest(GROUP, "A", 0, None, ("t",))
    driver.apply(driver.family.heartbeat(request, driver.context()))
    driver.replay(*driver.group.tombstones())
    driver.settle()
    assert driver.answers == [
        ShareGroupHeartbeatResponse(
            member_id="A", member_epoch=2, heartbeat_interval_ms=5_000, assignment=driver.answers[0].assignment
        )
    ]
    assert driver.table.get(GROUP) is None


def test_an_outcome_without_details_stands_for_all():
    effect = InitializeState("share", 1, GROUP, 2, (NewState(TOPIC_ID, 0, -1), NewState(TOPIC_ID, 1, -1)), False)
    refusal = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "not now")
    assert refusals_of(effect, REFUSED) == {(TOPIC_ID, 0): refusal, (TOPIC_ID, 1): refusal}
    assert refusals_of(effect, REFUSED._replace(value={(TOPIC_ID, 1): refusal})) == {(TOPIC_ID, 1): refusal}
    assert refusals_of(effect, Outcome()) == {}
