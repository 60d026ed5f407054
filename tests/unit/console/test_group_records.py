"""Epochs and members of groups of all kinds, from records of their coordinators."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.console.group_records import STEPS_MAX, GroupTimeline, Step, told_by
from ottla.wire.keyed import KeyedRecord, encode_framed
from ottla.wire.types import group_classic, group_consumer, group_share, group_streams
from ottla.wire.types.group_classic import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from ottla.wire.types.group_consumer import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue

TYPES = {
    kind: {name: getattr(module, name) for name in dir(module)}
    for kind, module in (("Consumer", group_consumer), ("Share", group_share), ("Streams", group_streams))
}


class Writer:
    """Writes records of one kind of group, and lets the timeline take them."""

    def __init__(self, kind: str = "Consumer", group: str = "g") -> None:
        self.timeline = GroupTimeline("g")
        self._kind, self._group = kind, group

    def write(self, at_ms: int, name: str, value: dict[str, Any] | None, **key: str) -> None:
        types = TYPES[self._kind]
        found = types[f"{self._kind}Group{name}Key"](group_id=self._group, **key)
        made = None if value is None else types[f"{self._kind}Group{name}Value"](**value)
        self.timeline.take(at_ms, KeyedRecord(found, 0, made, -1 if made is None else 0))

    def join(self, at_ms: int, member: str, epoch: int, client: str = "") -> None:
        self.write(at_ms, "MemberMetadata", {"client_id": client}, member_id=member)
        self.write(at_ms, "Metadata", {"epoch": epoch})
        self.write(at_ms, "TargetAssignmentMetadata", {"assignment_epoch": epoch})


@pytest.mark.parametrize("kind", TYPES)
def test_a_write_is_one_step(kind: str):
    writer = Writer(kind)
    writer.join(1_000, "m1", 1, "app-1")
    writer.join(2_000, "m2", 2)
    writer.write(3_000, "MemberMetadata", None, member_id="m1")
    writer.write(3_000, "Metadata", {"epoch": 3})
    assert writer.timeline.steps() == [
        Step(1_000, 1, 1, 1, ["app-1"], []),
        Step(2_000, 2, 2, 2, ["m2"], []),
        Step(3_000, 3, 2, 1, [], ["app-1"]),
    ]


def test_a_write_that_is_half_read_is_told_and_goes_on():
    writer = Writer()
    writer.write(1_000, "MemberMetadata", {"client_id": "a"}, member_id="m1")
    assert writer.timeline.steps() == [Step(1_000, 0, 0, 1, ["a"], [])]
    writer.write(1_000, "Metadata", {"epoch": 1})
    writer.write(2_000, "Metadata", {"epoch": 2})
    assert writer.timeline.steps() == [Step(1_000, 1, 0, 1, ["a"], []), Step(2_000, 2, 0, 1, [], [])]


def test_the_same_again_is_no_step():
    writer = Writer()
    writer.join(1_000, "m1", 1, "a")
    writer.join(2_000, "m1", 1, "a")
    assert len(writer.timeline.steps()) == 1


def test_other_groups_are_left_out():
    writer = Writer(group="other")
    writer.join(1_000, "m1", 1)
    assert writer.timeline.steps() == []


def test_a_group_that_is_deleted_has_nobody():
    writer = Writer()
    writer.join(1_000, "m1", 4, "a")
    writer.write(2_000, "MemberMetadata", None, member_id="m1")
    writer.write(2_000, "Metadata", None)
    assert writer.timeline.steps()[-1] == Step(2_000, 0, 0, 0, [], ["a"])


def classic(generation: int, *members: str) -> KeyedRecord:
    rows = tuple(group_classic.GroupMetadataValueMemberMetadata(member_id=each, client_id=each) for each in members)
    return KeyedRecord(GroupMetadataKey("g"), 2, GroupMetadataValue(generation=generation, members=rows), 3)


def test_one_record_has_a_whole_classic_group_and_it_may_become_a_consumer_group():
    writer = Writer()
    writer.timeline.take(1_000, classic(1, "a"))
    writer.timeline.take(2_000, classic(2, "a", "b"))
    writer.timeline.take(3_000, KeyedRecord(GroupMetadataKey("g"), 2, None, -1))
    writer.join(3_000, "a", 3, "a")
    writer.write(3_000, "MemberMetadata", {"client_id": "b"}, member_id="b")
    assert writer.timeline.steps() == [
        Step(1_000, 1, 1, 1, ["a"], []),
        Step(2_000, 2, 2, 2, ["b"], []),
        Step(3_000, 3, 3, 2, [], []),
    ]


def test_the_oldest_steps_are_dropped():
    writer = Writer()
    for epoch in range(STEPS_MAX + 5):
        writer.write(1_000 * epoch, "Metadata", {"epoch": epoch})
    steps = writer.timeline.steps()
    assert (steps[-1].epoch, len(steps) <= STEPS_MAX + 1, writer.timeline.is_cut) == (STEPS_MAX + 4, True, True)


def test_only_records_about_epochs_and_members_are_decoded():
    key, value = encode_framed(ConsumerGroupMetadataKey("g"), 0), encode_framed(ConsumerGroupMetadataValue(epoch=7), 0)
    (told,) = told_by(key, value)
    assert told.value.epoch == 7
    assert list(told_by(encode_framed(OffsetCommitKey("g", "t", 0), 0), b"")) == []
    for damaged in (None, b"", b"\x00", b"\x7f\xff", key[:3]):
        assert list(told_by(damaged, value)) == []
    assert list(told_by(key, b"\x00\x00")) == []
