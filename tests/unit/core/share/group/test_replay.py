"""Records of share groups in any order, as logs of others and compacted ones have them."""

from __future__ import annotations

import pytest

from ottla.core.coordinator.records import tombstone
from ottla.core.share.group.members import ShareGroupMember
from ottla.core.share.group.records import (
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    member_tombstones,
    state_record,
    target_epoch_record,
    target_record,
)
from ottla.core.share.group.state_topics import NO_STATE, StateTopic, StateTopics
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_share import ShareGroupTargetAssignmentMetadataKey
from tests.unit.core.share.group.driver import GROUP, Driver

TOPIC_ID = bytes(range(16))
MEMBER = ShareGroupMember(
    member_id="A",
    member_epoch=3,
    previous_member_epoch=2,
    rack_id="r",
    client_id="c",
    client_host="/10.0.0.1",
    names=frozenset(["t", "u"]),
    assigned={TOPIC_ID: (0, 2)},
)
STATE = StateTopics({TOPIC_ID: StateTopic("t", frozenset([1]))}, {TOPIC_ID: StateTopic("t", frozenset([0, 2]))}, {})
RECORDS = [
    member_record(GROUP, MEMBER),
    epoch_record(GROUP, 3, -7),
    target_record(GROUP, "A", {TOPIC_ID: (0, 2)}),
    target_epoch_record(GROUP, 3, 1_000),
    current_record(GROUP, MEMBER),
    state_record(GROUP, STATE),
]


def test_a_group_is_what_its_records_say():
    driver = Driver()
    driver.replay(*RECORDS)
    group = driver.group
    assert (group.group_epoch, group.metadata_hash, group.assignment_epoch, group.assigned_at_ms) == (3, -7, 3, 1_000)
    assert group.members == {"A": MEMBER}
    assert group.targets == {"A": {TOPIC_ID: (0, 2)}}
    assert group.state_topics == STATE
    assert group.subscribed_topics() == {"t", "u"}


def test_the_order_of_records_does_not_matter():
    first, second = Driver(), Driver()
    first.replay(*RECORDS)
    second.replay(*reversed(RECORDS))
    assert first.family.hard_state() == second.family.hard_state()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record.key).__name__)
def test_any_record_makes_the_group(record: KeyedRecord):
    """An administrator who sets offsets makes one with a single record."""
    driver = Driver()
    driver.replay(record)
    assert driver.group.group_id == GROUP


def test_what_removes_something_unknown_changes_nothing():
    driver = Driver()
    driver.replay(*member_tombstones(GROUP, "A"), *group_tombstones(GROUP, ["A"]))
    assert driver.table.get(GROUP) is None
    driver.replay(epoch_record(GROUP, 5, 0), *member_tombstones(GROUP, "A"))
    assert (driver.group.group_epoch, driver.group.members) == (5, {})


def test_a_target_that_is_removed_has_no_epoch():
    driver = Driver()
    driver.replay(*RECORDS, tombstone(ShareGroupTargetAssignmentMetadataKey(GROUP)))
    assert driver.group.assignment_epoch == -1


def test_a_group_is_removed_with_all_its_records():
    driver = Driver()
    driver.replay(*RECORDS)
    driver.replay(*driver.group.tombstones())
    assert driver.table.get(GROUP) is None


def test_a_group_that_is_removed_while_it_has_members_goes_with_a_word(caplog: pytest.LogCaptureFixture):
    driver = Driver()
    driver.replay(*RECORDS, group_tombstones(GROUP, [])[-1])
    assert driver.table.get(GROUP) is None
    assert "while it has members" in caplog.text


def test_state_that_is_removed_is_none():
    driver = Driver()
    driver.replay(*RECORDS, group_tombstones(GROUP, [])[-2])
    assert driver.group.state_topics == NO_STATE
