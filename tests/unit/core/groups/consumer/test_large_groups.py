"""Many topics, many members: nothing is asked or kept more often than it must be."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.groups.consumer.patterns import SLICE_MATCHES
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.unit.core.groups.counted_topics import CountedTopics
from tests.unit.core.groups.job_driver import JobDriver

TOPICS = 10_000
NAMES = tuple(f"topic-{number}" for number in range(TOPICS))


class Driver(JobDriver):
    """Jobs end before the next heartbeat."""

    def __init__(self) -> None:
        self.counted = CountedTopics()
        super().__init__(self.counted)

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        answer = super().beat(member_id, epoch, **fields)
        self.finish()
        return answer

    def join_all(self, member_id: str, names: tuple[str, ...] | None = NAMES, **fields: Any) -> Any:
        """The answer to its second heartbeat, by which it has its target."""
        epoch = self.join(member_id, subscribed_topic_names=names, **fields).member_epoch
        return self.beat(member_id, epoch, topic_partitions=())


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    for name in NAMES:
        driver.counted.put(name, 1, ())
    return driver


def test_topics_are_looked_at_once_for_all_members(driver: Driver):
    answer = driver.join_all("m0")
    assert len(answer.assignment.topic_partitions) == TOPICS
    assert driver.counted.asked["by_name"] <= 2 * TOPICS
    for number in range(1, 5):
        driver.counted.asked.clear()
        driver.join_all(f"m{number}")
        assert driver.counted.asked["by_name"] == TOPICS  # for the target
    assert len({id(member.subscription.names) for member in driver.group.members.values()}) == 1


def test_a_steady_heartbeat_asks_for_nothing(driver: Driver):
    driver.join_all("m0")
    driver.beat("m0", 2)
    driver.counted.asked.clear()
    first, second = driver.beat("m0", 2), driver.beat("m0", 2)
    assert first is second
    assert not driver.counted.asked


@pytest.mark.parametrize(("count", "is_kept"), [(1_000, True), (1_001, False)])
def test_requests_with_many_names_are_not_kept(driver: Driver, count: int, is_kept: bool):
    names = NAMES[:count]
    driver.join_all("m0", names)
    for _ in range(2):
        driver.beat("m0", 2, subscribed_topic_names=names)
    assert ("m0" in driver.group.steady) is is_kept


def test_another_topic_does_not_disturb_anybody(driver: Driver):
    driver.join_all("m0")
    driver.beat("m0", 2)
    before = driver.beat("m0", 2)
    driver.apply(driver.family.topics_changed(driver.counted.put("other", 1, ()), driver.context()))
    assert driver.beat("m0", 2) is before


def test_a_pattern_is_matched_in_slices(driver: Driver):
    driver.join("m0", subscribed_topic_names=None, subscribed_topic_regex="topic-.*")
    looked_at = []
    while driver.family.memory.resolutions:
        before = driver.counted.asked["by_name"]
        driver.apply(driver.family.expire(("consumer", "regex", "g", ""), driver.context()))
        looked_at.append(driver.counted.asked["by_name"] - before)
    assert looked_at == [SLICE_MATCHES] * (TOPICS // SLICE_MATCHES)
    assert driver.counted.asked["names"] == 1
    assert len(driver.group.subscribed_topics()) == TOPICS


def test_a_resolution_goes_on_though_its_first_request_was_not_written(driver: Driver):
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m0", rebalance_timeout_ms=1, subscribed_topic_regex="topic-1", topic_partitions=()
    )
    driver.family.heartbeat(request, driver.context())  # whose records and timers are lost
    again = driver.family.heartbeat(request, driver.context())
    assert ("consumer", "regex", "g", "") in [timer.key for timer in again.timers]
    driver.apply(again)
    while driver.family.memory.resolutions:
        driver.apply(driver.family.expire(("consumer", "regex", "g", ""), driver.context()))
    assert driver.group.subscribed_topics() == {"topic-1"}


def test_what_is_remembered_of_members_goes_with_them(driver: Driver):
    for number in range(20):
        driver.join(f"m{number}", "topic-1")
        driver.beat(f"m{number}", driver.group.members[f"m{number}"].member_epoch)
    for number in range(20):
        driver.beat(f"m{number}", -1)
    group = driver.group
    assert not group.members
    for left in (
        group.targets,
        group.subscriptions.counts,
        group.statics,
        group.session_at_ms,
        group.owing_join,
        group.steady,
    ):
        assert not left
    assert not group._names
    assert not group._owners
