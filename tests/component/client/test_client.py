"""The client: where requests go, what is tried again, and what is remembered."""

import asyncio
from typing import Any

import pytest

from ottla.client import Client, TopicPartition
from ottla.client import client as client_module
from ottla.client.client import always
from ottla.client.connection import patience_ms
from ottla.client.errors import (
    BootstrapError,
    ClosedError,
    ConfigurationError,
    ConnectionLostError,
    RequestTimeoutError,
    ResponseError,
    UnknownBrokerError,
    UnsupportedVersionError,
)
from ottla.wire import types
from ottla.wire.errors import ErrorCode
from tests.component.client.fake import CLUSTER_ID, DROP, HOLD, FakeCluster
from tests.unit.client.running import run

HEARTBEAT = types.HeartbeatRequest(group_id="g")
WELL = types.HeartbeatResponse()
QUICK_DEADLINE = {"default_api_timeout_ms": 300}


def failed(code: int) -> types.HeartbeatResponse:
    return types.HeartbeatResponse(error_code=code)


def listed(code: int = 0, offset: int = 7) -> types.ListOffsetsResponse:
    partition = types.ListOffsetsResponse.ListOffsetsPartitionResponse(0, code, offset=offset)
    return types.ListOffsetsResponse(
        topics=(types.ListOffsetsResponse.ListOffsetsTopicResponse("orders", (partition,)),)
    )


LIST = types.ListOffsetsRequest(
    replica_id=-1,
    topics=(types.ListOffsetsRequest.ListOffsetsTopic("orders", (types.ListOffsetsRequest.ListOffsetsPartition(0),)),),
)


# --- opening and closing ----------------------------------------------------------------------------------------------


def test_entering_learns_the_cluster_and_leaving_closes_it():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster:
            client = cluster.client()
            async with client:
                assert client.metadata.cluster_id == CLUSTER_ID
                assert sorted(client.metadata.brokers) == [1, 2]
            with pytest.raises(ClosedError):
                await client.send(HEARTBEAT)
            with pytest.raises(ClosedError, match="only once"):
                async with client:
                    pass

    run(body)


def test_the_first_server_that_answers_is_used():
    async def body() -> None:
        async with FakeCluster() as gone:
            pass
        async with FakeCluster() as cluster, Client([gone.bootstrap_servers, cluster.bootstrap_servers]) as client:
            assert client.metadata.cluster_id == CLUSTER_ID

    run(body)


def test_no_server_that_answers_is_said_at_once():
    async def body() -> None:
        async with FakeCluster() as gone:
            pass
        async with FakeCluster() as other:
            other.broker().on("Metadata", DROP)
            with pytest.raises(BootstrapError) as caught:
                async with Client([gone.bootstrap_servers, other.bootstrap_servers]):
                    pass
            assert f"cannot connect to {gone.bootstrap_servers}: connection refused" in str(caught.value)
            assert f"the connection to {other.bootstrap_servers} was lost" in str(caught.value)
            assert len(other.broker().requests) == 1

    run(body)


def test_a_client_has_to_be_entered():
    async def body() -> None:
        with pytest.raises(ClosedError, match="async with"):
            await Client("localhost:9092").send(HEARTBEAT)

    run(body)


def test_closing_ends_what_waits():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("Heartbeat", HOLD)
            waiting = asyncio.create_task(client.send(HEARTBEAT))
            await cluster.broker().was_asked("Heartbeat")
            await client.close()
            with pytest.raises(ClosedError):
                await waiting

    run(body)


# --- the way to a broker ----------------------------------------------------------------------------------------------


def test_a_request_goes_where_it_is_sent():
    async def body() -> None:
        async with FakeCluster(nodes=3, topics={"orders": [2]}) as cluster, cluster.client() as client:
            cluster.controller_id, cluster.coordinator_id = 3, 2
            await client.refresh()
            for broker in cluster.brokers.values():
                broker.on("Heartbeat", failed(broker.node_id))
            assert (await client.send(HEARTBEAT, broker=3)).error_code == 3
            assert (await client.send(HEARTBEAT, broker="controller")).error_code == 3
            assert (await client.send(HEARTBEAT, partition=("orders", 0))).error_code == 2
            assert (await client.send(HEARTBEAT, coordinator=("group", "g"))).error_code == 2
            assert (await client.send(HEARTBEAT)).error_code in (1, 2, 3)
            asked = cluster.broker(1).asked_for("FindCoordinator") + cluster.broker(2).asked_for("FindCoordinator")
            asked += cluster.broker(3).asked_for("FindCoordinator")
            assert [each.coordinator_keys for each in asked] == [("g",)]

    run(body)


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ({"broker": 1, "partition": ("orders", 0)}, "give only one of them"),
        ({"coordinator": ("topic", "orders")}, "'topic' has no coordinator"),
        ({"broker": 9}, "no broker 9; its brokers are 1"),
    ],
)
def test_a_way_that_leads_nowhere_is_refused(to: Any, reason: str):
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            with pytest.raises((ConfigurationError, UnknownBrokerError), match=reason):
                await client.send(HEARTBEAT, **to)

    run(body)


def test_an_old_coordinator_is_found_with_one_key():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().versions["FindCoordinator"] = (0, 3)
            cluster.broker().disconnect()
            cluster.broker().on("Heartbeat", WELL)
            await client.send(HEARTBEAT, coordinator=("transaction", "t"))
            (asked,) = cluster.broker().asked_for("FindCoordinator")
            assert (asked.key, asked.key_type, asked.coordinator_keys) == ("t", 1, ())

    run(body)


def test_a_coordinator_is_asked_for_until_there_is_one():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            none = types.FindCoordinatorResponse.Coordinator("g", -1, error_code=15)
            some = types.FindCoordinatorResponse.Coordinator("g", 1)
            answers = [types.FindCoordinatorResponse(coordinators=(each,)) for each in (none, none, some)]
            cluster.broker().on("FindCoordinator", *answers)
            cluster.broker().on("Heartbeat", WELL)
            await client.send(HEARTBEAT, coordinator=("group", "g"))
            assert len(cluster.broker().asked_for("FindCoordinator")) == 3

    run(body)


def test_not_every_coordinator_is_remembered_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client_module, "COORDINATORS_HELD_MAX", 2)

    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("Heartbeat", WELL)
            for group_id in ("a", "b", "b", "c", "c", "a"):
                await client.send(HEARTBEAT, coordinator=("group", group_id))
            asked = [each.coordinator_keys for each in cluster.broker().asked_for("FindCoordinator")]
            assert asked == [("a",), ("b",), ("c",), ("a",)]
            assert len(client._coordinators) == 2

    run(body)


def test_a_coordinator_that_nobody_has_heard_of_is_asked_for():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster:
            cluster.broker(2).on("Heartbeat", WELL)
            cluster.coordinator_id = 2
            late = cluster.brokers.pop(2)
            async with cluster.client() as client:
                assert sorted(client.metadata.brokers) == [1]
                cluster.brokers[2] = late
                assert (await client.send(HEARTBEAT, coordinator=("group", "g"))).error_code == 0

    run(body)


def test_a_coordinator_that_is_refused_is_an_error():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            refused = types.FindCoordinatorResponse.Coordinator("g", -1, error_code=30)
            cluster.broker().on("FindCoordinator", types.FindCoordinatorResponse(coordinators=(refused,)))
            with pytest.raises(ResponseError, match="for group g: GROUP_AUTHORIZATION_FAILED"):
                await client.send(HEARTBEAT, coordinator=("group", "g"))

    run(body)


# --- versions ---------------------------------------------------------------------------------------------------------


def test_the_version_is_that_of_the_broker():
    async def body() -> None:
        async with FakeCluster() as cluster:
            cluster.broker().versions["Heartbeat"] = (0, 2)
            cluster.broker().on("Heartbeat", WELL)
            async with cluster.client() as client:
                await client.send(HEARTBEAT)
                await client.send(HEARTBEAT, version=0)
                with pytest.raises(
                    UnsupportedVersionError, match=r"Heartbeat v3 cannot be sent to .*: it supports v0 to v2"
                ):
                    await client.send(HEARTBEAT, version=3)
                answer = await client.ask("Heartbeat", lambda version: types.HeartbeatRequest(str(version)))
            assert answer.version == 2
            assert answer.peer.node_id == 1
            assert [each.version for each in cluster.broker().requests if each.name == "HeartbeatRequest"] == [2, 0, 2]
            assert cluster.broker().asked_for("Heartbeat")[2].group_id == "2"

    run(body)


def test_what_is_no_request_is_not_sent():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            with pytest.raises(
                UnsupportedVersionError, match="HeartbeatResponse cannot be sent to the cluster: it is not a request"
            ):
                await client.send(WELL)

    run(body)


# --- another attempt --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [DROP, failed(ErrorCode.REQUEST_TIMED_OUT), failed(ErrorCode.NETWORK_EXCEPTION)])
def test_what_can_be_cured_is_tried_again(first: Any):
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("Heartbeat", first, WELL)
            assert (await client.send(HEARTBEAT)).error_code == 0
            assert len(cluster.broker().asked_for("Heartbeat")) == 2

    run(body)


def test_silence_is_tried_again_on_another_connection():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client(request_timeout_ms=300) as client:
            cluster.broker().on("Heartbeat", HOLD, WELL)
            assert (await client.send(HEARTBEAT)).error_code == 0
            assert cluster.broker().connections == 2

    run(body)


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.NOT_COORDINATOR, 9999])
def test_what_cannot_be_cured_is_given_as_it_is(code: int):
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("Heartbeat", failed(code))
            assert (await client.send(HEARTBEAT, broker=1)).error_code == code
            assert len(cluster.broker().asked_for("Heartbeat")) == 1

    run(body)


def test_one_attempt_is_one_attempt():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("Heartbeat", DROP, failed(7), HOLD)
            with pytest.raises(ConnectionLostError):
                await client.send(HEARTBEAT, retry=False)
            assert (await client.send(HEARTBEAT, retry=False)).error_code == 7
            with pytest.raises(RequestTimeoutError):
                await client.send(HEARTBEAT, retry=False, timeout_ms=300)
            assert len(cluster.broker().asked_for("Heartbeat")) == 3

    run(body)


def test_the_deadline_ends_the_attempts():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client(**QUICK_DEADLINE) as client:
            cluster.broker().on("Heartbeat", failed(7))
            assert (await client.send(HEARTBEAT)).error_code == 7
            assert len(cluster.broker().asked_for("Heartbeat")) > 2
            cluster.broker().on("Heartbeat", DROP)
            with pytest.raises(ConnectionLostError):
                await client.send(HEARTBEAT)

    run(body)


def test_any_broker_is_left_for_another_one_at_once():
    async def body() -> None:
        async with FakeCluster(nodes=3) as cluster, cluster.client(retry_backoff_ms=600_000) as client:
            for node_id in (1, 2):
                cluster.broker(node_id).on("Heartbeat", DROP)
            cluster.broker(3).on("Heartbeat", WELL)
            assert (await client.send(HEARTBEAT)).error_code == 0

    run(body)


def test_a_broker_that_is_gone_is_replaced_by_one_that_is_there():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster, cluster.client() as client:
            for broker in cluster.brokers.values():
                broker.on("Heartbeat", WELL)
            await cluster.broker(1).stop()
            assert (await client.send(HEARTBEAT)).error_code == 0
            assert len(cluster.broker(2).asked_for("Heartbeat")) == 1
            await cluster.broker(1).start()

    run(body)


def test_a_moved_leader_is_followed():
    async def body() -> None:
        async with FakeCluster(nodes=2, topics={"orders": [1]}) as cluster, cluster.client() as client:
            await client.topics(["orders"])
            cluster.topics["orders"], cluster.leader_epoch = [2], 1
            cluster.broker(1).on("ListOffsets", listed(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            cluster.broker(2).on("ListOffsets", listed())
            answer = await client.send(LIST, partition=("orders", 0))
            assert answer.topics[0].partitions[0].offset == 7
            assert len(cluster.broker(1).asked_for("ListOffsets")) == 1

    run(body)


def test_a_leader_that_is_gone_is_asked_for_anew():
    async def body() -> None:
        async with FakeCluster(nodes=2, topics={"orders": [2]}) as cluster, cluster.client() as client:
            await client.topics(["orders"])
            await cluster.broker(2).stop()
            cluster.topics["orders"], cluster.leader_epoch = [1], 1
            cluster.broker(1).on("ListOffsets", listed())
            await client.send(LIST, partition=("orders", 0))
            await cluster.broker(2).start()

    run(body)


def test_a_moved_coordinator_is_followed():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster, cluster.client() as client:
            cluster.broker(1).on("Heartbeat", failed(ErrorCode.NOT_COORDINATOR))
            cluster.broker(2).on("Heartbeat", WELL)

            def move(request: Any) -> Any:
                answer = cluster.coordinator(request)
                cluster.coordinator_id = 2
                return answer

            for broker in cluster.brokers.values():
                broker.on("FindCoordinator", move)
            assert (await client.send(HEARTBEAT, coordinator=("group", "g"))).error_code == 0
            assert len(cluster.broker(1).asked_for("Heartbeat")) == 1

    run(body)


# --- connections ------------------------------------------------------------------------------------------------------


def test_those_who_ask_together_share_a_connection():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster, cluster.client() as client:
            cluster.broker(2).on("Heartbeat", WELL)
            await asyncio.gather(*(client.send(HEARTBEAT, broker=2) for _ in range(20)))
            assert cluster.broker(2).connections == 1

    run(body)


def test_what_waits_at_the_broker_holds_up_nobody():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("Fetch", HOLD)
            cluster.broker().on("Heartbeat", WELL)
            fetching = asyncio.create_task(client.send(types.FetchRequest(max_wait_ms=60_000)))
            await cluster.broker().was_asked("Fetch")
            await client.send(HEARTBEAT)
            await client.send(HEARTBEAT, lane="another")
            assert cluster.broker().connections == 3
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)
            await client.close_lane("another")
            await client.send(HEARTBEAT, lane="another")
            assert cluster.broker().connections == 4

    run(body)


def test_a_connection_that_was_idle_for_long_is_opened_anew():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client(connections_max_idle_ms=1) as client:
            cluster.broker().on("Heartbeat", WELL)
            for _ in range(2):
                await asyncio.sleep(0.002)
                await client.send(HEARTBEAT)
            assert cluster.broker().connections >= 3

    run(body)


def test_a_request_may_let_the_broker_wait():
    assert patience_ms(types.FetchRequest(max_wait_ms=500)) == 500
    assert patience_ms(types.JoinGroupRequest(rebalance_timeout_ms=60_000)) == 60_000
    assert patience_ms(HEARTBEAT) == 0
    assert always(HEARTBEAT)(3) is HEARTBEAT


# --- what is known ----------------------------------------------------------------------------------------------------


def test_topics_are_asked_for_once():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1, 1], "bills": [1]}) as cluster, cluster.client() as client:
            found = await client.topics(["orders", "bills", "orders"])
            assert [len(topic.partitions) for topic in found.values()] == [2, 1]
            before = len(cluster.broker().asked_for("Metadata"))
            await asyncio.gather(*(client.topics(["orders"]) for _ in range(5)))
            assert len(cluster.broker().asked_for("Metadata")) == before

    run(body)


def test_those_who_ask_together_are_answered_together():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1]}) as cluster, cluster.client() as client:
            before = len(cluster.broker().asked_for("Metadata"))
            await asyncio.gather(*(client.topics(["orders"]) for _ in range(5)))
            assert len(cluster.broker().asked_for("Metadata")) == before + 1

    run(body)


def test_old_knowledge_is_renewed():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1]}) as cluster, cluster.client(metadata_max_age_ms=1) as client:
            await client.topics(["orders"])
            cluster.topics["orders"] = [1, 1]
            await asyncio.sleep(0.002)
            assert len((await client.topics(["orders"]))["orders"].partitions) == 2

    run(body)


def test_an_unknown_topic_is_asked_for_a_short_while():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            with pytest.raises(ResponseError, match=r"Metadata at broker 1 .* for topic orders: UNKNOWN_TOPIC_OR_PART"):
                await client.topics(["orders"])
            assert len(cluster.broker().asked_for("Metadata")) > 2

    run(body)


def test_a_topic_that_appears_meanwhile_is_found():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client(unknown_topic_wait_ms=20_000) as client:

            def appear(request: Any) -> Any:
                answer = cluster.metadata(request.body)
                cluster.topics["orders"] = [1]
                return answer

            cluster.broker().on("Metadata", appear)
            assert len((await client.topics(["orders"]))["orders"].partitions) == 1

    run(body)


def test_a_topic_that_may_not_be_seen_is_refused_at_once():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client(unknown_topic_wait_ms=600_000) as client:
            cluster.topic_errors["orders"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            with pytest.raises(ResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
                await client.topics(["orders"])

    run(body)


def test_a_topic_that_is_left_out_of_the_answer_is_unknown():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("Metadata", cluster.metadata(types.MetadataRequest(topics=())))
            with pytest.raises(ResponseError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await client.topics(["orders"])

    run(body)


def test_all_topics_are_those_that_there_are():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1], "bills": [1]}) as cluster, cluster.client() as client:
            assert sorted(await client.all_topics()) == ["bills", "orders"]
            del cluster.topics["orders"]
            assert sorted(await client.all_topics()) == ["bills"]

    run(body)


def test_topics_are_not_created_by_looking_at_them():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1]}) as cluster:
            for allowed in (False, True):
                async with cluster.client(allow_auto_create_topics=allowed) as client:
                    await client.topics(["orders"])
                assert cluster.broker().asked_for("Metadata")[-1].allow_auto_topic_creation is allowed

    run(body)


def test_a_partition_without_a_leader_is_waited_for():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [-1]}) as cluster, cluster.client() as client:

            def elect(request: Any) -> Any:
                answer = cluster.metadata(request.body)
                cluster.topics["orders"], cluster.leader_epoch = [1], 1
                return answer

            cluster.broker().on("Metadata", elect)
            assert (await client.leader(TopicPartition("orders", 0))).leader == 1
            assert (await client.leader_peer(TopicPartition("orders", 0))).node_id == 1

    run(body)


def test_a_partition_that_gets_no_leader_is_an_error():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [-1]}) as cluster, cluster.client(**QUICK_DEADLINE) as client:
            with pytest.raises(ResponseError, match="for orders-0: LEADER_NOT_AVAILABLE"):
                await client.leader(TopicPartition("orders", 0))

    run(body)


def test_a_partition_that_is_not_there_is_an_error():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1]}) as cluster, cluster.client() as client:
            with pytest.raises(ResponseError, match=r"for orders-3: .*the topic has 1 partitions"):
                await client.leader(TopicPartition("orders", 3))

    run(body)


def test_a_broker_that_refuses_metadata_is_reported():
    async def body() -> None:
        async with FakeCluster() as cluster:
            cluster.broker().on("Metadata", types.MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED))
            with pytest.raises(BootstrapError, match="REBOOTSTRAP_REQUIRED"):
                async with cluster.client():
                    pass

    run(body)
