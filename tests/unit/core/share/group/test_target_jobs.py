"""Large targets of share groups: what comes from outside the event loop is what would have been computed at once."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ottla.core.groups.assignors import MemberSpec
from ottla.core.groups.assignors.simple import assign
from ottla.core.groups.modern.target_jobs import DROPS_MAX
from tests.unit.core.share.group.driver import Driver

NAMES = [f"topic-{number:03}" for number in range(60)]
MEMBERS = [f"m{number:02}" for number in range(40)]


def filled(*, inline: bool, mixed: bool) -> Driver:
    driver = Driver()
    driver.environment.settings.set("group.share.assignment.interval.ms", "0")
    driver.environment.world.inline_target_max = 10**6 if inline else 50
    for name in NAMES:
        driver.topics.put(name, 2, ())
    choice = random.Random(1)
    for member in MEMBERS:
        driver.beat(member, 0, *(choice.sample(NAMES, 20) if mixed else NAMES))
        driver.finish_target()
    driver.beat(MEMBERS[0], driver.group.members[MEMBERS[0]].member_epoch)
    driver.finish_target()
    return driver


def computed_at_once(driver: Driver) -> dict[str, Any]:
    group, topics = driver.group, driver.topics
    specs = [
        MemberSpec(
            member_id,
            None,
            driver.family.topic_sets.existing(group.members[member_id].names, topics).topic_ids,
            group.target(member_id),
        )
        for member_id in sorted(group.members)
    ]
    return assign(specs, group.assignable(topics))


@pytest.mark.parametrize("mixed", [False, True])
def test_it_is_what_would_have_been_computed_at_once(mixed: bool):
    driver = filled(inline=False, mixed=mixed)
    driver.beat("new", 0, *NAMES[:10] if mixed else NAMES)
    assert not driver.group.target("new")
    expected = computed_at_once(driver)
    driver.finish_target()
    assert driver.group.assignment_epoch == driver.group.group_epoch
    assert driver.group.targets == expected
    assert driver.group.target_job is None
    answer = driver.beat("new", driver.group.members["new"].member_epoch)
    assert answer.member_epoch == driver.group.assignment_epoch
    assert answer.assignment is not None


def test_a_superseded_target_is_dropped():
    driver = filled(inline=False, mixed=True)
    before = dict(driver.group.targets)
    epoch = driver.group.assignment_epoch
    for number in range(DROPS_MAX):
        driver.beat(f"new-{number}", 0, *NAMES[:5])
        assert driver.group.targets == before
    driver.beat(MEMBERS[0], -1)
    del before[MEMBERS[0]]
    while driver.group.target_job is None or not driver.group.target_job.is_waiting:
        driver.apply(driver.family.expire(driver.due.pop(0), driver.context()))
    driver.beat(MEMBERS[1], -1)
    assert driver.group.target_drop_count == 1
    assert driver.group.assignment_epoch == epoch
    driver.finish_target()
    assert driver.group.assignment_epoch == driver.group.group_epoch
    assert set(driver.group.targets) == set(driver.group.members)


def test_partitions_of_nobody_are_found_with_every_change():
    driver = filled(inline=True, mixed=False)
    assert not driver.group.unassigned(driver.topics)
    for member in MEMBERS[1:]:
        driver.group.replay_target(_key(member), None)
    held = driver.group.target(MEMBERS[0])
    expected = {name for name in NAMES if len(held.get(driver.topics.by_name(name).topic_id, ())) < 2}  # type: ignore[union-attr]
    assert driver.group.unassigned(driver.topics) == expected


def _key(member_id: str) -> object:
    from ottla.wire.types.group_share import ShareGroupTargetAssignmentMemberKey

    return ShareGroupTargetAssignmentMemberKey("g", member_id)
