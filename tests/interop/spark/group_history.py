"""A cluster with groups of all kinds and transactions in all states, made by clients and by raw requests.

Members that heartbeat by hand do so only until they have what they want; the cluster's sessions are long.
"""

import time
import uuid
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as At

from ottla.client import group_offsets
from ottla.client.blocking import BlockingClient
from ottla.client.client import always
from ottla.client.metadata import TopicPartition
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.interop.spark.topics import Topics

LONG_SESSIONS = {
    f"group.{kind}.{name}": "600000"
    for kind in ("consumer", "share", "streams")
    for name in ("session.timeout.ms", "max.session.timeout.ms")
}
TIMEOUT_S = 60
PAUSE_S = 0.2
TOPIC, OTHER = "orders", "payments"
CLASSIC, SIMPLE, CONSUMER, SHARE, IDLE_SHARE, STREAMS = "classic", "simple", "modern", "sharing", "idle-share", "app"


def make_history(topics: Topics) -> None:
    """Everything that the tests look for."""
    for name in (TOPIC, OTHER):
        topics.create(name, partitions=2, retention_ms=-1)
        topics.fill(name, 0, 30)
        topics.fill(name, 1, 20)
    client, servers = topics.client, topics.bootstrap_servers
    _classic_group(servers)
    _simple_group(client)
    _offsets_in_transactions(servers)
    _until_assigned(lambda *state: _consumer_beat(client, *state))
    _until_assigned(lambda *state: _share_beat(client, *state))
    client.call(group_offsets.alter_share, IDLE_SHARE, {TopicPartition(OTHER, 0): 7, TopicPartition(OTHER, 1): 3})
    _until_assigned(lambda *state: _streams_beat(client, *state))
    for state in ("committed", "aborted", "open"):
        _transaction(servers, state)


def _classic_group(servers: str) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": CLASSIC, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    deadline = time.monotonic() + TIMEOUT_S
    while not consumer.assignment():
        assert time.monotonic() < deadline, "the classic group did not form"
        consumer.poll(PAUSE_S)
    consumer.commit(offsets=[At(TOPIC, 0, 11, "note"), At(TOPIC, 1, 12)], asynchronous=False)
    consumer.commit(offsets=[At(TOPIC, 0, 13, "newer")], asynchronous=False)
    consumer.close()


def _simple_group(client: BlockingClient) -> None:
    offsets = {TopicPartition(TOPIC, 0): 4, TopicPartition(TOPIC, 1): 5, TopicPartition(OTHER, 0): 6}
    client.call(group_offsets.commit, SIMPLE, offsets)
    client.call(group_offsets.delete_offsets, SIMPLE, [TopicPartition(TOPIC, 1)])


def _offsets_in_transactions(servers: str) -> None:
    """A committed offset 9, and an aborted 99 after it."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": SIMPLE})
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "offsets"})
    producer.init_transactions(TIMEOUT_S)
    for offset, end in ((9, producer.commit_transaction), (99, producer.abort_transaction)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction([At(OTHER, 1, offset)], consumer.consumer_group_metadata(), TIMEOUT_S)
        end(TIMEOUT_S)
    consumer.close()


def _transaction(servers: str, state: str) -> None:
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": f"tx-{state}", "transaction.timeout.ms": 600000}
    )
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(OTHER, b"v", partition=1)
    assert producer.flush(TIMEOUT_S) == 0
    if state != "open":
        (producer.commit_transaction if state == "committed" else producer.abort_transaction)(TIMEOUT_S)
    _KEPT.append(producer)  # one that goes away would abort


_KEPT: list[Producer] = []


def let_go() -> None:
    """Before the broker goes: what clients still keep open."""
    _KEPT.clear()


# --- members by hand --------------------------------------------------------------------------------------------------


def _until_assigned(beat: Callable[[str, int, Any], Any]) -> None:
    """Heartbeat until the member has been given something, and has said that it has it."""
    member_id, epoch, assignment = str(uuid.uuid4()), 0, None
    deadline = time.monotonic() + TIMEOUT_S
    is_given = False
    while True:
        answer = beat(member_id, epoch, assignment)
        assert answer.error_code == 0, answer
        assert time.monotonic() < deadline, "nothing was assigned"
        if is_given and answer.member_epoch == epoch:
            return
        epoch = answer.member_epoch
        given = _given(answer)
        if given:
            assignment, is_given = given, True
        time.sleep(PAUSE_S)


def _given(answer: Any) -> Any:
    if hasattr(answer, "active_tasks"):
        return answer.active_tasks
    return answer.assignment.topic_partitions if answer.assignment else None


def _consumer_beat(client: BlockingClient, member_id: str, epoch: int, owned: Any) -> Any:
    kind = ConsumerGroupHeartbeatRequest.TopicPartitions
    request = ConsumerGroupHeartbeatRequest(
        group_id=CONSUMER,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=(TOPIC,),
        topic_partitions=tuple(kind(each.topic_id, each.partitions) for each in owned or ()),
    )
    return client.ask("ConsumerGroupHeartbeat", always(request), coordinator=("group", CONSUMER)).body


def _share_beat(client: BlockingClient, member_id: str, epoch: int, _owned: Any) -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id=SHARE, member_id=member_id, member_epoch=epoch, subscribed_topic_names=(TOPIC, OTHER)
    )
    return client.ask("ShareGroupHeartbeat", always(request), coordinator=("group", SHARE)).body


def _streams_beat(client: BlockingClient, member_id: str, epoch: int, owned: Any) -> Any:
    part = StreamsGroupHeartbeatRequest.Subtopology(subtopology_id="0", source_topics=(TOPIC,))
    topology = StreamsGroupHeartbeatRequest.Topology(epoch=0, subtopologies=(part,))
    tasks = tuple(StreamsGroupHeartbeatRequest.TaskIds(each.subtopology_id, each.partitions) for each in owned or ())
    request = StreamsGroupHeartbeatRequest(
        group_id=STREAMS,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=300_000,
        topology=topology if epoch == 0 else None,
        active_tasks=tasks,
        standby_tasks=(),
        warmup_tasks=(),
        process_id="process-1" if epoch == 0 else None,
        client_tags=() if epoch == 0 else None,
    )
    return client.ask("StreamsGroupHeartbeat", always(request), coordinator=("group", STREAMS)).body
