"""Share groups and the log beneath them: deleted and compacted records, transactions, leaders that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.core.metadata.image import Changes
from ottla.core.share.partition.partition import Phase
from ottla.wire.types import DeleteRecordsRequest, WriteShareGroupStateRequest
from tests.component.broker.raw_client import RawClient, RunningNode, Topic, batch, running_node
from tests.component.broker.share.share_members import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    WAIT,
    Member,
    acquired,
    configure,
    filled,
    initialize,
    kept,
    new_group,
    offsets_read,
    produce,
    summary,
)
from tests.component.broker.transactional_producer import Producer

TODAY_MS = ManualClock().wall_ms()
ONE_STATE_PARTITION = {"share_coordinator_state_topic_num_partitions": 1}


def delete_records(client: RawClient, topic: Topic, offset: int) -> None:
    request = DeleteRecordsRequest
    asked = request.DeleteRecordsTopic(topic.name, (request.DeleteRecordsPartition(0, offset),))
    answer = client.ask(request((asked,), 5_000), 2)
    assert answer.topics[0].partitions[0].error_code == 0, answer


def lag(client: RawClient, group: str, topic: Topic) -> int:
    start, done = summary(client, group, topic)
    end = client.fetch(topic, kept(client, group, topic)[0], max_wait_ms=0).high_watermark
    return int(end - start - done)


# --- deleted and compacted --------------------------------------------------------------------------------------------


def test_the_log_begins_later(client: RawClient):
    topic, group = filled(client, 5, 5, 5, 5)
    member = Member(client, group, "a", topic)
    assert member.take(max_records=10) == [(0, 9, 1)]
    assert member.acknowledge((0, 4, [RELEASE])) == 0
    delete_records(client, topic, 12)
    answer = member.fetch(**WAIT)
    assert (answer.error_code, acquired(answer)) == (0, []), "what was looked for is gone"
    assert member.take() == [(12, 19, 1)]
    assert member.acknowledge((5, 9, [ACCEPT])) == 0, "it was held when the log lost it"
    assert member.acknowledge((12, 19, [ACCEPT])) == 0
    assert kept(client, group, topic)[0] == 12
    assert lag(client, group, topic) == 0


def test_a_start_beyond_the_end_waits_for_the_log(client: RawClient):
    topic, group = client.topic(), new_group()
    produce(client, topic, 2)
    initialize(client, group, topic, start=4)
    member = Member(client, group, "a", topic)
    answer = member.fetch()
    assert [(each.error_code, each.records) for each in answer.responses[0].partitions] == [(0, b"")]
    produce(client, topic, 1, 1)
    number = member.send(**WAIT)
    assert member.connection.is_silent(0.02)
    produce(client, topic, 3)
    assert acquired(member.receive(number)) == [(4, 6, 1)]


def compacted(running: RunningNode, topic: Topic) -> None:
    """Have the log compacted now."""

    def chores() -> None:
        assert isinstance(running.clock, ManualClock)
        running.clock.advance(16_000)
        running.node.housekeeping.run_due()
        running.node.cooperative_tasks.run_for(20)
        running.node.offload.finish_all()

    running.change(chores)


def keyed(client: RawClient, topic: Topic, *keys: bytes, size: int = 1) -> None:
    """One batch with these keys, as large as `size` says."""
    records = batch(*[b"x" * size] * len(keys), keys=list(keys))
    assert client.produce(topic, records).error_code == 0


def test_holes_of_compaction_are_gaps(tmp_path: Path):
    with running_node(tmp_path, ManualClock(), **ONE_STATE_PARTITION) as running:
        client = running.client
        topic, group = filled(
            client,
            cleanup_policy="compact",
            segment_bytes=1 << 20,
            min_cleanable_dirty_ratio=0.01,
            min_compaction_lag_ms=0,
        )
        keyed(client, topic, b"a", b"b", size=100_000)
        keyed(client, topic, b"c", b"d", size=100_000)
        member = Member(client, group, "m", topic)
        assert member.take() == [(0, 3, 1)]
        assert member.acknowledge((0, 3, [RELEASE])) == 0
        keyed(client, topic, b"a", b"c", b"d", size=250_000)
        keyed(client, topic, b"end", size=600_000)
        compacted(running, topic)
        answer = member.fetch()
        assert acquired(answer) == [(0, 1, 2)]
        assert offsets_read(answer) == [1], "0 is a hole in its batch"
        answer = member.fetch()
        assert acquired(answer) == [(4, 6, 1)], "a batch that is gone is not delivered again"
        assert member.take() == [(7, 7, 1)]
        assert member.acknowledge((0, 1, [GAP, ACCEPT]), (4, 7, [ACCEPT])) == 0
        assert running.node.share.partitions_of(group)[0].core.window.start == 8
        assert lag(client, group, topic) == 0


# --- transactions -----------------------------------------------------------------------------------------------------


@pytest.fixture
def written(client: RawClient) -> Topic:
    """Committed 0 to 4 and marker 5, aborted 6 to 9 and marker 10, committed 11 to 13 and marker 14, open 15 to 16."""
    topic = client.topic()
    producer = Producer(client).begun()
    for count, ends in ((5, producer.commit), (4, producer.abort), (3, producer.commit)):
        assert producer.produce(topic, *[b"v"] * count, timestamp=TODAY_MS).error_code == 0
        ends()
        producer.settled()
    assert producer.produce(topic, b"open", b"open", timestamp=TODAY_MS).error_code == 0
    return topic


def test_read_committed_leaves_out_aborted_and_open_transactions(client: RawClient, written: Topic):
    group = new_group()
    initialize(client, group, written)
    configure(client, group, isolation_level="read_committed")
    member = Member(client, group, "a", written)
    assert member.take() == [(0, 5, 1), (10, 14, 1)], "with the markers, which members answer as gaps"
    assert member.take() == []
    assert member.acknowledge((0, 5, [*[ACCEPT] * 5, GAP]), (10, 14, [GAP, *[ACCEPT] * 3, GAP])) == 0
    assert lag(client, group, written) == 2, "an open transaction counts"
    assert member.take() == []


def test_read_uncommitted_takes_everything(client: RawClient, written: Topic):
    group = new_group()
    initialize(client, group, written)
    member = Member(client, group, "a", written)
    assert member.take() == [(0, 16, 1)]
    assert member.acknowledge((0, 16, [ACCEPT])) == 0
    assert lag(client, group, written) == 0


def test_the_end_of_a_transaction_wakes(running: RunningNode, client: RawClient):
    topic, group = filled(client)
    configure(client, group, isolation_level="read_committed")
    producer = Producer(client).begun()
    assert producer.produce(topic, b"a", b"b", timestamp=TODAY_MS).error_code == 0
    member = Member(client, group, "a", topic)
    number = member.wait(running)
    assert member.connection.is_silent(0.02)
    producer.commit()
    assert acquired(member.receive(number)) == [(0, 2, 1)]


def test_isolation_acts_with_the_next_fetch(client: RawClient, written: Topic):
    group = new_group()
    initialize(client, group, written)
    configure(client, group, isolation_level="read_committed")
    member = Member(client, group, "a", written)
    assert member.take(max_records=1) == [(0, 4, 1)]
    configure(client, group, isolation_level="read_uncommitted")
    assert member.take() == [(5, 16, 1)]


# --- leaders ----------------------------------------------------------------------------------------------------------


def move(running: RunningNode, topic: Topic, leader: int) -> None:
    """Let somebody else lead, or this node again, as the controller would say."""
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def step() -> None:
        replica.leader = leader
        replica.leader_epoch += 1
        running.node.share.leader.follow()
        running.node.replicas.wake(replica.topic_partition)

    running.change(step)


def test_the_leader_moves(running: RunningNode, client: RawClient):
    topic, group = filled(client, 5)
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, 4, 1)]
    assert member.acknowledge((0, 1, [ACCEPT])) == 0
    waiting = Member(client, group, "b", topic)
    number = waiting.wait(running)
    before = running.node.share.partitions_of(group)[0]
    move(running, topic, 2)
    answer = waiting.receive(number)
    assert [each.error_code for each in answer.responses[0].partitions] == [6]
    assert before.core.phase is Phase.DROPPED
    assert member.acknowledge((2, 4, [ACCEPT])) == 6
    answer = member.fetch()
    assert [each.error_code for each in answer.responses[0].partitions] == [6]
    move(running, topic, 1)
    assert member.acknowledge((2, 4, [ACCEPT])) == 3, "nobody has fetched since"
    assert waiting.take(**WAIT) == [(2, 4, 1)], "what a lost leader had handed out is not counted"
    assert write_code(client, group, topic, leader_epoch=before.core.leader_epoch) == 74


def write_code(client: RawClient, group: str, topic: Topic, *, leader_epoch: int = -1, state_epoch: int = -1) -> int:
    """What a leader hears that writes with these epochs."""
    request = WriteShareGroupStateRequest
    data = request.PartitionData(0, state_epoch, leader_epoch, 0, 0)
    answer = client.ask(request(group, (request.WriteStateData(topic.topic_id, (data,)),)), 1)
    return int(answer.results[0].partitions[0].error_code)


def test_offsets_are_altered(running: RunningNode, client: RawClient):
    topic, group = filled(client, 5, 5)
    member = Member(client, group, "a", topic)
    assert member.take(max_records=5) == [(0, 4, 1)]
    initialize(client, group, topic, start=5, state_epoch=4)
    running.change(lambda: running.node.share.drop(group, [topic.topic_id]))
    assert member.acknowledge((0, 4, [ACCEPT])) == 3
    assert member.take(**WAIT) == [(5, 9, 1)]
    assert write_code(client, group, topic, state_epoch=2) == 124
    assert kept(client, group, topic)[0] == 5


def test_altered_offsets_that_nobody_was_told_of_fence(client: RawClient):
    topic, group = filled(client, 5, 5)
    member = Member(client, group, "a", topic)
    assert member.take(max_records=5) == [(0, 4, 1)]
    initialize(client, group, topic, start=5, state_epoch=4)
    assert member.acknowledge((0, 4, [ACCEPT])) == 6
    assert member.take(**WAIT) == [(5, 9, 1)]


def test_other_groups_and_topics_are_not_dropped(running: RunningNode, client: RawClient):
    topic, group = filled(client, 5)
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, 4, 1)]
    running.change(lambda: running.node.share.drop("another"))
    running.change(lambda: running.node.share.drop(group, [bytes(16)]))
    assert member.acknowledge((0, 4, [ACCEPT])) == 0


# --- switching off ----------------------------------------------------------------------------------------------------


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[RunningNode]:
    with running_node(tmp_path, ManualClock(), **ONE_STATE_PARTITION) as running:
        yield running


def test_share_groups_are_switched_off_and_on(alone: RunningNode):
    client = alone.client
    topic, group = filled(client, 5)
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, 4, 1)]
    waiting = Member(client, group, "b", topic)
    number = waiting.wait(alone)
    finalize(alone, 0)
    assert waiting.receive(number).error_code == 123, "its session is gone"
    assert member.fetch().error_code == 35
    assert member.acknowledge_all({}).error_code == 35
    assert not len(alone.node.share.leader.sessions)
    assert not list(alone.node.share.leader)
    finalize(alone, 1)
    assert member.fetch(epoch=3).error_code == 122
    member.epoch = 0
    assert member.take(**WAIT) == [(0, 4, 1)]


def finalize(running: RunningNode, level: int) -> None:
    """What the node does when the controller has finalized another version."""

    def step() -> None:
        running.node.image.features["share.version"] = level
        running.node.share.follow(Changes(features=True))

    running.change(step)


# --- two members share twelve records ---------------------------------------------------------------------------------


def test_two_members_share_twelve_records_step_by_step(tmp_path: Path):
    """One write for all locks that end together, and the start is kept at once."""
    settings = {**ONE_STATE_PARTITION, "group_share_min_record_lock_duration_ms": 1_000}
    with running_node(tmp_path, ManualClock(), **settings) as running:
        client = running.client
        topic, group = client.topic(), new_group()
        produce(client, topic, 5, 4, 3)
        initialize(client, group, topic, start=-1)
        configure(client, group, record_lock_duration_ms=3_000, auto_offset_reset="earliest")
        a, b = Member(client, group, "a", topic), Member(client, group, "b", topic)
        running.advance(10)
        assert a.take(max_records=6, **WAIT) == [(0, 8, 1)]
        assert b.take(max_records=6) == [(9, 11, 1)]
        assert kept(client, group, topic) == (0, [])
        running.advance(10)
        assert a.acknowledge((0, 4, [ACCEPT, ACCEPT, ACCEPT, ACCEPT, RELEASE])) == 0
        assert kept(client, group, topic) == (0, [(0, 3, 2, 1), (4, 4, 0, 1)])
        assert (summary(client, group, topic), lag(client, group, topic)) == ((0, 4), 8)
        running.advance(10)
        answer = b.fetch(max_records=6)
        assert (acquired(answer), offsets_read(answer)) == ([(4, 4, 2)], [0, 1, 2, 3, 4])
        running.advance(1_500)
        assert b.acknowledge((9, 11, [RENEW]), is_renew_ack=True) == 0
        assert kept(client, group, topic) == (0, [(0, 3, 2, 1), (4, 4, 0, 1)])
        running.advance(1_480)  # 3.01
        assert kept(client, group, topic) == (4, [(4, 8, 0, 1)])
        running.advance(20)  # 3.03
        assert kept(client, group, topic) == (4, [(4, 4, 0, 2), (5, 8, 0, 1)])
        running.advance(500)
        assert a.acknowledge((5, 8, [ACCEPT])) == 121
        assert a.take(max_records=6) == [(4, 4, 3), (5, 8, 2)]
        running.advance(100)
        assert b.acknowledge((9, 11, [ACCEPT, REJECT, ACCEPT])) == 0
        assert kept(client, group, topic)[1][2:] == [(9, 9, 2, 1), (10, 10, 4, 1), (11, 11, 2, 1)]
        assert summary(client, group, topic) == (4, 3)
        answer = a.fetch({0: [(4, 4, [ACCEPT])]}, epoch=-1)
        assert (answer.responses[0].partitions[0].acknowledge_error_code, acquired(answer)) == (0, [])
        running.until(lambda: running.node.share.partitions_of(group)[0].core.window.runs)
        assert kept(client, group, topic) == (5, [(5, 8, 0, 2), (9, 9, 2, 1), (10, 10, 4, 1), (11, 11, 2, 1)])
        running.advance(200)
        assert b.take() == [(5, 8, 3)]
        assert b.acknowledge((5, 8, [ACCEPT])) == 0
        assert (summary(client, group, topic), lag(client, group, topic)) == ((5, 7), 0)
        produce(client, topic, 1)
        assert b.take() == [(12, 12, 1)]
        assert b.acknowledge((12, 12, [ACCEPT])) == 0
        assert (kept(client, group, topic), summary(client, group, topic)) == ((12, [(12, 12, 2, 1)]), (12, 1))
