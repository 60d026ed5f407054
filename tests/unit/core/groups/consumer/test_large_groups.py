"""Many topics, many members: nothing is asked or kept more often than it must be."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.coordinator.contract import Context, Result
from ottla.core.groups.consumer.family import ConsumerFamily
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.table import GroupTable
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from simulation.environment import Environment
from tests.unit.core.groups.counted_topics import CountedTopics

TOPICS = 10_000
NAMES = tuple(f"topic-{number}" for number in range(TOPICS))


class Driver:
    """A family without a log."""

    def __init__(self) -> None:
        self.environment = Environment()
        self.topics = self.environment.world.topics = CountedTopics()
        self.family = ConsumerFamily(GroupTable())
        self.now_ms = 0

    def context(self) -> Context:
        return Context(now_ms=self.now_ms, wall_ms=10**12 + self.now_ms, world=self.environment.world, api_version=1)

    def apply(self, result: Result) -> Any:
        for record in result.records:
            self.family.replays[type(record.key)](record, 0, -1, -1)
        return result.replies[-1].message if result.replies else None

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields)
        return self.apply(self.family.heartbeat(request, self.context()))

    def join(self, member_id: str, names: tuple[str, ...] | None = NAMES, **fields: Any) -> Any:
        given = {"rebalance_timeout_ms": 60_000, "topic_partitions": (), "subscribed_topic_names": names} | fields
        return self.beat(member_id, 0, **given)

    @property
    def group(self) -> ConsumerGroup:
        group = self.family._table.get("g")
        assert isinstance(group, ConsumerGroup)
        return group


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    for name in NAMES:
        driver.topics.put(name, 1, ())
    return driver


def test_topics_are_looked_at_once_for_all_members(driver: Driver):
    answer = driver.join("m0")
    assert len(answer.assignment.topic_partitions) == TOPICS
    once = driver.topics.asked["by_name"]
    assert once <= 2 * TOPICS
    for number in range(1, 5):
        driver.now_ms += 1_000
        driver.join(f"m{number}")
    assert driver.topics.asked["by_name"] == once
    assert len({id(member.subscription.names) for member in driver.group.members.values()}) == 1


def test_a_steady_heartbeat_asks_for_nothing(driver: Driver):
    driver.join("m0")
    driver.beat("m0", 2)
    driver.topics.asked.clear()
    first, second = driver.beat("m0", 2), driver.beat("m0", 2)
    assert first is second
    assert not driver.topics.asked


@pytest.mark.parametrize(("count", "is_kept"), [(1_000, True), (1_001, False)])
def test_requests_with_many_names_are_not_kept(driver: Driver, count: int, is_kept: bool):
    names = NAMES[:count]
    driver.join("m0", names)
    for _ in range(2):
        driver.beat("m0", 2, subscribed_topic_names=names)
    assert ("m0" in driver.group.steady) is is_kept


def test_another_topic_does_not_disturb_anybody(driver: Driver):
    driver.join("m0")
    driver.beat("m0", 2)
    before = driver.beat("m0", 2)
    driver.apply(driver.family.topics_changed(driver.topics.put("other", 1, ()), driver.context()))
    assert driver.beat("m0", 2) is before


def test_a_pattern_is_matched_in_slices(driver: Driver):
    driver.join("m0", None, subscribed_topic_regex="topic-.*7")
    steps = 0
    while driver.family.memory.resolutions:
        driver.apply(driver.family.expire(("consumer", "regex", "g", ""), driver.context()))
        steps += 1
    assert steps == 10
    assert driver.topics.asked["names"] == 1
    assert len(driver.group.subscribed_topics()) == 1_000


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
        driver.join(f"m{number}", ("topic-1",))
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
