"""Produce over the wire: what is refused and how, idempotent producers, what is stored."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.replicas.replicas import TAKEN_OVER_MS
from ottla.wire.batch import BatchView, Compression, crc32c
from ottla.wire.types import CreateTopicsRequest, DeleteRecordsRequest, MetadataRequest, ProduceRequest
from tests.component.broker.raw_client import (
    Closed,
    RawClient,
    RunningNode,
    Topic,
    batch,
    batches,
    produce_request,
    running_node,
    values,
)

HOUR_MS = 3_600_000
PRODUCER_ID = 9_000
"""No producer that a node has given its id to."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def patched(data: bytes, position: int, form: str, value: int) -> bytes:
    """The batch with a field changed and a checksum that fits."""
    changed = bytearray(data)
    struct.pack_into(form, changed, position, value)
    struct.pack_into(">I", changed, 17, crc32c(changed[21:]))
    return bytes(changed)


def stored(client: RawClient, topic: Topic, offset: int = 0) -> list[BatchView]:
    return [one for one in batches(client.fetch(topic, offset)) if isinstance(one, BatchView)]


# --- acknowledgements and addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_is_served(client: RawClient, version: int):
    topic = client.topic()
    answer = client.produce(topic, batch(b"a", b"b"), version=version)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, 0, -1)
    assert (answer.log_start_offset, answer.record_errors, answer.error_message) == (
        0 if version >= 5 else -1,
        (),
        None,
    )
    assert client.produce(topic, batch(b"c"), version=version).base_offset == 2
    assert values(client.fetch(topic)) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("version", range(3))
def test_versions_that_are_advertised_only_end_the_connection(client: RawClient, version: int):
    connection = client.connect()
    head = struct.pack(">hhih", 0, version, 0, -1)
    body = struct.pack(">hii", 1, 1_000, 0)
    connection._sock.sendall(struct.pack(">i", len(head + body)) + head + body)
    with pytest.raises(Closed):
        connection.receive(0, 3, 0)


def test_one_acknowledgement(client: RawClient):
    topic = client.topic()
    assert client.produce(topic, batch(b"a"), acks=1).base_offset == 0
    assert values(client.fetch(topic)) == [b"a"]


def test_no_acknowledgement_has_no_answer_and_the_next_request_gets_its_own(client: RawClient):
    topic = client.topic()
    connection = client.connect()
    connection.send(produce_request(topic, {0: batch(b"a")}, acks=0), 13)
    assert (
        connection.ask(produce_request(topic, {0: batch(b"b")}), 13).responses[0].partition_responses[0].base_offset
        == 1
    )
    connection.close()


def test_an_error_without_acknowledgement_ends_the_connection(client: RawClient):
    connection = client.connect()
    connection.send(produce_request(Topic("nowhere", b"\x07" * 16), {0: batch(b"a")}, acks=0), 13)
    with pytest.raises(Closed):
        connection.receive(0, 13, 0)


def test_other_acknowledgements_are_refused(client: RawClient):
    assert client.produce(client.topic(), batch(b"a"), acks=2).error_code == 21


def test_empty_records_are_refused_before_the_acknowledgements_are_looked_at(client: RawClient):
    assert client.produce(client.topic(), b"", acks=2).error_code == 87


def test_unknown_topics_by_name_and_by_id(client: RawClient):
    unknown = Topic("nowhere", b"\x07" * 16)
    assert client.produce(unknown, batch(b"a"), version=12).error_code == 3
    assert client.produce(unknown, batch(b"a"), version=13).error_code == 100
    assert client.produce(Topic("", bytes(16)), batch(b"a"), version=13).error_code == 100


def test_an_unknown_partition(client: RawClient):
    answer = client.produce(client.topic(), batch(b"a"), partition=7)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (3, -1, -1)
    assert answer.log_start_offset == -1


def test_partitions_are_handled_each_by_itself(client: RawClient):
    topic = client.topic(3)
    answer = client.ask(produce_request(topic, {2: batch(b"a"), 9: batch(b"b"), 0: b"", 1: batch(b"c")}), 13)
    told = {one.index: one.error_code for one in answer.responses[0].partition_responses}
    assert told == {2: 0, 9: 3, 0: 87, 1: 0}


def test_a_partition_twice_in_a_request(client: RawClient):
    topic = client.topic()
    data = tuple(ProduceRequest.PartitionProduceData(0, batch(value)) for value in (b"a", b"b"))
    named = ProduceRequest.TopicProduceData(topic.name, topic.topic_id, data)
    answer = client.ask(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(named,)), 13)
    assert all(one.error_code == 0 for one in answer.responses[0].partition_responses)


def test_pipelined_requests_are_answered_in_order(client: RawClient):
    topic = client.topic()
    connection = client.connect()
    sent = [connection.send(produce_request(topic, {0: batch(b"%d" % number)}), 13) for number in range(5)]
    answers = [connection.receive(0, 13, number) for number in sent]
    assert [one.responses[0].partition_responses[0].base_offset for one in answers] == [0, 1, 2, 3, 4]
    connection.close()


# --- what is no sound batch -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (b"", 87),
        (batch(b"a") + batch(b"b"), 87),
        (batch(b"a", base_offset=0)[:-1] + b"\xff", 2),
        (patched(batch(b"a"), 0, ">q", 5), 87),
        (patched(batch(b"a"), 16, ">b", 1), 87),
        (patched(batch(b"a", b"b"), 23, ">i", 4), 87),
        (patched(batch(b"a"), 57, ">i", 0), 87),
        (patched(batch(b"a"), 21, ">h", 0x20), 87),
        (batch(b"a", producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=-1), 87),
    ],
    ids=[
        "empty",
        "two-batches",
        "crc",
        "base-offset",
        "magic",
        "last-offset-delta",
        "no-records",
        "control",
        "no-sequence",
    ],
)
def test_what_is_no_sound_batch_is_refused(client: RawClient, records: bytes | None, code: int):
    topic = client.topic()
    answer = client.produce(topic, records)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (code, -1, -1)
    assert client.fetch(topic).high_watermark == 0


def test_zstd_needs_version_7(client: RawClient):
    topic = client.topic()
    records = batch(b"a" * 100, compression=Compression.ZSTD)
    assert client.produce(topic, records, version=6).error_code == 76
    assert client.produce(topic, records, version=7).error_code == 0


def test_a_batch_that_is_too_large(client: RawClient):
    topic = client.topic(max_message_bytes=2_000)
    assert client.produce(topic, batch(bytes(3_000))).error_code == 10
    assert client.produce(topic, batch(bytes(3_000), compression=Compression.GZIP)).error_code == 0


def test_keyless_records_have_no_place_in_a_compacted_topic(client: RawClient):
    topic = client.topic(cleanup_policy="compact")
    answer = client.produce(topic, batch(b"a", b"b", b"c", keys=[None, b"k", None]))
    assert answer.error_code == 87
    assert [one.batch_index for one in answer.record_errors] == [0, 2]
    assert answer.error_message
    assert client.fetch(topic).high_watermark == 0


def test_a_timestamp_from_the_future(client: RawClient):
    topic = client.topic()
    answer = client.produce(topic, batch(b"a", b"b", timestamps=[now_ms(), now_ms() + 2 * HOUR_MS]))
    assert (answer.error_code, [one.batch_index for one in answer.record_errors]) == (32, [1])
    assert client.produce(topic, batch(b"a", timestamp=now_ms() + HOUR_MS // 2)).error_code == 0


def test_a_timestamp_that_is_too_old(client: RawClient):
    topic = client.topic(message_timestamp_before_max_ms=HOUR_MS)
    assert client.produce(topic, batch(b"a", timestamp=now_ms() - 2 * HOUR_MS)).error_code == 32
    assert client.produce(topic, batch(b"a", timestamp=now_ms())).error_code == 0


def test_internal_topics_are_closed_to_clients(running: RunningNode):
    client = running.client
    new = CreateTopicsRequest.CreatableTopic("__consumer_offsets", 1, 1)
    made = client.ask(CreateTopicsRequest((new,), 5_000), 7).topics[0]
    topic = Topic(made.name, made.topic_id)
    records = batch(b"a", keys=[b"k"])
    assert client.produce(topic, records).error_code == 17
    assert client.produce(topic, records, version=12).error_code == 17
    delete = DeleteRecordsRequest.DeleteRecordsTopic(topic.name, (DeleteRecordsRequest.DeleteRecordsPartition(0, 0),))
    assert client.ask(DeleteRecordsRequest((delete,), 5_000), 2).topics[0].partitions[0].error_code == 17
    admin = client.connect("__admin_client")
    assert client.produce(topic, records, connection=admin).error_code == 0
    admin.close()


# --- what is stored ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", list(Compression))
def test_compression_stays_as_the_producer_made_it(client: RawClient, codec: Compression):
    topic = client.topic()
    client.produce(topic, batch(b"a" * 200, b"b", compression=codec))
    (found,) = stored(client, topic)
    assert found.compression is codec
    assert found.is_valid
    assert values(client.fetch(topic)) == [b"a" * 200, b"b"]


def test_the_topic_may_ask_for_another_compression(client: RawClient):
    topic = client.topic(compression_type="gzip")
    client.produce(topic, batch(b"a" * 200, b"b"))
    (found,) = stored(client, topic)
    assert found.compression is Compression.GZIP
    assert found.is_valid
    assert values(client.fetch(topic)) == [b"a" * 200, b"b"]


def test_the_topic_may_ask_for_no_compression(client: RawClient):
    topic = client.topic(compression_type="uncompressed")
    client.produce(topic, batch(b"a" * 200, compression=Compression.LZ4))
    (found,) = stored(client, topic)
    assert (found.compression, found.is_valid) == (Compression.NONE, True)


def test_log_append_time(client: RawClient):
    topic = client.topic(message_timestamp_type="LogAppendTime")
    before = now_ms()
    answer = client.produce(topic, batch(b"a", b"b"))
    assert before <= answer.log_append_time_ms <= now_ms()
    (found,) = stored(client, topic)
    assert found.attributes & 8
    assert found.max_timestamp == answer.log_append_time_ms
    assert found.is_valid


def test_the_leader_sets_offset_and_epoch(client: RawClient):
    topic = client.topic()
    for value in (b"a", b"b"):
        client.produce(topic, batch(value))
    assert [(one.base_offset, one.partition_leader_epoch) for one in stored(client, topic)] == [(0, 0), (1, 0)]


# --- idempotent producers ---------------------------------------------------------------------------------------------


def sequenced(sequence: int, *values: bytes, epoch: int = 0, timestamp: int = 1_000) -> bytes:
    return batch(
        *(values or (b"x",)),
        timestamp=timestamp,
        producer_id=PRODUCER_ID,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def sent(client: RawClient, topic: Topic, *batches: bytes) -> list[tuple[int, int]]:
    answers = [client.produce(topic, one) for one in batches]
    return [(one.error_code, one.base_offset) for one in answers]


def test_a_repeated_batch_gets_its_old_offset(client: RawClient):
    topic = client.topic()
    twice = sequenced(0, b"a", b"b", timestamp=5_000)
    assert sent(client, topic, twice, twice) == [(0, 0), (0, 0)]
    assert client.produce(topic, twice).log_append_time_ms == 5_001
    assert values(client.fetch(topic)) == [b"a", b"b"]


def test_a_gap_is_refused(client: RawClient):
    topic = client.topic()
    assert sent(client, topic, sequenced(0, b"a", b"b"), sequenced(5), sequenced(2)) == [(0, 0), (45, -1), (0, 2)]


def test_the_last_five_batches_are_known_again(client: RawClient):
    topic = client.topic()
    sent(client, topic, *map(sequenced, range(9)))
    assert sent(client, topic, sequenced(4), sequenced(0), sequenced(3)) == [(0, 4), (45, -1), (45, -1)]


def test_a_new_epoch_begins_with_sequence_0(client: RawClient):
    topic = client.topic()
    steps = sequenced(0), sequenced(3, epoch=1), sequenced(0, epoch=1), sequenced(1)
    assert sent(client, topic, *steps) == [(0, 0), (45, -1), (0, 1), (47, -1)]


def test_an_unknown_producer_may_begin_anywhere(client: RawClient):
    topic = client.topic()
    assert sent(client, topic, sequenced(7), sequenced(9), sequenced(8)) == [(0, 0), (45, -1), (0, 1)]


def test_sequences_wrap_around(client: RawClient):
    topic = client.topic()
    last = (1 << 31) - 1
    assert sent(client, topic, sequenced(last), sequenced(0)) == [(0, 0), (0, 1)]
    across = sequenced(last - 1, b"a", b"b", b"c", epoch=0)
    other = client.topic()
    assert sent(client, other, across, sequenced(1), across) == [(0, 0), (0, 3), (0, 0)]


def test_pipelined_duplicates_are_stored_once(client: RawClient):
    topic = client.topic()
    connection = client.connect()
    request = produce_request(topic, {0: sequenced(0, b"a")})
    numbers = [connection.send(request, 13) for _ in range(3)]
    answers = [connection.receive(0, 13, number).responses[0].partition_responses[0] for number in numbers]
    assert [(one.error_code, one.base_offset) for one in answers] == [(0, 0)] * 3
    assert values(client.fetch(topic)) == [b"a"]
    connection.close()


def test_transactional_records_without_a_transactional_id_are_refused(client: RawClient):
    topic = client.topic(2)
    records = batch(b"a", producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=0, is_transactional=True)
    answer = client.ask(produce_request(topic, {0: records, 1: batch(b"b")}), 13)
    assert [one.error_code for one in answer.responses[0].partition_responses] == [53, 53]
    assert client.fetch(topic, partition=1).high_watermark == 0


# --- what only a node of ours does, or can be made to do --------------------------------------------------------------


def test_null_records_are_refused(running: RunningNode):
    """Apache Kafka gives no answer to them at all."""
    assert running.client.produce(running.client.topic(), None).error_code == 87


def lead_elsewhere(running: RunningNode, topic: Topic) -> Any:
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def move() -> None:
        replica.leader = 99

    running.change(move)
    return replica


def test_what_was_sent_behind_a_batch_that_was_refused_is_refused_alike(running: RunningNode):
    """The node becomes the leader while a producer has several batches under way."""
    client = running.client
    topic = client.topic()
    zero, one, two = (sequenced(number) for number in range(3))
    assert sent(client, topic, zero) == [(0, 0)]
    replica = lead_elsewhere(running, topic)
    assert sent(client, topic, one) == [(6, -1)]
    running.change(lambda: setattr(replica, "leader", 1))
    assert sent(client, topic, two, one, two) == [(6, -1), (0, 1), (0, 2)]


def test_what_the_former_leader_has_taken_is_gone_on_with(running: RunningNode):
    client = running.client
    topic = client.topic()
    zero, one, two = (sequenced(number) for number in range(3))
    assert sent(client, topic, zero, one) == [(0, 0), (0, 1)]
    replica = lead_elsewhere(running, topic)
    assert sent(client, topic, one) == [(6, -1)]  # its first answer was lost
    running.change(lambda: setattr(replica, "leader", 1))
    assert sent(client, topic, two, one) == [(0, 2), (0, 1)]


def test_a_leader_that_does_not_know_a_producer_waits_for_its_first_batch(running: RunningNode):
    client = running.client
    topic = client.topic()
    zero, one = (sequenced(number) for number in range(2))
    replica = lead_elsewhere(running, topic)
    assert sent(client, topic, zero) == [(6, -1)]
    running.change(lambda: setattr(replica, "leader", 1))
    assert sent(client, topic, one, zero, one) == [(6, -1), (0, 0), (0, 1)]


def test_a_batch_that_comes_too_early_after_a_move_is_sent_again(running: RunningNode):
    """The one before it may still be on its way from the former leader; a few seconds later it is missing."""
    client = running.client
    topic = client.topic()
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None
    zero, one, two, four = (sequenced(number) for number in (0, 1, 2, 4))
    assert sent(client, topic, zero) == [(0, 0)]

    def take_over(ago_ms: int) -> None:
        running.change(lambda: setattr(replica, "taken_over_at_ms", running.node.clock.monotonic_ms() - ago_ms))

    take_over(0)
    assert sent(client, topic, two, one, two) == [(6, -1), (0, 1), (0, 2)]
    take_over(TAKEN_OVER_MS)
    assert sent(client, topic, four) == [(45, -1)]


def test_a_batch_that_never_comes_again_is_not_waited_for(running: RunningNode):
    """Not longer than batches can have been under way; others of the producer may have gone elsewhere."""
    client = running.client
    topic = client.topic()
    replica = lead_elsewhere(running, topic)
    assert sent(client, topic, sequenced(0)) == [(6, -1)]
    running.change(lambda: setattr(replica, "leader", 1))
    later = [sequenced(number) for number in range(1, 6)]
    assert sent(client, topic, *later) == [*[(6, -1)] * 4, (0, 0)]


@pytest.mark.parametrize("version", [9, 10, 13])
def test_who_is_not_the_leader_names_it(running: RunningNode, version: int):
    client = running.client
    topic = client.topic()
    lead_elsewhere(running, topic)
    answer = client.ask(produce_request(topic, {0: batch(b"a")}), version)
    partition = answer.responses[0].partition_responses[0]
    assert partition.error_code == 6
    named = (partition.current_leader.leader_id, [one.node_id for one in answer.node_endpoints])
    assert named == ((1, [1]) if version >= 10 else (-1, []))


def test_one_replica_can_be_no_more_than_one_in_sync(running: RunningNode):
    client = running.client
    assert client.produce(client.topic(min_insync_replicas=2), batch(b"a")).error_code == 0


def test_what_is_not_acknowledged_in_time(running: RunningNode):
    client = running.client
    topic = client.topic()
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def widen() -> None:
        replica.replicas = replica.isr = (1, 2)

    running.change(widen)
    named = produce_request(topic, {0: batch(b"a")}).topic_data
    answer = client.ask(ProduceRequest(acks=-1, timeout_ms=20, topic_data=named), 13)
    assert answer.responses[0].partition_responses[0].error_code == 7


def test_leadership_lost_while_waiting(running: RunningNode):
    client = running.client
    topic = client.topic()
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def widen() -> None:
        replica.replicas = replica.isr = (1, 2)

    running.change(widen)
    connection = client.connect()
    number = connection.send(produce_request(topic, {0: batch(b"a")}), 13)
    assert connection.is_silent(0.05)

    def lose() -> None:
        replica.leader = 2
        running.node.replicas.wake(replica.topic_partition)

    running.change(lose)
    assert connection.receive(0, 13, number).responses[0].partition_responses[0].error_code == 6
    connection.close()


def test_a_new_node_knows_its_producers_again(tmp_path: Path):
    zero, one, two, three = (sequenced(number, timestamp=now_ms()) for number in range(4))
    with running_node(tmp_path) as first:
        topic = first.client.topic()
        assert sent(first.client, topic, zero, one) == [(0, 0), (0, 1)]
    with running_node(tmp_path) as second:
        assert sent(second.client, topic, one, three, two) == [(0, 1), (45, -1), (0, 2)]


def test_a_new_node_forgets_producers_that_were_silent_too_long(tmp_path: Path):
    with running_node(tmp_path) as first:
        topic = first.client.topic()
        assert sent(first.client, topic, sequenced(0, timestamp=1_000)) == [(0, 0)]
    with running_node(tmp_path) as second:
        assert sent(second.client, topic, sequenced(5)) == [(0, 1)]


def test_metadata_after_silence(client: RawClient):
    """An unanswered produce does not shift the answers behind it."""
    topic = client.topic()
    connection = client.connect()
    connection.send(produce_request(topic, {0: batch(b"a")}, acks=0), 13)
    asked = MetadataRequest((MetadataRequest.MetadataRequestTopic(name=topic.name),))
    assert [one.name for one in connection.ask(asked, 9).topics] == [topic.name]
    connection.close()
