"""Records to values and back, those of older and newer releases included."""

from __future__ import annotations

import msgspec

from ottla.core.coordinator.records import encode_record
from ottla.core.groups.consumer.members import ClassicMetadata, ConsumerGroupMember, MemberState, Subscription
from ottla.core.groups.consumer.records import (
    ResolvedRegex,
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    member_tombstones,
    regex_record,
    resolved_regex_of,
    target_epoch_record,
    target_record,
    with_current,
    with_metadata,
)
from ottla.core.groups.modern.group import target_of
from ottla.wire.keyed import KeyedRecord, decode_keyed
from ottla.wire.types.group_consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from ottla.wire.types.group_consumer import ConsumerGroupMemberMetadataValueClassicProtocol as ClassicProtocol

T, U = b"t" * 16, b"u" * 16
MEMBER = ConsumerGroupMember(
    member_id="m",
    member_epoch=7,
    previous_member_epoch=6,
    state=MemberState.UNREVOKED_PARTITIONS,
    instance_id="i",
    rack_id="r",
    client_id="c",
    client_host="/h",
    subscription=Subscription(frozenset(("b", "a")), "x.*"),
    rebalance_timeout_ms=5,
    server_assignor="range",
    classic=ClassicMetadata(9, (ClassicProtocol("range", b"\x00\x03"),)),
    assigned={U: {1: 7, 0: 3}},
    pending_revocation={T: {4: 2}},
)


def stored(keyed: KeyedRecord) -> KeyedRecord:
    return decode_keyed("__consumer_offsets", *encode_record(keyed))


def test_a_member_is_what_its_two_records_say():
    read = with_metadata(ConsumerGroupMember(member_id="m"), stored(member_record("g", MEMBER)).value)
    assert with_current(read, stored(current_record("g", MEMBER)).value) == MEMBER


def test_values_are_sorted():
    metadata = stored(member_record("g", MEMBER)).value
    assert metadata.subscribed_topic_names == ("a", "b")
    (entry,) = stored(current_record("g", MEMBER)).value.assigned_partitions
    assert (entry.partitions, entry.assignment_epochs) == ((0, 1), (3, 7))
    target = stored(target_record("g", "m", {U: (1,), T: (0, 2)})).value
    assert [each.topic_id for each in target.topic_partitions] == [T, U]


def test_a_log_before_4_3_tells_no_assignment_epochs():
    entry = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(T, (0, 1), None)
    value = ConsumerGroupCurrentMemberAssignmentValue(4, 3, 0, (entry,), ())
    assert with_current(ConsumerGroupMember(member_id="m"), value).assigned == {T: {0: 4, 1: 4}}


def test_a_state_that_is_not_known_is_unknown():
    value = ConsumerGroupCurrentMemberAssignmentValue(4, 3, 9)
    assert with_current(ConsumerGroupMember(member_id="m"), value).state is MemberState.UNKNOWN


def test_no_pattern_is_written_as_null_or_nothing():
    value = ConsumerGroupMemberMetadataValue(
        instance_id=None, rack_id=None, subscribed_topic_regex=None, server_assignor=None, classic_member_metadata=None
    )
    assert with_metadata(ConsumerGroupMember(member_id="m"), value).subscription == Subscription(frozenset(), "")


def test_targets_epochs_and_patterns():
    assert target_of(stored(target_record("g", "m", {T: (0, 2)})).value.topic_partitions) == {T: (0, 2)}
    assert target_of(stored(target_record("g", "m", {})).value.topic_partitions) == {}
    epoch = stored(epoch_record("g", 3, -5)).value
    assert (epoch.epoch, epoch.metadata_hash) == (3, -5)
    target_epoch = stored(target_epoch_record("g", 3, 99)).value
    assert (target_epoch.assignment_epoch, target_epoch.assignment_timestamp) == (3, 99)
    resolved = ResolvedRegex(frozenset(("b", "a")), 7, 99)
    value = stored(regex_record("g", "x.*", resolved)).value
    assert value.topics == ("a", "b")
    assert resolved_regex_of(value) == resolved


def test_a_group_goes_in_the_reverse_order_of_its_making():
    names = [
        type(each.key).__name__.removeprefix("ConsumerGroup").removesuffix("Key")
        for each in group_tombstones("g", ["a"], ["x"])
    ]
    assert names == [
        "CurrentMemberAssignment",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "MemberMetadata",
        "RegularExpression",
        "PartitionMetadata",
        "Metadata",
    ]
    assert all(each.value is None for each in (*group_tombstones("g", ["a"], ["x"]), *member_tombstones("g", "a")))


def test_members_are_compared_by_all_they_are():
    assert msgspec.structs.replace(MEMBER) == MEMBER
    for change in ({"rack_id": "s"}, {"assigned": {U: {1: 7, 0: 4}}}, {"classic": None}, {"member_epoch": 8}):
        assert msgspec.structs.replace(MEMBER, **change) != MEMBER
