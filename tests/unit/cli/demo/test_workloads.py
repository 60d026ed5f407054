"""What workloads decide; that they work is shown by the story."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ottla.cli.demo.journal import Journal, entries
from ottla.cli.demo.plan import LINES, ORDERS, PAYMENTS, TOPICS, Plan
from ottla.cli.demo.workloads import classic, producers, share
from ottla.cli.demo.workloads.ordered import Ordered
from ottla.cli.demo.workloads.ranges import ranges_of
from ottla.client import AcknowledgeType, ShareRecord, TopicPartition
from ottla.client.share.acknowledgements import AcknowledgementBatch
from ottla.wire.batch import TimestampType
from ottla.wire.types.join_group import JoinGroupResponse, JoinGroupResponseJoinGroupResponseMember


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Ordered]:
    journal = Journal(tmp_path / "x.jsonl")
    yield Ordered("b:1", Plan(), journal, {}, ended=asyncio.Event())
    journal.close()


def test_neighbours_are_one_range():
    at, other = TopicPartition("a", 0), TopicPartition("a", 1)
    assert ranges_of([(at, 2), (other, 3), (at, 1), (at, 4)]) == [("a", 0, 1, 2), ("a", 0, 4, 4), ("a", 1, 3, 3)]


# --- share workers ----------------------------------------------------------------------------------------------------


def payment(card: str, deliveries: int) -> ShareRecord:
    value = json.dumps({"card": card}).encode()
    return ShareRecord(PAYMENTS, 0, 7, 0, TimestampType.CREATE_TIME, b"k", value, (), 0, deliveries)


def verdicts(given: Ordered, card: str, deliveries: int, count: int = 1) -> list[AcknowledgeType]:
    worker = share._Worker(given, "risk-1")
    return [worker._verdict(payment(card, deliveries)) for _ in range(count)]


@pytest.mark.parametrize("told", ["", "storm", "calm"])
@pytest.mark.parametrize("deliveries", [1, 3, 5])
def test_poison_is_always_released(given: Ordered, told: str, deliveries: int):
    given.told = told
    assert verdicts(given, producers.POISON, deliveries) == [AcknowledgeType.RELEASE]


@pytest.mark.parametrize("told", ["", "calm"])
def test_all_else_is_accepted(given: Ordered, told: str):
    given.told = told
    assert verdicts(given, "12345678", 1) == [AcknowledgeType.ACCEPT]


@pytest.mark.parametrize("deliveries", [1, 2])
def test_in_the_storm_nine_of_ten_are_released(given: Ordered, deliveries: int):
    given.told = share.STORM
    released = verdicts(given, "12345678", deliveries, 2_000).count(AcknowledgeType.RELEASE)
    assert 1_740 < released < 1_860


def test_in_the_storm_a_third_delivery_is_accepted(given: Ordered):
    given.told = share.STORM
    assert set(verdicts(given, "12345678", 3, 200)) == {AcknowledgeType.ACCEPT}


def test_what_the_broker_confirmed_is_written_down(given: Ordered, tmp_path: Path):
    accept, release = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE
    kept = share._Kept(given.journal, "risk-1")
    at = TopicPartition(PAYMENTS, 2)
    kept(at, (AcknowledgementBatch(1, 3, (accept,)), AcknowledgementBatch(4, 6, (release, accept, accept))), None)
    kept(at, (AcknowledgementBatch(7, 7, (release,)),), None)
    (entry,) = entries(tmp_path / "x.jsonl", "accepted")
    assert entry["ranges"] == [[PAYMENTS, 2, 1, 3], [PAYMENTS, 2, 5, 6]]


# --- producers --------------------------------------------------------------------------------------------------------


def test_poison_comes_where_the_plan_says(given: Ordered):
    make = producers._makers(given)[PAYMENTS]
    found: dict[int, list[int]] = {partition: [] for partition in range(TOPICS[PAYMENTS])}
    for partition, numbers in found.items():
        numbers += [at for at in range(3_000) if make(Random(1), partition, at)[1]["card"] == producers.POISON]
    assert {partition: tuple(numbers) for partition, numbers in found.items()} == given.plan.poison()


@pytest.mark.parametrize("topic", [ORDERS, PAYMENTS, LINES])
def test_the_same_seed_the_same_records(given: Ordered, topic: str):
    make = producers._makers(given)[topic]
    assert [make(Random(5), 0, number) for number in range(9)] == [make(Random(5), 0, number) for number in range(9)]
    assert make(Random(5), 0, 1) != make(Random(6), 0, 1)


# --- the classic member -----------------------------------------------------------------------------------------------


def test_the_leader_gives_every_partition_to_one_member():
    members = tuple(JoinGroupResponseJoinGroupResponseMember(name) for name in ("b", "a"))
    assigned = classic._assignments(JoinGroupResponse(members=members))
    found = {each.member_id: classic._partitions_in(each.assignment) for each in assigned}
    assert found["a"] == {TopicPartition(ORDERS, index) for index in (0, 2, 4)}
    assert found["b"] == {TopicPartition(ORDERS, index) for index in (1, 3, 5)}
