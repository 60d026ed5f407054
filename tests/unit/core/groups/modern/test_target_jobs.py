"""Targets that are computed outside the event loop: gathered, computed, written, and dropped if they are superseded."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from ottla.core.coordinator.contract import Outcome
from ottla.core.groups.assignors.computation import Choice
from ottla.core.groups.modern.target_jobs import DROPS_MAX, RETRY_MS, ComputeTarget
from ottla.wire.errors import ErrorCode
from tests.unit.core.groups.job_driver import JobDriver

NAMES = tuple(f"topic-{number:04}" for number in range(1_200))


@pytest.fixture
def driver() -> JobDriver:
    driver = JobDriver()
    driver.environment.world.inline_target_max = 100
    for name in NAMES:
        driver.topics.put(name, 2, ())
    return driver


def owned(driver: JobDriver) -> Counter[tuple[bytes, int]]:
    """How often each partition is in a target."""
    return Counter(
        (topic_id, partition)
        for member_id in driver.group.members
        for topic_id, partitions in driver.group.target(member_id).items()
        for partition in partitions
    )


def writing(driver: JobDriver) -> bool:
    """Whether some new targets are in the log, and not all."""
    return bool(driver.group._withheld)


def test_a_small_target_is_computed_at_once():
    driver = JobDriver()
    driver.topics.put("t", 4, ())
    assert len(driver.join("a", "t").assignment.topic_partitions[0].partitions) == 4
    assert not driver.steps


def test_a_large_one_comes_after_the_answer(driver: JobDriver):
    answer = driver.join("a", *NAMES)
    assert (answer.member_epoch, answer.assignment.topic_partitions) == (1, ())
    assert driver.group.state_name() == "Assigning"
    driver.finish()
    assert driver.group.assignment_epoch == driver.group.group_epoch == 2
    assert driver.group.target_job is None
    answer = driver.beat("a", 1, topic_partitions=())
    assert (answer.member_epoch, len(answer.assignment.topic_partitions)) == (2, len(NAMES))


def test_it_is_what_would_have_been_computed_at_once(driver: JobDriver):
    inline = JobDriver()
    inline.environment.world.inline_target_max = 10**6
    for name in NAMES:
        inline.topics.put(name, 2, ())
    for each in (driver, inline):
        each.join("a", *NAMES)
        each.finish()
        each.join("b", *NAMES[:700])
        each.finish()
        each.join("c", *NAMES)
        each.finish()
    assert driver.group.targets == inline.group.targets
    assert set(owned(driver).values()) == {1}
    assert len(owned(driver)) == 2 * len(NAMES)


def test_no_step_handles_more_than_some_topics(driver: JobDriver):
    for member in ("a", "b", "c", "d", "e", "f"):
        driver.join(member, *NAMES)
    driver.steps.clear()
    driver.group.target_job = None
    driver.beat("a", 1, topic_partitions=())
    written = len(driver.records)
    steps = driver.finish()
    assert steps > 2 * len(NAMES) // 500
    assert len(driver.records) - written == 6 + 1


def test_one_heartbeat_begins_one_job(driver: JobDriver):
    driver.join("a", *NAMES)
    driver.step()
    for _ in range(3):
        driver.beat("a", 1, topic_partitions=())
    assert driver.group.target_job is not None
    assert driver.group.target_job.number == 1
    assert len(driver.steps) == 1


def test_nobody_sees_half_a_target(driver: JobDriver):
    driver.join("a", *NAMES)
    driver.finish()
    driver.beat("a", 1, topic_partitions=())
    for member in ("b", "c"):
        driver.join(member, *NAMES)
    driver.step_until(lambda: writing(driver))
    while writing(driver):
        assert len(driver.group.target("a")) == len(NAMES)
        assert not driver.group.target("b")
        assert not driver.group.target("c")
        driver.step()
    assert driver.group.assignment_epoch == driver.group.group_epoch
    assert len(driver.group.target("a")) < len(NAMES)
    assert len(owned(driver)) == 2 * len(NAMES)
    assert set(owned(driver).values()) == {1}


@pytest.mark.parametrize("steps", [1, 3, 4, 6, 8])
def test_a_superseded_target_is_dropped_and_computed_again(
    driver: JobDriver, steps: int, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    driver.join("a", *NAMES)
    driver.finish()
    driver.join("b", *NAMES)
    for _ in range(steps):
        driver.step()
    driver.join("c", *NAMES)
    driver.step_until(lambda: bool(caplog.records))
    assert "dropped the target of epoch 3" in caplog.text
    assert driver.group.assignment_epoch == 2
    assert not driver.group.target("b")
    driver.finish()
    assert driver.group.assignment_epoch == driver.group.group_epoch == 4
    assert set(owned(driver).values()) == {1}
    assert len(owned(driver)) == 2 * len(NAMES)
    assert driver.group.target_drop_count == 0


def test_a_group_that_never_stands_still_gets_a_target(driver: JobDriver):
    driver.join("a", *NAMES)
    for number in range(DROPS_MAX):
        driver.step()
        driver.join(f"b{number}", *NAMES)
        driver.step()
        assert driver.group.target_drop_count == number + 1
    driver.step()
    driver.step_until(lambda: driver.group.target_job is not None and driver.group.target_job.is_waiting)
    driver.beat("b0", -1)
    driver.join("c", *NAMES)
    driver.finish()
    assert 1 < driver.group.assignment_epoch < driver.group.group_epoch
    assert driver.group.target("a")
    assert not driver.group.target("b0")
    assert not driver.group.target("c")
    assert "b0" not in driver.group.targets
    driver.beat("a", 1, topic_partitions=())
    driver.finish()
    assert driver.group.target("c")
    assert len(owned(driver)) == 2 * len(NAMES)


def test_a_static_member_that_is_replaced_while_a_target_is_finished_whatever_comes_gets_its_share(driver: JobDriver):
    driver.join("a", *NAMES, instance_id="i")
    driver.finish()
    driver.beat("a", 1, instance_id="i", topic_partitions=())
    for number in range(DROPS_MAX):
        driver.join(f"b{number}", *NAMES)
        driver.step()
        driver.beat(f"b{number}", -1)
        driver.step()
    driver.join("b", *NAMES)
    driver.step_until(lambda: driver.group.target_job is not None and driver.group.target_job.is_waiting)
    assert driver.group.target_job is not None
    assert driver.group.target_job.is_last_chance
    driver.beat("a", -2, instance_id="i")
    driver.join("new", *NAMES, instance_id="i")
    driver.finish()
    driver.beat("b", 2, topic_partitions=())
    driver.finish()
    assert driver.group.assignment_epoch == driver.group.group_epoch
    assert set(owned(driver).values()) == {1}
    assert len(owned(driver)) == 2 * len(NAMES)


def test_a_static_member_that_is_replaced_supersedes_a_target(driver: JobDriver):
    driver.join("a", *NAMES, instance_id="i")
    driver.finish()
    driver.join("b", *NAMES)
    driver.step()
    driver.beat("a", -2, instance_id="i")
    epoch = driver.group.group_epoch
    driver.join("new", *NAMES, instance_id="i")
    assert driver.group.group_epoch == epoch
    driver.finish()
    assert set(owned(driver).values()) == {1}
    assert len(owned(driver)) == 2 * len(NAMES)


def test_a_failure_keeps_the_target_and_is_told(driver: JobDriver, caplog: pytest.LogCaptureFixture):
    driver.join("a", *NAMES)
    driver.finish()
    driver.join("b", *NAMES)
    driver.step_until(lambda: driver.group.target_job is not None and driver.group.target_job.is_waiting)
    driver.steps.clear()
    job = driver.group.target_job
    assert job is not None
    effect = ComputeTarget("consumer", "g", job.number, None, ())  # type: ignore[arg-type]
    driver.apply(driver.settled(effect, Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, message="the assignor is ill")))
    assert "keeps its target of epoch 2, that of epoch 3 cannot be had: the assignor is ill" in caplog.text
    assert len(driver.group.target("a")) == len(NAMES)
    driver.beat("a", 1, topic_partitions=())
    assert not driver.steps
    driver.now_ms += RETRY_MS
    driver.beat("b", driver.group.members["b"].member_epoch, topic_partitions=())
    driver.finish()
    assert driver.group.assignment_epoch == 3


def test_records_that_cannot_be_written_end_a_job(driver: JobDriver):
    driver.join("a", *NAMES)
    driver.finish()
    driver.join("b", *NAMES)
    driver.step_until(lambda: writing(driver))
    job = driver.group.target_job
    assert job is not None
    driver.steps.clear()
    driver.apply(driver.settled(written_of(driver), Outcome(ErrorCode.NOT_ENOUGH_REPLICAS)))
    assert driver.group.target_job is None
    assert len(driver.group.target("a")) == len(NAMES)
    driver.now_ms += RETRY_MS
    driver.beat("a", 1, topic_partitions=())
    driver.finish()
    assert set(owned(driver).values()) == {1}
    assert len(owned(driver)) == 2 * len(NAMES)


def written_of(driver: JobDriver) -> object:
    """What tells a job that its records are committed, or are not."""
    from ottla.core.groups.modern import target_jobs

    job = driver.group.target_job
    assert job is not None
    return target_jobs._Written("consumer", "g", job.number)


def test_an_answer_that_comes_late_is_nobodys(driver: JobDriver):
    driver.join("a", *NAMES)
    driver.finish()
    late = ComputeTarget("consumer", "g", 1, None, ())  # type: ignore[arg-type]
    before = dict(driver.group.targets)
    driver.apply(driver.settled(late, Outcome(value=[])))
    assert driver.group.targets == before
    driver.beat("a", -1)
    driver.apply(driver.settled(late._replace(group_id="gone"), Outcome(value=[])))


def test_an_assignor_of_ones_own_is_never_asked_at_once():
    driver = JobDriver()
    driver.topics.put("t", 4, ())
    driver.environment.settings.set("group.consumer.assignors", "range,nearest:NearestRack")
    driver.environment.world.own_assignors = {"nearest:NearestRack": "nearest-rack"}
    driver.join("a", "t", instance_id="i", server_assignor="range")
    assert not driver.steps
    driver.beat("a", -2, instance_id="i")
    driver.topics.put("u", 4, ())
    driver.join("b", "t", "u", instance_id="i", server_assignor="nearest-rack")
    driver.step_until(lambda: bool(driver.effects))
    assert driver.effects[0].choice == Choice("nearest:NearestRack", is_own=True)
