"""Every bound of a node is reached, and what lies beyond it happens as the list says."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.config.bounds import BOUNDS
from ottla.broker.controller.deleted_topics import REMEMBERED_MS
from ottla.broker.controller.encoded_topics import FORMS_MAX
from ottla.broker.coordinators import target_computations
from ottla.broker.coordinators.target_computations import TargetComputations
from ottla.broker.loop.clock import ManualClock
from ottla.broker.loop.delayed_operations import DelayedOperation, DelayedOperations
from ottla.broker.network import connection, dispatch, listener
from ottla.broker.network.connection import RECEIVE_BYTES, ConnectionLimits
from ottla.broker.network.file_limit import shares_of
from ottla.broker.network.memory_pool import DEFAULT_BYTES, HELD_MAX_MS, MemoryPool
from ottla.broker.network.refused_batches import PARTITIONS_MAX, RefusedBatches
from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.broker.network.web_server import CONNECTIONS_MAX, WebServer
from ottla.broker.replicas import fetch_sessions
from ottla.broker.replicas.fetch_sessions import FetchSessions, WantedPartition
from ottla.broker.share import leader
from ottla.broker.share.counts import OTHERS, GroupCounts
from ottla.broker.telemetry import log_deduplication, traffic
from ottla.broker.telemetry.log_deduplication import DeduplicationFilter
from ottla.core.groups import topic_sets
from ottla.core.groups.assignors.computation import Choice
from ottla.core.groups.classic import group as classic_group
from ottla.core.groups.consumer.patterns import check_regex
from ottla.core.groups.modern.target_jobs import ComputeTarget
from ottla.core.groups.topic_sets import TopicSets
from ottla.core.metadata.config_defs import broker_defs
from ottla.core.metadata.configs import VALUE_BYTES_MAX
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_names import NAME_CHARS_MAX, check_topic_name
from ottla.core.metadata.topics import PARTITIONS_PER_REQUEST_MAX
from ottla.core.share.sessions import ShareSessions
from ottla.log.disk import OsDisk
from ottla.log.files import Directory, LogFile, LogStorage, OpenFiles
from ottla.wire import frames
from ottla.wire.batch import read_header
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeTopicPartitionsRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    JoinGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ShareGroupHeartbeatRequest,
)
from tests.component.broker.connection_bench import Bench, answer_at_once, heartbeat
from tests.component.broker.raw_client import (
    RawClient,
    RunningNode,
    batch,
    fetch_partition,
    fetch_request,
    running_node,
)
from tests.component.broker.streams_requests import join, topology
from tests.hostile import attacks, counting_tries, slow_tls_reader  # noqa: F401  the tries of the last two count
from tests.hostile.reaching import TRIES, reaches
from tests.unit.broker.holder import Holder
from tests.unit.broker.telemetry.watched import Watched
from tests.unit.broker.telemetry.watched import frames as frames_of
from tests.unit.core.txn import driver as txn

MINUTES_MS = 60_000


# --- connections ------------------------------------------------------------------------------------------------------


def is_served(client: socket.socket) -> bool:
    """Whether a request is answered; False if the connection was closed."""
    try:
        client.sendall(heartbeat(1))
        return bool(client.recv(4))
    except ConnectionError:
        return False


def address_of(running: RunningNode) -> tuple[str, int]:
    advertised = running.node.advertised["PLAINTEXT"]
    return advertised.host, advertised.port


@reaches("connections", "backlog")
def connections_wait_until_one_goes(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    with (
        running_node(directory, max_connections=2) as running,
        attacks.dialled(address_of(running), 3) as (first, second, third),
    ):
        assert is_served(first)
        assert is_served(second)
        third.settimeout(0.1)
        with pytest.raises(TimeoutError):
            is_served(third)
        first.close()
        third.settimeout(5)
        assert third.recv(4), "there is room now"


@reaches("connections-per-ip")
def too_many_from_one_address_are_closed(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    with (
        running_node(directory, max_connections_per_ip=1) as running,
        attacks.dialled(address_of(running), 2) as (first, second),
    ):
        assert is_served(first)
        assert not is_served(second)


@reaches("files")
def connections_leave_files_for_logs(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    assert sum(shares_of(1024, 512)) < 1024
    assert shares_of(1024, 512).logs == 256
    assert shares_of(100_000, 512).logs == 512
    assert shares_of(1, 512) == (1, 1), "it must begin somehow"


@reaches("accepts")
def a_flood_is_accepted_in_turns(directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(listener, "ACCEPTS_PER_TURN", 1)
    with running_node(directory) as running, attacks.dialled(address_of(running), 20) as clients:
        assert all(map(is_served, clients))


@reaches("idle")
def who_does_not_take_its_answers_is_closed(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    bench = Bench(answer_at_once)
    with closing(bench.client):
        while bench.fd not in bench.loop.writers:  # until its socket is full
            bench.send(*range(200))
        assert not bench.connection.is_waiting
        assert not bench.connection.is_idle
        bench.connection.close("the test is over")


@reaches("web-connections")
def pages_are_for_so_many_at_a_time(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    async def crowd() -> None:
        server = WebServer(lambda _path: None)
        port = await server.start("127.0.0.1", 0)
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS_MAX)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read(1) == b"", "closed without a word"
        for _, each in [*silent, (reader, writer)]:
            each.close()
            await each.wait_closed()
        while server.connections:  # noqa: ASYNC110  # nobody else would want to be told
            await asyncio.sleep(0)
        server.close()

    asyncio.run(crowd())


@reaches("viewers", "viewer-rate", "viewer-frames", "viewer-bytes", "viewer-pending")
def those_who_watch_the_traffic_cost_so_much(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    viewer, *others = [watched.watch(errors_only=number > 0) for number in range(traffic.VIEWERS_MAX)]
    assert watched.traffic.is_full
    for _ in range(traffic.PENDING_MAX + 1):
        watched.ask(HeartbeatRequest(), 4)
    assert len(watched.traffic._pending) == traffic.PENDING_MAX
    for each in others:
        each.close()
    assert sum(map(len, iter(lambda: frames_of(viewer), []))) == traffic.FRAMES_PER_SECOND_MAX
    patch.setattr(traffic, "FRAMES_PER_SECOND_MAX", 1 << 30)
    for _ in range(traffic.RING_FRAMES_MAX + 1):
        watched.ask(HeartbeatRequest(), 4)
    assert viewer.dropped == 1
    watched.ask(HeartbeatRequest(), 4, size_bytes=traffic.RING_BYTES_MAX)
    assert viewer.dropped == 2 + traffic.RING_FRAMES_MAX, "one that large has no room even alone"


# --- what comes in ----------------------------------------------------------------------------------------------------


@reaches("frame")
def a_larger_frame_ends_the_connection(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    bench = Bench(answer_at_once, limits=ConnectionLimits(frame_max_bytes=10))
    with closing(bench.client):
        bench.send(1)
        assert bench.connection.is_closed


@reaches("receive")
def one_read_takes_so_much(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    bench = Bench(answer_at_once, limits=ConnectionLimits())
    with closing(bench.client):
        bench.client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * RECEIVE_BYTES)
        bench.client.setblocking(False)
        sent = bench.client.send((2 * RECEIVE_BYTES).to_bytes(4, "big") + bytes(2 * RECEIVE_BYTES))
        bench.turn()
        assert len(bench.connection._partial) == min(sent, RECEIVE_BYTES)
        bench.connection.close("the test is over")


def parked(_node: Any, _request: Request) -> Answer:
    return DelayedResponse()


@reaches("queued-frames", "queued-bytes")
def requests_behind_a_parked_one_are_not_read_without_end(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    for name, limit in (("QUEUED_FRAMES_MAX", 10), ("QUEUED_BYTES_MAX", 100)):
        with patch.context() as patched:
            patched.setattr(connection, name, limit)
            bench = Bench(parked)
            with closing(bench.client):
                bench.send(*range(30))
                assert bench.fd not in bench.loop.readers, name
                bench.connection.close("the test is over")


@reaches("requests-bytes", "requests-time")
def large_requests_share_one_room(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    memory_pool = MemoryPool()
    slow, next_one, waiting = Holder(), Holder(), Holder()
    assert memory_pool.take(slow, DEFAULT_BYTES - 1, 0)
    assert memory_pool.take(next_one, 100, 0)
    assert not memory_pool.take(waiting, 100, 0)
    memory_pool.expire(HELD_MAX_MS + 1)
    assert slow.closed


@reaches("client-ids", "client-id-bytes")
def names_of_clients_are_kept_for_so_many(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dispatch, "CLIENT_IDS_MAX", 3)
    bench = Bench(answer_at_once)
    with closing(bench.client):
        for name in ("x" * 1_000, "a", "b", "c", "d"):
            bench.client.sendall(
                frames.write_request(HeartbeatRequest(group_id="g"), 4, correlation_id=7, client_id=name)
            )
            bench.turn()
            assert bench.answers(1) == [7]
        assert set(bench.connection._dispatch._client_ids) == {b"a", b"b", b"c"}
        bench.connection.close("the test is over")


# --- what goes out ----------------------------------------------------------------------------------------------------


@reaches("outgoing")
def nothing_is_worked_on_for_who_does_not_read(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(connection, "OUTGOING_MAX_BYTES", 1_000)
    calls: list[int] = []

    def counted(node: Any, request: Request) -> Answer:
        calls.append(request.correlation_id)
        return answer_at_once(node, request)

    bench = Bench(counted)
    with closing(bench.client):
        for start in range(0, 400_000, 200):
            if bench.fd not in bench.loop.readers:
                break
            bench.send(*range(start, start + 200))
        assert bench.fd not in bench.loop.readers, "it is not even read"
        assert bench.connection._queue
        bench.connection.close("the test is over")


@reaches("fetch", "message")
def an_answer_has_so_many_bytes(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    with running_node(directory, fetch_max_bytes=1024, message_max_bytes=900) as running:
        client = running.client
        topic = client.topic()
        assert client.produce(topic, batch(bytes(1_000))).error_code == ErrorCode.MESSAGE_TOO_LARGE
        for _ in range(4):
            assert client.produce(topic, batch(bytes(500))).error_code == 0
        answer = client.ask(fetch_request(topic, fetch_partition(0, 0), max_bytes=1 << 20, session_epoch=-1), 17)
        assert 500 < len(answer.responses[0].partitions[0].records) <= 1024


@reaches("open-files")
def files_are_closed_for_others(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    disk = OsDisk()
    storage = LogStorage(disk, open_files=OpenFiles(disk, limit=2))
    for number in range(5):
        LogFile(Directory(storage, str(directory)), f"{number}.log").handle(create=True)
    assert len(storage.open_files) == 2
    storage.open_files.close_all()


# --- what waits and what is kept for clients --------------------------------------------------------------------------


@reaches("waiting")
def more_than_so_many_do_not_wait(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    delayed = DelayedOperations(operations_max=2)
    assert [delayed.park(DelayedOperation(lambda _expired: True, ["key"], 1)) for _ in range(3)] == [True, True, False]


def wanted(count: int) -> list[WantedPartition]:
    return [WantedPartition("t", bytes(16), number, fetch_offset=0, max_bytes=1) for number in range(count)]


@reaches("fetch-sessions", "fetch-session-partitions")
def sessions_have_room_for_so_much(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fetch_sessions, "SESSION_PARTITIONS_MAX", 10)
    numbers = iter(range(1, 100))
    sessions = FetchSessions(2, 1_000, lambda: next(numbers))

    def opened(count: int) -> Any:
        return sessions.open(wanted(count), uses_ids=False, now_ms=0)

    assert opened(11) is None, "too many partitions"
    first = opened(5)
    assert opened(4) is not None
    assert opened(1) is None, "too many sessions"
    with pytest.raises(Reject) as rejected:
        sessions.go_on(first.session_id, 1, wanted(2), (), uses_ids=False, now_ms=0)
    assert rejected.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 1


@reaches("refused-batches")
def refused_batches_are_remembered_of_so_many_partitions(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    refused = RefusedBatches()
    first, second = (
        read_header(memoryview(batch(b"a", producer_id=7, producer_epoch=0, base_sequence=number)))
        for number in range(2)
    )
    for index in range(PARTITIONS_MAX + 1):
        refused.refuse(("orders", index), first, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert len(refused) == PARTITIONS_MAX
    assert refused.code_for(("orders", 0), second) is None
    assert refused.code_for(("orders", 1), second) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@reaches("encoded-topics")
def topics_are_remembered_in_so_many_forms(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    with running_node(directory) as running:
        for version in range(1, 14):
            running.client.ask(MetadataRequest(None), version)
        assert len(running.node.encoded_topics._forms) <= FORMS_MAX


@reaches("deleted-topics")
def deleted_topics_are_forgotten(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    with running_node(directory, ManualClock()) as running:
        for _ in range(5):
            deleted = running.client.topic()
            running.client.ask(DeleteTopicsRequest(topic_names=(deleted.name,)), 5)
            assert deleted.name in running.node.deleted_topics
            running.advance(REMEMBERED_MS)
        assert len(running.node.deleted_topics) == 1


@reaches("share-sessions")
def share_sessions_are_for_so_many(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    sessions = ShareSessions(1)
    sessions.fetch("g", "a", 0, "connection")
    with pytest.raises(Reject) as rejected:
        sessions.fetch("g", "b", 0, "connection")
    assert rejected.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED


@reaches("share-settings")
def settings_of_groups_are_forgotten(directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "SETTINGS_MAX", 2)

    with running_node(directory) as running:
        share = running.node.share.leader
        for name in ("a", "b", "c", "d"):
            running.change(lambda name=name: share.settings(name))
        assert set(share._settings) == {"d"}


@reaches("share-counts")
def later_groups_are_counted_together(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    counts = GroupCounts(groups_max=2)
    for name in ("a", "b", "c", "d"):
        counts.of(name)
    assert set(counts.by_group) == {"a", "b", OTHERS}


def joined(group: str, member: str = "") -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(group, 10_000, 10_000, member, protocol_type="consumer", protocols=(protocol,))


@reaches("spared-groups")
def sizes_of_large_groups_are_forgotten(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(target_computations, "SPARED_GROUPS_MAX", 2)
    settings = {"ottla.group.assignor.timeout.ms": 1_000}
    node: Any = SimpleNamespace(spare_objects=int, offload=lambda work, then: None, settings=settings)
    worker: Any = SimpleNamespace()
    computations = TargetComputations(node, lambda entry: worker)
    parts = [bytes(target_computations.SPARED_BYTES_MIN)]
    for name in ("a", "b", "c"):
        computations.compute(ComputeTarget("consumer", name, 1, Choice("uniform"), parts), lambda outcome: None)
    assert set(computations._spared_bytes) == {"c"}


@reaches("pending-members")
def who_only_asks_for_an_id_is_forgotten(directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classic_group, "PENDING_MEMBERS_MAX", 2)
    with running_node(directory) as running:
        client = running.client
        answers = [client.ask(joined("g"), 9) for _ in range(3)]
        assert {answer.error_code for answer in answers} == {ErrorCode.MEMBER_ID_REQUIRED}
        first = client.ask(joined("g", answers[0].member_id), 9)
        assert first.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def codes(client: RawClient, request: Callable[[str], object], version: int, count: int) -> list[int]:
    """What so many members that join one group get."""
    numbers = (f"{number:022d}" for number in range(count))
    return [client.connect().ask(request(number), version).error_code for number in numbers]


@reaches("classic-members", "consumer-members", "share-members", "streams-members")
def groups_have_so_many_members(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    full = ErrorCode.GROUP_MAX_SIZE_REACHED
    settings = {
        "group_max_size": 1,
        "group_consumer_max_size": 1,
        "group_share_max_size": 10,
        "group_streams_max_size": 1,
        "group_initial_rebalance_delay_ms": 0,
    }
    with running_node(directory, **settings) as running:
        client = running.client
        topic = client.topic()
        first = client.ask(joined("classic"), 3)
        assert first.error_code == 0
        assert client.connect().ask(joined("classic"), 3).error_code == full

        def consumer(member: str) -> object:
            return ConsumerGroupHeartbeatRequest(
                group_id="consumer",
                member_id=member,
                rebalance_timeout_ms=1_000,
                subscribed_topic_names=(topic.name,),
                topic_partitions=(),
            )

        def share(member: str) -> object:
            return ShareGroupHeartbeatRequest(
                group_id="share", member_id=member, member_epoch=0, subscribed_topic_names=(topic.name,)
            )

        assert codes(client, consumer, 1, 2) == [0, full]
        assert codes(client, share, 1, 11) == [0] * 10 + [full]
        assert codes(client, lambda member: join("streams", member, topology(topic.name)), 0, 2) == [0, full]


@reaches("topic-sets")
def subscriptions_are_remembered_for_so_many(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(topic_sets, "SETS_MAX", 2)

    class NoTopics:
        def by_name(self, _name: str) -> None:
            return None

    sets = TopicSets()
    for name in ("a", "b", "c"):
        sets.existing(frozenset({name}), NoTopics())  # type: ignore[arg-type]
    assert len(sets._existing) <= 2


@reaches("regex-program")
def patterns_that_compile_to_too_much_are_refused(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    check_regex("(a|b){1,20}")
    with pytest.raises(Reject) as rejected:
        check_regex("((a{1,100}){1,10}){1,10}" * 200)
    assert rejected.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


# --- what may be asked for --------------------------------------------------------------------------------------------


def appended(client: RawClient, topic: str, value: str) -> int:
    alter = IncrementalAlterConfigsRequest
    change = alter.AlterableConfig("leader.replication.throttled.replicas", 2, value)
    resource = alter.AlterConfigsResource(2, topic, (change,))
    code: int = client.ask(alter((resource,)), 1).responses[0].error_code
    return code


@reaches("partitions-per-request", "described-partitions", "config-value", "offset-metadata")
def a_request_asks_for_so_much(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    with running_node(directory, max_request_partition_size_limit=2, offset_metadata_max_bytes=10) as running:
        client = running.client
        topic = client.topic(partitions=3)
        many = CreateTopicsRequest.CreatableTopic("many", PARTITIONS_PER_REQUEST_MAX + 1, 1)
        assert client.ask(CreateTopicsRequest((many,), 1_000), 7).topics[0].error_code != 0
        assert running.node.image.topic("many") is None
        asked = (DescribeTopicPartitionsRequest.TopicRequest(topic.name),)
        described = client.ask(DescribeTopicPartitionsRequest(asked, response_partition_limit=100), 0)
        assert len(described.topics[0].partitions) == 2
        assert described.next_cursor.partition_index == 2
        pairs = ",".join(f"{number}:1" for number in range(3_000, 6_000))
        assert len(pairs) < VALUE_BYTES_MAX < 2 * len(pairs)
        assert appended(client, topic.name, pairs) == 0
        assert appended(client, topic.name, pairs.replace(":1", ":2")) == ErrorCode.INVALID_CONFIG
        commit = OffsetCommitRequest
        offset = commit.OffsetCommitRequestPartition(0, 1, committed_metadata="x" * 11)
        written = client.ask(
            commit("g", topics=(commit.OffsetCommitRequestTopic(topic.name, partitions=(offset,)),)), 9
        )
        assert written.topics[0].partitions[0].error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE


@reaches("topic-name")
def names_have_an_end(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    check_topic_name("x" * NAME_CHARS_MAX)
    with pytest.raises(Reject):
        check_topic_name("x" * (NAME_CHARS_MAX + 1))


# --- what is kept of the past -----------------------------------------------------------------------------------------


@reaches("producers")
def producers_are_forgotten(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    with running_node(directory, ManualClock(), producer_id_expiration_ms=MINUTES_MS) as running:
        topic = running.client.topic()
        sent = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0)
        assert running.client.produce(topic, sent).error_code == 0
        [log] = [each for each in running.node.replicas.logs() if each.topic_partition.topic == topic.name]
        assert len(log.producers) == 1
        running.clock.advance(20 * MINUTES_MS)
        running.change(running.node.housekeeping.run_due)
        while len(log.producers):
            running.change(lambda: None)  # a cooperative task does it


@reaches("transactions")
def transactional_ids_are_forgotten(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    driver = txn.Driver()
    txn.abort_seldom(driver)
    driver.begun("unused")
    driver.advance(7 * txn.DAY_MS)
    assert not driver.core.transactions


@reaches("logged-causes", "logged-values")
def a_cause_is_logged_once(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_deduplication, "CAUSES_MAX", 30)
    once = DeduplicationFilter()

    def passes(text: str, *values: object) -> bool:
        return once.filter(logging.LogRecord("ottla.x", logging.WARNING, "file", 1, text, values, None))

    assert [passes("%s fails", 1) for _ in range(3)] == [True, False, False]
    told = sum(passes("%s fails", number) for number in range(2, 1_000))
    assert told == log_deduplication.VALUES_MAX, "the others together have one line"
    for number in range(100):
        passes(f"{number} is another text")
    assert len(once._causes) <= 30


@pytest.mark.parametrize("name", [bound.name for bound in BOUNDS])
def test_a_bound_is_reached(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in TRIES, f"nobody tries the bound {name}"
    TRIES[name](tmp_path, monkeypatch)


def test_every_bound_has_a_value() -> None:
    for bound in BOUNDS:
        assert bound.home or bound.setting in broker_defs(), bound.name
        if bound.home:
            assert bound.value > 0, bound.name


def test_nothing_is_tried_that_is_not_listed() -> None:
    assert set(TRIES) == {bound.name for bound in BOUNDS}
    assert len({bound.name for bound in BOUNDS}) == len(BOUNDS)
