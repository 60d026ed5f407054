"""What stands in `__share_group_state` after the same requests to both brokers: the same records, kept equally long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ottla.wire.types import FindCoordinatorRequest, ListOffsetsRequest
from tests.component.broker.raw_client import RawClient, Topic
from tests.component.broker.share.group_requests import alter
from tests.component.broker.share.share_members import Member, produce
from tests.interop.apache import dump_log
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.share_state.nodes import STATE_TOPIC, Node, state_file, state_records, text_of, until
from tests.unit.broker.share_state_requests import codes, delete, initialize, read, summarize, write

Records = list[tuple[int, str, int, Any]]


@contextmanager
def talk(node: Node, partitions: int = 1) -> Iterator[tuple[RawClient, Topic]]:
    """A connection and a new topic; the node stops at the end."""
    client = RawClient.at(node.bootstrap_servers)
    topic = client.topic(partitions)
    wanted = FindCoordinatorRequest(key_type=2, coordinator_keys=(f"g:{text_of(topic.topic_id)}:0",))
    try:
        until(lambda: client.ask(wanted, 6).coordinators[0].error_code == 0)
        until(lambda: codes(client.ask(summarize(topic.topic_id), 1)) == {0: 0})
        yield client, topic
    finally:
        client.close()
    node.stop()


def log_start(client: RawClient) -> int:
    asked = ListOffsetsRequest.ListOffsetsPartition(0, -1, -2)
    answer = client.ask(ListOffsetsRequest(-1, 0, (ListOffsetsRequest.ListOffsetsTopic(STATE_TOPIC, (asked,)),)), 7)
    return int(answer.topics[0].partitions[0].offset)


def accept(client: RawClient, topic: Topic, first: int, count: int, partition: int = 0) -> None:
    for offset in range(first, first + count):
        body = write(topic.topic_id, (offset, offset, 2, 1), partitions=(partition,), start=offset, count=1)
        assert codes(client.ask(body, 1)) == {partition: 0}


def test_1200_acknowledgements_leave_the_same_snapshots(boot: Callable[..., Node]) -> None:
    """Two snapshots, and what is pruned before them."""
    left: dict[str, Records] = {}
    starts: dict[str, int] = {}
    for kind in (APACHE, OTTLA):
        node = boot(kind=kind, share_coordinator_state_topic_prune_interval_ms=1000)
        with talk(node) as (client, topic):
            assert codes(client.ask(initialize(topic.topic_id, start=0), 0)) == {0: 0}
            assert codes(client.ask(read(topic.topic_id), 0)) == {0: 0}
            accept(client, topic, 0, 1200)
            until(lambda client=client: log_start(client) > 600)  # type: ignore[misc]
            starts[kind] = log_start(client)
        left[kind] = state_records(node, topic.topic_id)
    assert [offset for offset, kind, _, _ in left[APACHE] if kind == "ShareSnapshot"] == [0, 501, 1002]
    assert left[OTTLA] == left[APACHE]
    assert starts[OTTLA] == starts[APACHE] == 1002


def test_1200_acknowledgements_of_a_member(boot: Callable[..., Node]) -> None:
    """The same through a member: one request for each record, in a group whose start was set beforehand."""
    left: dict[str, Records] = {}
    for kind in (APACHE, OTTLA):
        node = boot(kind=kind)
        with talk(node) as (client, topic):
            produce(client, topic, *[100] * 12)
            client.ask(FindCoordinatorRequest(coordinator_keys=("g",)), 6)
            until(lambda client=client, topic=topic: is_altered(alter(client, "g", topic, 0)))  # type: ignore[misc]
            member = Member(client, "g", "m-1", topic)
            taken = 0
            while taken < 1200:
                ranges = member.take(max_wait_ms=500, max_bytes=1 << 20, max_records=1200, batch_size=1200)
                taken += sum(last - first + 1 for first, last, _ in ranges)
            for offset in range(1200):
                assert member.acknowledge((offset, offset, (1,))) == 0
            client.close_all()
        left[kind] = state_records(node, topic.topic_id)
    snapshots = [(each[0], each[3].snapshot_epoch) for each in left[APACHE] if each[1] == "ShareSnapshot"]
    assert [epoch for _, epoch in snapshots] == [0, 1, 2]
    assert left[OTTLA] == left[APACHE]


def is_altered(answer: Any) -> bool:
    return answer.error_code == 0 and not any(
        each.error_code for topic in answer.responses for each in topic.partitions
    )


def converse(client: RawClient, topic: Topic) -> list[dict[int, int]]:
    """A bit of everything."""
    topic_id = topic.topic_id
    requests: list[tuple[Any, int]] = [
        (initialize(topic_id, (0, 1, 2), epoch=3), 0),
        (read(topic_id, (0, 1), leader=0), 0),
        (write(topic_id, (0, 9, 0, 1), start=0, epoch=3), 1),
        (write(topic_id, (3, 5, 2, 1), (7, 7, 4, 1), start=0, count=4, epoch=3), 1),
        (write(topic_id, (0, 2, 2, 2), (6, 6, 0, 2), start=0, count=7, epoch=3), 1),
        (write(topic_id, (6, 6, 2, 2), start=6, count=2, epoch=3), 0),
        (read(topic_id, (0,), leader=4), 0),
        (write(topic_id, (8, 9, 2, 1), start=-1, count=4, epoch=3, leader=4), 1),
        (write(topic_id, (20, 29, 2, 1), start=6, count=14, epoch=3, leader=3), 1),
        (write(topic_id, (20, 29, 2, 1), start=6, count=14, epoch=2, leader=4), 1),
        (initialize(topic_id, (0,), epoch=2, start=5), 0),
        (initialize(topic_id, (0,), epoch=4, start=5), 0),
        (write(topic_id, (5, 5, 2, 1), partitions=(0, 1, 2, 3), start=5, count=1, epoch=4, leader=4), 1),
        (delete(topic_id, (2, 3)), 0),
        (delete(topic_id, (2,)), 0),
        (initialize(topic_id, (2,), epoch=1, start=0), 0),
    ]
    return [codes(client.ask(body, version)) for body, version in requests]


def test_a_bit_of_everything(boot: Callable[..., Node]) -> None:
    heard: dict[str, list[dict[int, int]]] = {}
    left: dict[str, Records] = {}
    for kind in (APACHE, OTTLA):
        node = boot(kind=kind, share_coordinator_snapshot_update_records_per_snapshot=3)
        with talk(node, 5) as (client, topic):
            heard[kind] = converse(client, topic)
        left[kind] = state_records(node, topic.topic_id)
    assert heard[OTTLA] == heard[APACHE]
    assert left[OTTLA] == left[APACHE]


def rest_beside_a_busy_one(node: Node, client: RawClient, topic: Topic) -> list[Any]:
    """The first three records of a share partition, the last of which is a cold snapshot."""
    client.ask(initialize(topic.topic_id, (0, 1), start=0), 0)
    accept(client, topic, 0, 1)
    found: list[Any] = []

    def is_cold() -> bool:
        accept(client, topic, 0, 1, partition=1)
        found[:] = [value for _, _, partition, value in state_records(node, topic.topic_id) if partition == 0]
        return any(each.write_timestamp for each in found)

    until(is_cold)
    until(lambda: log_start(client) > 2)
    return found[:3]


def test_cold_snapshots(boot: Callable[..., Node]) -> None:
    """A share partition that rests beside a busy one."""
    left: dict[str, list[Any]] = {}
    for kind in (APACHE, OTTLA):
        node = boot(
            kind=kind,
            share_coordinator_cold_partition_snapshot_interval_ms=1500,
            share_coordinator_state_topic_prune_interval_ms=500,
            share_coordinator_snapshot_update_records_per_snapshot=0,
        )
        with talk(node, 2) as (client, topic):
            left[kind] = rest_beside_a_busy_one(node, client, topic)
    assert left[OTTLA] == left[APACHE]


def test_dump_log_prints_every_record(boot: Callable[..., Node]) -> None:
    node = boot(kind=OTTLA, share_coordinator_snapshot_update_records_per_snapshot=3)
    with talk(node, 5) as (client, topic):
        converse(client, topic)
    records = state_records(node, topic.topic_id)
    lines = dump_log(state_file(node), "--share-group-state-decoder").splitlines()
    printed = [line for line in lines if " payload: " in line]
    assert len(printed) == len(records)
    for (_, kind, partition, value), line in zip(records, printed, strict=True):
        shown = line.partition(" key: ")[2]
        assert f'"partition":{partition}' in shown
        assert f'"groupId":"g","topicId":"{text_of(topic.topic_id)}"' in shown
        if value is None:
            assert shown.endswith("payload: <DELETE>") or "null" in shown
        else:
            assert f'"startOffset":{value.start_offset}' in shown
            assert shown.count('"firstOffset"') == len(value.state_batches)
            assert ('"stateEpoch"' in shown) == (kind == "ShareSnapshot")
