"""Fetching: positions, ends, what is hidden, and what happens when leaders fail."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from ottla.client import EARLIEST, LATEST, Client, Fetcher, TopicPartition, fetch
from ottla.client.backoff import Deadline
from ottla.client.errors import ClosedError, ConfigurationError, ProtocolError, ResponseError
from ottla.wire import WireError, frames, types
from ottla.wire.batch import TimestampType, build_end_txn_marker
from ottla.wire.errors import ErrorCode
from tests.component.client.fake import DROP, HOLD, FakeCluster, topic_id
from tests.component.client.fake_logs import ORDERS, Data, Logs, Topic
from tests.unit.client.batches import TIME_MS, batch
from tests.unit.client.running import run


def cluster_of(
    nodes: int = 1, leaders: dict[str, list[int]] | None = None, **batches: list[bytes]
) -> tuple[FakeCluster, Logs]:
    logs = Logs(**batches)
    cluster = FakeCluster(nodes, leaders or {name: [1] for name in batches})
    for broker in cluster.brokers.values():
        broker.on("Fetch", logs.fetch)
        broker.on("ListOffsets", logs.list_offsets)
    return cluster, logs


async def offsets(client: Client, start: int = EARLIEST, until: Any = LATEST, **options: Any) -> list[int]:
    return [record.offset async for record in fetch(client, {ORDERS: start}, until=until, **options)]


def test_records_have_all_that_the_log_knows():
    async def body() -> None:
        cluster, _ = cluster_of(orders=[batch(0, 1)])
        async with cluster, cluster.client() as client:
            found = [record async for record in fetch(client, {("orders", 0): EARLIEST}, until=LATEST)]
            assert found[1] == ("orders", 0, 1, TIME_MS + 1, TimestampType.CREATE_TIME, b"k1", b"v", (), 4)
            assert isinstance(found[1].key, bytes)
            asked = cluster.broker().asked_for("Fetch")[0]
            assert (asked.session_id, asked.session_epoch, asked.isolation_level, asked.max_wait_ms) == (0, -1, 0, 500)

    run(body)


@pytest.mark.parametrize("version", [4, 12, 18])
def test_old_and_new_brokers(version: int):
    async def body() -> None:
        cluster, _ = cluster_of(orders=[batch(0, 1, 2), batch(3, 4)])
        async with cluster:
            cluster.broker().versions["Fetch"] = (4, version)
            async with cluster.client() as client:
                assert await offsets(client) == [0, 1, 2, 3, 4]

    run(body)


@pytest.mark.parametrize(
    ("start", "until", "found"), [(1, LATEST, [1, 2, 3, 4]), (2, {ORDERS: 4}, [2, 3]), (5, LATEST, [])]
)
def test_reading_begins_and_ends_inside_batches(start: int, until: Any, found: list[int]):
    async def body() -> None:
        cluster, _ = cluster_of(orders=[batch(0, 1, 2), batch(3, 4)])
        async with cluster, cluster.client() as client:
            assert await offsets(client, start, until) == found

    run(body)


@pytest.mark.parametrize("until", [LATEST, {ORDERS: 0}])
def test_an_empty_log_is_not_waited_for(until: Any):
    async def body() -> None:
        cluster, _ = cluster_of(orders=[])
        async with cluster, cluster.client() as client:
            cluster.broker().on("Fetch", HOLD)
            assert await offsets(client, EARLIEST, until) == []
            assert cluster.broker().asked_for("Fetch") == []

    run(body)


def test_gaps_that_compaction_left_are_stepped_over():
    async def body() -> None:
        cluster, _ = cluster_of(orders=[batch(2, 5, last_offset_delta=9), batch(20)])
        async with cluster, cluster.client() as client:
            assert await offsets(client) == [2, 5, 20]
            assert [each.topics[0].partitions[0].fetch_offset for each in cluster.broker().asked_for("Fetch")] == [
                0,
                12,
            ]

    run(body)


def test_only_the_committed_is_read_if_wanted():
    async def body() -> None:
        mine = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        abort = build_end_txn_marker(
            committed=False, coordinator_epoch=0, producer_id=7, producer_epoch=0, timestamp=TIME_MS, base_offset=2
        )
        cluster, logs = cluster_of(orders=[batch(0, **mine), batch(1), abort, batch(3), batch(4, **mine)])
        logs.whole_answer, logs.aborted, logs.last_stable = True, [(7, 0)], 4
        async with cluster, cluster.client() as client:
            assert await offsets(client, isolation="read_committed") == [1, 3]
            assert cluster.broker().asked_for("Fetch")[0].isolation_level == 1
            assert cluster.broker().asked_for("ListOffsets")[0].isolation_level == 1
            logs.aborted = []
            assert await offsets(client) == [0, 1, 3, 4]

    run(body)


def test_all_leaders_are_asked_and_none_waits_for_another():
    async def body() -> None:
        cluster, _ = cluster_of(2, {"orders": [1], "bills": [2]}, orders=[batch(0)], bills=[batch(0)])
        async with cluster, cluster.client() as client:
            cluster.broker(2).on("Fetch", HOLD)
            async with Fetcher(client, {ORDERS: 0, ("bills", 0): 0}) as fetcher:
                (fetched,) = await fetcher.poll(timeout_ms=20_000)
                assert fetched.at == ORDERS
                assert (fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset) == (1, 1, 0)
                await cluster.broker(2).was_asked("Fetch")
                assert fetcher.positions == {ORDERS: 1, ("bills", 0): 0}

    run(body)


def test_partitions_of_one_leader_share_a_request():
    async def body() -> None:
        cluster, _ = cluster_of(1, {"orders": [1], "bills": [1]}, orders=[batch(0)], bills=[batch(0)])
        async with cluster, cluster.client() as client:
            async with Fetcher(client, {ORDERS: 0, ("bills", 0): 0}) as fetcher:
                assert sorted(each.at.topic for each in await fetcher.poll(timeout_ms=20_000)) == ["bills", "orders"]
            assert len(cluster.broker().asked_for("Fetch")) == 1

    run(body)


def test_nothing_new_is_an_empty_list():
    async def body() -> None:
        cluster, _ = cluster_of(orders=[batch(0)])
        async with cluster, cluster.client() as client, Fetcher(client, {ORDERS: LATEST}, max_wait_ms=20) as fetcher:
            assert await fetcher.poll() == []
            assert fetcher.positions == {ORDERS: 1}

    run(body)


def test_new_records_are_waited_for():
    async def body() -> None:
        cluster, logs = cluster_of(orders=[batch(0)])
        async with cluster, cluster.client() as client:

            async def later(request: frames.Request) -> types.FetchResponse:
                logs.batches[ORDERS].append(batch(1))
                return logs.fetch(request)

            cluster.broker().on("Fetch", logs.fetch, later)
            async with aclosing(fetch(client, {ORDERS: 1})) as records:
                assert (await anext(records)).offset == 1

    run(body)


def test_one_may_seek_and_drop():
    async def body() -> None:
        cluster, _ = cluster_of(1, {"orders": [1], "bills": [1]}, orders=[batch(0), batch(1)], bills=[batch(0)])
        async with cluster, cluster.client() as client, Fetcher(client, {ORDERS: 0}) as fetcher:
            await fetcher.poll(timeout_ms=20_000)
            fetcher.seek(ORDERS, 0)
            (again,) = await fetcher.poll(timeout_ms=20_000)
            assert [record.offset for record in again.records()] == [0]
            fetcher.drop(ORDERS)
            fetcher.seek(("bills", 0), EARLIEST)
            (other,) = await fetcher.poll(timeout_ms=20_000)
            assert other.at.topic == "bills"

    run(body)


def test_an_answer_that_was_overtaken_by_a_seek_is_dropped():
    async def body() -> None:
        cluster, logs = cluster_of(orders=[batch(0), batch(1)])
        async with cluster, cluster.client() as client, Fetcher(client, {ORDERS: 1}) as fetcher:
            gate = asyncio.Event()

            async def wait(request: frames.Request) -> types.FetchResponse:
                await gate.wait()
                return logs.fetch(request)

            cluster.broker().on("Fetch", wait, logs.fetch)
            assert await fetcher.poll(timeout_ms=1) == []
            await cluster.broker().was_asked("Fetch")
            fetcher.seek(ORDERS, 0)
            gate.set()
            (fetched,) = await fetcher.poll(timeout_ms=20_000)
            assert [record.offset for record in fetched.records()] == [0]

    run(body)


@pytest.mark.parametrize(("reset", "found"), [(EARLIEST, [5, 6]), (LATEST, [])])
def test_a_position_that_is_gone_may_be_reset(reset: int, found: list[int]):
    async def body() -> None:
        cluster, logs = cluster_of(orders=[batch(5), batch(6)])
        logs.start = 5
        async with cluster, cluster.client() as client:
            assert await offsets(client, 2, on_out_of_range=reset) == found

    run(body)


def test_a_position_that_is_gone_is_an_error_otherwise():
    async def body() -> None:
        cluster, logs = cluster_of(orders=[batch(5)])
        logs.start = 5
        async with cluster, cluster.client() as client:
            with pytest.raises(ResponseError, match="for orders-0 at offset 2: OFFSET_OUT_OF_RANGE"):
                await offsets(client, 2)

    run(body)


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.OFFSET_NOT_AVAILABLE]
)
def test_what_passes_is_waited_for(code: int):
    async def body() -> None:
        cluster, logs = cluster_of(orders=[batch(0), batch(1)])
        logs.errors[ORDERS] = [code, code]
        async with cluster, cluster.client() as client:
            assert await offsets(client, 0) == [0, 1]

    run(body)


def test_a_partition_without_a_leader_holds_up_no_other():
    async def body() -> None:
        cluster, _ = cluster_of(1, {"orders": [1], "bills": [-1]}, orders=[batch(0)], bills=[batch(0)])
        async with cluster, cluster.client() as client, Fetcher(client, {("bills", 0): 0, ORDERS: 0}) as fetcher:
            (fetched,) = await fetcher.poll(timeout_ms=20_000)
            assert fetched.at == ORDERS
            fetcher.drop(ORDERS)
            assert await fetcher.poll(timeout_ms=1) == []
            cluster.topics["bills"] = [1]
            (fetched,) = await fetcher.poll(timeout_ms=20_000)
            assert fetched.at.topic == "bills"

    run(body)


def test_not_every_poll_asks_for_a_leader_that_is_missing():
    async def body() -> None:
        leaders = {"orders": [1], "bills": [-1]}
        cluster, _ = cluster_of(1, leaders, orders=[batch(0), batch(1), batch(2)], bills=[])
        start = {("bills", 0): 0, ORDERS: 0}
        patient = {"retry_backoff_ms": 60_000, "retry_backoff_max_ms": 60_000}
        async with cluster, cluster.client(**patient) as client, Fetcher(client, start) as fetcher:
            await fetcher.poll(timeout_ms=20_000)
            asked = len(cluster.broker().asked_for("Metadata"))
            for _ in range(2):
                assert await fetcher.poll(timeout_ms=20_000)
            assert len(cluster.broker().asked_for("Metadata")) == asked

    run(body)


def test_a_partition_that_stays_without_a_leader_is_an_error_at_last():
    async def body() -> None:
        cluster, _ = cluster_of(1, {"orders": [-1]}, orders=[batch(0)])
        async with cluster, cluster.client(default_api_timeout_ms=300) as client:
            with pytest.raises(ResponseError, match="orders-0: LEADER_NOT_AVAILABLE"):
                await offsets(client, 0, {ORDERS: 1})

    run(body)


def test_what_fails_after_a_partition_was_dropped_is_no_error(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        cluster, _ = cluster_of(orders=[batch(0)])
        async with cluster, cluster.client() as client, Fetcher(client, {ORDERS: 0}) as fetcher:
            gate = asyncio.Event()

            async def fail(_: frames.Request) -> str:
                await gate.wait()
                return DROP

            cluster.broker().on("Fetch", fail)
            assert await fetcher.poll(timeout_ms=1) == []
            await cluster.broker().was_asked("Fetch")
            monkeypatch.setattr(client, "deadline", lambda *_: Deadline(0))
            fetcher.drop(ORDERS)
            gate.set()
            assert await fetcher.poll(timeout_ms=100) == []

    run(body)


def test_what_failed_before_a_partition_was_dropped_is_forgotten(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        cluster, logs = cluster_of(orders=[batch(0)])
        logs.errors[ORDERS] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100_000
        now_s = [0.0]
        async with cluster, cluster.client() as client, Fetcher(client, {ORDERS: 0}) as fetcher:
            monkeypatch.setattr(client, "deadline", lambda *_: Deadline(60_000, lambda: now_s[0]))
            while len(cluster.broker().asked_for("Fetch")) < 2:
                assert await fetcher.poll(timeout_ms=20) == []
            fetcher.drop(ORDERS)
            now_s[0] += 3_600
            logs.errors[ORDERS] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
            fetcher.seek(ORDERS, 0)
            (fetched,) = await fetcher.poll(timeout_ms=20_000)
            assert fetched.at == ORDERS

    run(body)


def test_what_does_not_pass_is_an_error_at_last():
    async def body() -> None:
        cluster, logs = cluster_of(orders=[batch(0)])
        logs.errors[ORDERS] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100_000
        async with cluster, cluster.client(default_api_timeout_ms=300) as client:
            with pytest.raises(ResponseError, match="NOT_LEADER_OR_FOLLOWER"):
                await offsets(client, 0, {ORDERS: 1})

    run(body)


def test_a_leader_that_moves_is_followed():
    async def body() -> None:
        cluster, logs = cluster_of(2, {"orders": [1]}, orders=[batch(0), batch(1)])
        async with cluster, cluster.client() as client:

            def moved(request: frames.Request) -> Any:
                cluster.topics["orders"], cluster.leader_epoch = [2], 1
                return DROP

            cluster.broker(1).on("Fetch", logs.fetch, moved)
            assert await offsets(client, 0, {ORDERS: 2}) == [0, 1]
            last = cluster.broker(2).asked_for("Fetch")[0].topics[0].partitions[0]
            assert (last.current_leader_epoch, last.fetch_offset) == (1, 1)

    run(body)


def test_a_leader_that_the_answer_names_is_followed():
    async def body() -> None:
        cluster, _ = cluster_of(2, {"orders": [1]}, orders=[batch(0)])
        async with cluster, cluster.client() as client:
            leader = types.FetchResponse.LeaderIdAndEpoch(2, 1)
            data = Data(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader)
            endpoint = types.FetchResponse.NodeEndpoint(2, "127.0.0.1", cluster.broker(2).port)
            answer = types.FetchResponse(
                responses=(Topic("orders", topic_id("orders"), (data,)),), node_endpoints=(endpoint,)
            )
            cluster.broker(1).on("Fetch", answer)
            assert await offsets(client, 0, {ORDERS: 1}) == [0]
            assert len(cluster.broker(2).asked_for("Fetch")) == 1

    run(body)


def test_an_error_beside_data_comes_after_the_data():
    async def body() -> None:
        cluster, logs = cluster_of(1, {"orders": [1], "bills": [1]}, orders=[batch(0)], bills=[batch(0)])
        logs.errors[TopicPartition("bills", 0)] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        start = {("bills", 0): 0, ORDERS: 0}
        async with cluster, cluster.client() as client, Fetcher(client, start) as fetcher:
            (fetched,) = await fetcher.poll(timeout_ms=20_000)
            assert fetched.at == ORDERS
            with pytest.raises(ResponseError, match="bills-0 at offset 0: TOPIC_AUTHORIZATION_FAILED"):
                await fetcher.poll(timeout_ms=20_000)

    run(body)


@pytest.mark.parametrize("damaged", [batch(0)[:40], bytes(8) + bytes(60)])
def test_bytes_that_are_no_batches_come_after_the_data_beside_them(damaged: bytes):
    async def body() -> None:
        leaders = {"orders": [1], "bills": [1]}
        cluster, logs = cluster_of(1, leaders, orders=[batch(0), batch(1)], bills=[batch(0)])
        logs.damaged = {TopicPartition("bills", 0): damaged}
        start = {ORDERS: 0, ("bills", 0): 0}
        async with cluster, cluster.client() as client, Fetcher(client, start) as fetcher:
            (fetched,) = await fetcher.poll(timeout_ms=20_000)
            assert (fetched.at, fetched.position) == (ORDERS, 0)
            with pytest.raises(ProtocolError, match="bills-0"):
                await fetcher.poll(timeout_ms=20_000)
            (fetched,) = await fetcher.poll(timeout_ms=20_000)
            assert (fetched.at, fetched.position) == (ORDERS, 1)

    run(body)


def test_damaged_records_are_found():
    async def body() -> None:
        broken = bytearray(batch(0))
        broken[-1] ^= 1
        cluster, _ = cluster_of(orders=[bytes(broken)])
        async with cluster, cluster.client() as client:
            with pytest.raises(WireError, match="crc"):
                await offsets(client)

    run(body)


@pytest.mark.parametrize(
    ("records", "reason"),
    [(batch(0)[:40], "no complete batch"), (bytes(8) + bytes(60), "records of orders-0 from offset 0 on")],
)
def test_bytes_that_are_no_batches_are_reported(records: bytes, reason: str):
    async def body() -> None:
        cluster, _ = cluster_of(orders=[batch(0)])
        async with cluster, cluster.client() as client:
            answer = types.FetchResponse(responses=(Topic("orders", topic_id("orders"), (Data(0, records=records),)),))
            cluster.broker().on("Fetch", answer)
            with pytest.raises(ProtocolError, match=reason):
                await offsets(client, 0, {ORDERS: 1})

    run(body)


def test_an_error_of_the_whole_answer():
    async def body() -> None:
        cluster, _ = cluster_of(orders=[batch(0)])
        async with cluster, cluster.client() as client:
            cluster.broker().on("Fetch", types.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
            with pytest.raises(ResponseError, match="FETCH_SESSION_ID_NOT_FOUND"):
                await offsets(client, 0, {ORDERS: 1})

    run(body)


def test_a_topic_that_is_not_there():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            with pytest.raises(ResponseError, match="for topic orders: UNKNOWN_TOPIC_OR_PARTITION"):
                await offsets(client, 0)

    run(body)


def test_a_topic_that_goes_while_another_has_no_leader():
    async def body() -> None:
        leaders = {"orders": [1], "bills": [-1]}
        cluster, _ = cluster_of(1, leaders, orders=[batch(0)], bills=[batch(0)])
        start = {ORDERS: 0, ("bills", 0): 0}
        async with cluster, cluster.client() as client, Fetcher(client, start) as fetcher:
            await fetcher.poll(timeout_ms=20_000)
            cluster.topics = {"bills": [1]}
            await client.all_topics()
            with pytest.raises(ResponseError, match="for topic orders: UNKNOWN_TOPIC_OR_PARTITION"):
                await fetcher.poll(timeout_ms=20_000)
            fetcher.drop(ORDERS)
            (fetched,) = await fetcher.poll(timeout_ms=20_000)
            assert fetched.at.topic == "bills"

    run(body)


def test_a_fetcher_takes_its_connections_with_it():
    async def body() -> None:
        cluster, _ = cluster_of(orders=[batch(0)])
        async with cluster, cluster.client() as client:
            async with Fetcher(client, {ORDERS: 0}) as fetcher:
                await fetcher.poll(timeout_ms=20_000)
                assert cluster.broker().open_connections == 2
            await cluster.broker().has_connections(1)
            assert not client._dependents

    run(body)


def test_closing_leaves_nothing_behind():
    async def body() -> None:
        cluster, _ = cluster_of(orders=[batch(0)])
        async with cluster, cluster.client() as client:
            cluster.broker().on("Fetch", HOLD)
            fetcher = Fetcher(client, {ORDERS: 0})
            assert await fetcher.poll(timeout_ms=1) == []
            await client.close()  # which closes what lives on it
            with pytest.raises(ClosedError):
                await fetcher.poll()
            await fetcher.close()

    run(body)


@pytest.mark.parametrize(
    ("start", "options", "reason"),
    [
        (-3, {}, "cannot be read from offset -3"),
        (0, {"isolation": "serializable"}, "unknown isolation level 'serializable'"),
        (0, {"on_out_of_range": 5}, "neither EARLIEST nor LATEST"),
    ],
)
def test_options_that_cannot_be_are_refused(start: int, options: Any, reason: str):
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            with pytest.raises(ConfigurationError, match=reason):
                Fetcher(client, {ORDERS: start}, **options)

    run(body)
