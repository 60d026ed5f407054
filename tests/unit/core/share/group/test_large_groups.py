"""Many topics, many members: nothing is asked or computed more often than it must be."""

from __future__ import annotations

import pytest

from ottla.core.share.group import heartbeat
from tests.unit.core.groups.counted_topics import CountedTopics
from tests.unit.core.share.group.driver import Driver

TOPICS = 500
NAMES = tuple(f"topic-{number}" for number in range(TOPICS))
MEMBERS = [f"m{number}" for number in range(50)]


class Large(Driver):
    def __init__(self) -> None:
        self.counted = CountedTopics()
        super().__init__(self.counted)
        for name in NAMES:
            self.counted.put(name, 2, ())

    @property
    def asked(self) -> int:
        return sum(self.counted.asked.values())

    def beat_all(self) -> None:
        for member in MEMBERS:
            self.beat(member, self.group.members[member].member_epoch)


@pytest.fixture(scope="module")
def large() -> Large:
    driver = Large()
    for member in MEMBERS:
        assert driver.beat(member, 0, *NAMES).error_code == 0
    driver.now_ms += 1_000
    driver.beat_all()
    return driver


def test_joins_look_at_each_topic_a_few_times_and_not_for_every_member(large: Large):
    assert large.asked < 10 * TOPICS


def test_all_partitions_are_shared_out(large: Large):
    sizes = {member.member_id: sum(map(len, member.assigned.values())) for member in large.group.members.values()}
    assert set(sizes.values()) == {2 * TOPICS // len(MEMBERS)}


def test_heartbeats_that_change_nothing_ask_nothing(large: Large):
    large.beat_all()
    before = large.asked
    for _ in range(3):
        large.beat_all()
    assert large.asked == before


def test_a_target_is_computed_once_for_all(large: Large, monkeypatch: pytest.MonkeyPatch):
    computed = []
    assign = heartbeat.assign
    monkeypatch.setattr(heartbeat, "assign", lambda *each: computed.append(each) or assign(*each))
    large.beat(MEMBERS[0], -1)
    large.beat(MEMBERS[0], 0, *NAMES)
    large.now_ms += 1_000
    before = large.asked
    large.beat_all()
    assert len(computed) == 1
    assert large.asked - before < 10 * TOPICS
