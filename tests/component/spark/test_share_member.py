"""The member on the driver, against a broker in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

import ottla.testing
from ottla.client import Client
from ottla.client.blocking import BlockingClient
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter
from ottla.client.producer import Producer, ProducerRecord
from ottla.client.share.offsets import describe_offsets
from ottla.client.topics import NewTopic, create, delete
from ottla.spark.clients import forget_client
from ottla.spark.errors import OttlaSparkError
from ottla.spark.options import read_options
from ottla.spark.share.group_member import OFFSET_MAX, GroupMember
from ottla.spark.share.offsets import Acquisition, ShareOffset, TopicIdPartition
from ottla.spark.share.options import ShareOptions
from ottla.spark.share.plan import Acknowledgement, AcquiredPartition
from ottla.spark.share.stream_reader import ShareStreamReader
from ottla.wire.acknowledge_type import AcknowledgeType

TOPIC = "jobs"
Join = Callable[..., GroupMember]


@pytest.fixture
def broker() -> Iterator[Any]:
    with ottla.testing.broker(group_share_heartbeat_interval_ms=100, group_share_min_heartbeat_interval_ms=100) as one:
        with BlockingClient(one.bootstrap_servers) as client:
            client.call(create, NewTopic(TOPIC, 2))
            client.call(
                alter, Resource(ResourceType.GROUP, "g"), [Change(Operation.SET, "share.auto.offset.reset", "earliest")]
            )
        yield one


@pytest.fixture
def join(broker: Any) -> Iterator[Join]:
    """Members that leave at the end of the test."""
    members: list[GroupMember] = []

    def make(**given: str) -> GroupMember:
        fixed = {"kafka.bootstrap.servers": broker.bootstrap_servers, "group": "g", "subscribe": TOPIC}
        members.append(GroupMember(read_options(ShareOptions, {**fixed, "fetchWaitMs": "100", **given})))
        return members[-1]

    yield make
    for each in members:
        each.close()


def fill(broker: Any, count: int, partition: int = 0) -> None:
    async def send(client: Client) -> None:
        await Producer(client).send_all(
            [ProducerRecord(TOPIC, b"%d" % each, partition=partition) for each in range(count)]
        )

    with BlockingClient(broker.bootstrap_servers) as client:
        client.call(send)


def lag(broker: Any) -> int:
    with BlockingClient(broker.bootstrap_servers) as client:
        return sum(each.lag or 0 for each in client.call(describe_offsets, "g").values())


def ranges(held: list[AcquiredPartition]) -> dict[int, list[Acquisition]]:
    found: dict[int, list[Acquisition]] = {}
    for each in held:
        found.setdefault(each.tp.partition, []).extend(each.ranges)
    return found


def accept_all(held: list[AcquiredPartition]) -> dict[TopicIdPartition, list[Acknowledgement]]:
    return {
        each.tp: [Acknowledgement(one.first, one.last, AcknowledgeType.ACCEPT) for one in each.ranges] for each in held
    }


def test_records_are_acquired_and_accepted(broker: Any, join: Join) -> None:
    fill(broker, 30)
    fill(broker, 20, partition=1)
    member = join()
    held = member.acquire(1000)
    assert ranges(held) == {0: [Acquisition(0, 29, 1)], 1: [Acquisition(0, 19, 1)]}
    assert {each.topic for each in held} == {TOPIC}
    assert member.settle(accept_all(held)) == {each.tp for each in held}
    assert lag(broker) == 0
    assert member.acquire(1000) == []


def test_no_more_is_acquired_than_is_asked_for(broker: Any, join: Join) -> None:
    fill(broker, 30)
    member = join()
    assert ranges(member.acquire(12)) == {0: [Acquisition(0, 11, 1)]}
    assert ranges(member.acquire(1000)) == {0: [Acquisition(12, 29, 1)]}


def test_what_is_there_is_acquired_without_waiting(broker: Any, join: Join) -> None:
    fill(broker, 10)
    member = join(fetchWaitMs="600000")
    assert ranges(member.acquire(6)) == {0: [Acquisition(0, 5, 1)]}
    assert ranges(member.acquire(6, waits=False)) == {0: [Acquisition(6, 9, 1)]}
    assert member.acquire(6, waits=False) == []


def test_parts_are_settled_by_themselves(broker: Any, join: Join) -> None:
    fill(broker, 10)
    member = join()
    (held,) = member.acquire(10)
    assert member.settle({held.tp: [Acknowledgement(2, 3, AcknowledgeType.ACCEPT)]}) == {held.tp}
    assert member.settle({held.tp: [Acknowledgement(2, 3, AcknowledgeType.ACCEPT)]}) == set(), "it is not held any more"
    assert member.settle(
        {held.tp: [Acknowledgement(0, 1, AcknowledgeType.ACCEPT), Acknowledgement(4, 9, AcknowledgeType.ACCEPT)]}
    ) == {held.tp}
    assert lag(broker) == 0


def test_what_a_member_leaves_behind_comes_again(broker: Any, join: Join) -> None:
    fill(broker, 10)
    first = join()
    first.acquire(10)
    first.close()
    assert ranges(join().acquire(10)) == {0: [Acquisition(0, 9, 2)]}


def test_renewed_locks_last(broker: Any, join: Join) -> None:
    fill(broker, 10)
    member, other = join(), join()
    held = member.acquire(10)
    for _ in range(3):  # the locks last for thirty seconds
        broker.advance(20_000)
        member.renew()
    assert other.acquire(10) == []
    assert member.settle(accept_all(held)) == {held[0].tp}
    assert lag(broker) == 0


def test_locks_that_are_not_renewed_end(broker: Any, join: Join) -> None:
    fill(broker, 10)
    member, other = join(), join()
    held = member.acquire(10)
    broker.advance(40_000)
    assert ranges(other.acquire(10)) == {0: [Acquisition(0, 9, 2)]}
    assert member.settle(accept_all(held)) == set()


def test_a_broker_that_restarts_hands_out_again(broker: Any, join: Join) -> None:
    fill(broker, 10)
    member = join()
    held = member.acquire(6)
    broker.restart()
    assert member.settle(accept_all(held)) == set()
    again = ranges(acquire_until_something(member, 100))
    assert {offset for each in again[0] for offset in range(each.first, each.last + 1)} >= set(range(6))


def test_what_is_handed_out_again_is_held_once(broker: Any, join: Join) -> None:
    fill(broker, 10)
    member = join()
    member.acquire(6)
    broker.restart()
    held = acquire_until_something(member, 100)
    assert member.settle(accept_all(held)) == {each.tp for each in held}


def acquire_until_something(member: GroupMember, tries: int) -> list[AcquiredPartition]:
    """A broker that has just started needs a moment to let members in again."""
    return next(held for _ in range(tries) if (held := member.acquire(100)))


def test_starts_of_what_is_owed(broker: Any, join: Join) -> None:
    fill(broker, 10)
    member = join()
    (held,) = member.acquire(10)
    member.settle({held.tp: [Acknowledgement(0, 3, AcknowledgeType.ACCEPT)]})
    member.settle({held.tp: [Acknowledgement(4, 6, AcknowledgeType.ACCEPT)]})
    gone = TopicIdPartition("AAAAAAAAAAAAAAAAAAAAAQ", 0)
    starts = member.starts([held.tp, gone])
    assert starts[gone] == OFFSET_MAX
    assert starts[held.tp] == 4, "what is stored trails by one write"


def test_a_topic_that_is_not_there(broker: Any, join: Join) -> None:
    with pytest.raises(OttlaSparkError, match="option subscribe: topic nowhere does not exist"):
        join(subscribe="nowhere").acquire(1)
    fill(broker, 3)
    member = join(subscribe=f"{TOPIC},nowhere", failOnDataLoss="false")
    assert ranges(member.acquire(10)) == {0: [Acquisition(0, 2, 1)]}


def test_a_topic_that_is_deleted_while_it_is_held(broker: Any, join: Join) -> None:
    fill(broker, 10)
    member = join()
    (held,) = member.acquire(10)
    with BlockingClient(broker.bootstrap_servers) as client:
        client.call(delete, TOPIC)
    assert member.settle(accept_all([held])) == set()
    assert member.starts([held.tp]) == {held.tp: OFFSET_MAX}


def test_a_broker_that_does_not_answer(broker: Any, join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    member = join()
    member.acquire(1)
    monkeypatch.setattr("ottla.spark.share.group_member.CALL_TIMEOUT_S", 0.01)
    with pytest.raises(OttlaSparkError, match=f"share group g: no response from {broker.bootstrap_servers} in 0 s"):
        member.acquire(1)
    monkeypatch.undo()


def test_progress_knows_the_ends_of_the_logs(broker: Any):
    fill(broker, 3)
    fill(broker, 4, partition=1)
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "group": "g", "subscribe": TOPIC}
    options = read_options(ShareOptions, given)
    reader = ShareStreamReader(options)
    assert reader.reportLatestOffset() == {TOPIC: {"0": 3, "1": 4}}
    with BlockingClient(broker.bootstrap_servers) as client:
        client.call(delete, TOPIC)
    assert reader.reportLatestOffset() is None
    forget_client(options)


def test_a_query_over_what_is_there_does_not_need_topics_that_are_not(broker: Any):
    fill(broker, 3)
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "group": "g", "subscribe": f"{TOPIC},nowhere"}
    options = read_options(ShareOptions, {**given, "failOnDataLoss": "false"})
    reader = ShareStreamReader(options)
    reader.prepareForTriggerAvailableNow()
    try:
        end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(10))
        assert [each.size for some in ShareOffset.from_json(end, "g").acquired.values() for each in some] == [3]
    finally:
        reader._plan._member.close()  # type: ignore[attr-defined]
        reader._listener.close()  # type: ignore[union-attr]
        forget_client(options)
