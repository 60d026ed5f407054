"""Topics, configurations, the cluster and groups: what is asked, by which version, and how answers are read."""

from functools import partial
from typing import Any

import pytest

from ottla.client import EARLIEST, LATEST, configs, delete_records, groups, list_offsets, topics
from ottla.client import cluster as clusters
from ottla.client.configs import Change, ConfigSource, ConfigType, Operation, Resource, ResourceType
from ottla.client.errors import ConfigurationError, ProtocolError, ResponseError, UnsupportedVersionError
from ottla.client.topics import NewTopic
from ottla.wire import frames, types
from ottla.wire.errors import ErrorCode
from tests.component.client.admin_answers import offsets_answer, quorum
from tests.component.client.fake import CLUSTER_ID, FakeCluster, topic_id
from tests.unit.client.running import run

TOPIC = Resource(ResourceType.TOPIC, "orders")


# --- topics -----------------------------------------------------------------------------------------------------------


def test_topics_are_created_at_the_controller():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster:
            cluster.controller_id = 2
            result = types.CreateTopicsResponse.CreatableTopicResult
            config = types.CreateTopicsResponse.CreatableTopicConfigs("retention.ms", "5")
            well = result("orders", topic_id("orders"), num_partitions=3, replication_factor=2, configs=(config,))
            bad = result("bills", error_code=36, error_message="it is there")
            cluster.broker(2).on("CreateTopics", types.CreateTopicsResponse(topics=(well, bad)))
            async with cluster.client() as client:
                wanted = NewTopic("orders", 3, 2, {"retention.ms": "5"}), NewTopic("bills", assignments={0: [1, 2]})
                outcomes = await topics.try_create(client, *wanted, validate_only=True)
                with pytest.raises(ResponseError, match=r"for topic bills: TOPIC_ALREADY_EXISTS .*it is there"):
                    await topics.create(client, *wanted)
            assert outcomes["orders"] == ("orders", topic_id("orders"), 3, 2, {"retention.ms": "5"})
            asked = cluster.broker(2).asked_for("CreateTopics")[0]
            assert asked.validate_only
            orders, bills = asked.topics
            assert (orders.num_partitions, orders.replication_factor) == (3, 2)
            assert [(each.name, each.value) for each in orders.configs] == [("retention.ms", "5")]
            assert (bills.num_partitions, bills.replication_factor) == (-1, -1)
            assert [(each.partition_index, each.broker_ids) for each in bills.assignments] == [(0, (1, 2))]

    run(body)


@pytest.mark.parametrize(("version", "by_name"), [(5, True), (6, False)])
def test_topics_are_deleted_by_name_in_every_version(version: int, by_name: bool):
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1]}) as cluster:
            cluster.broker().versions["DeleteTopics"] = (1, version)
            result = types.DeleteTopicsResponse.DeletableTopicResult("orders")
            cluster.broker().on("DeleteTopics", types.DeleteTopicsResponse(responses=(result,)))
            async with cluster.client() as client:
                await client.topics(["orders"])
                await topics.delete(client, "orders")
                assert "orders" not in client.metadata.topics
            (asked,) = cluster.broker().asked_for("DeleteTopics")
            names = asked.topic_names if by_name else tuple(each.name for each in asked.topics)
            assert names == ("orders",)

    run(body)


def page(*names: str, cursor: tuple[str, int] | None = None, partitions: tuple[int, ...] = (0,)) -> Any:
    answer = types.DescribeTopicPartitionsResponse
    described = tuple(
        answer.DescribeTopicPartitionsResponsePartition(0, index, 1, 3, (1, 2), (1,), (2,), None, (2,))
        for index in partitions
    )
    found = tuple(
        answer.DescribeTopicPartitionsResponseTopic(0, name, topic_id(name), False, described) for name in names
    )
    return answer(topics=found, next_cursor=None if cursor is None else answer.Cursor(*cursor))


def test_a_description_may_have_many_pages():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            pages = [
                page("bills", cursor=("bills", 1)),
                page("bills", partitions=(1, 2), cursor=("orders", 0)),
                page("orders"),
            ]
            cluster.broker().on("DescribeTopicPartitions", *pages)
            bills, orders = await topics.describe(client, "orders", "bills")
            assert [each.partition for each in bills.partitions] == [0, 1, 2]
            assert bills.replication_factor == 2
            assert orders.partitions[0] == (0, 1, 3, (1, 2), (1,), (2,), (), (2,))
            first, second, third = cluster.broker().asked_for("DescribeTopicPartitions")
            assert [each.name for each in first.topics] == ["bills", "orders"]
            assert (first.cursor, second.cursor.partition_index, third.cursor.topic_name) == (None, 1, "orders")

    run(body)


def test_an_older_cluster_is_described_from_its_metadata():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1, 1], "bills": [1]}) as cluster:
            cluster.broker().versions["DescribeTopicPartitions"] = (0, -1)
            async with cluster.client() as client:
                (orders,) = await topics.describe(client, "orders")
                assert [(each.partition, each.leader) for each in orders.partitions] == [(0, 1), (1, 1)]
                assert sorted(each.name for each in await topics.describe(client)) == ["bills", "orders"]
                outcomes = await topics.try_describe(client, "nix", "bills")
                assert isinstance(outcomes["nix"], ResponseError)
                assert topics.is_unknown(outcomes["nix"])
                assert not isinstance(outcomes["bills"], ResponseError)

    run(body)


def test_a_topic_that_is_not_there_is_an_error():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            answer = types.DescribeTopicPartitionsResponse
            missing = answer.DescribeTopicPartitionsResponseTopic(3, "nix")
            cluster.broker().on("DescribeTopicPartitions", answer(topics=(missing,)))
            with pytest.raises(ResponseError, match="for topic nix: UNKNOWN_TOPIC_OR_PARTITION"):
                await topics.describe(client, "nix")

    run(body)


def test_partitions_are_added():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            result = types.CreatePartitionsResponse.CreatePartitionsTopicResult
            well = types.CreatePartitionsResponse(results=(result("orders"),))
            bad = types.CreatePartitionsResponse(results=(result("orders", 37, "no increase"),))
            cluster.broker().on("CreatePartitions", well, bad)
            await topics.add_partitions(client, "orders", 4, assignments=[[1], [1]], validate_only=True)
            with pytest.raises(ResponseError, match=r"INVALID_PARTITIONS \(37\): no increase"):
                await topics.add_partitions(client, "orders", 1)
            first, second = cluster.broker().asked_for("CreatePartitions")
            assert (first.topics[0].count, first.validate_only, second.topics[0].assignments) == (4, True, None)
            assert [each.broker_ids for each in first.topics[0].assignments] == [(1,), (1,)]

    run(body)


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_offsets_come_from_the_leaders():
    async def body() -> None:
        async with FakeCluster(nodes=2, topics={"orders": [1, 2]}) as cluster, cluster.client() as client:
            for broker in cluster.brokers.values():
                broker.on("ListOffsets", offsets_answer)
            found = await list_offsets(
                client, {("orders", 0): EARLIEST, ("orders", 1): 1234}, isolation="read_committed"
            )
            assert found == {("orders", 0): (10, EARLIEST, 2), ("orders", 1): (11, 1234, 2)}
            for broker in cluster.brokers.values():
                (asked,) = broker.asked_for("ListOffsets")
                assert (asked.replica_id, asked.isolation_level, len(asked.topics[0].partitions)) == (-1, 1, 1)

    run(body)


def test_a_partition_that_the_answer_leaves_out_is_an_error():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1]}) as cluster, cluster.client() as client:
            cluster.broker().on("ListOffsets", types.ListOffsetsResponse())
            with pytest.raises(ProtocolError, match="does not contain orders-0"):
                await list_offsets(client, {("orders", 0): LATEST})

    run(body)


def test_an_error_of_one_partition_is_raised():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1]}) as cluster, cluster.client() as client:
            bad = types.ListOffsetsResponse.ListOffsetsPartitionResponse(0, ErrorCode.UNSUPPORTED_VERSION)
            topic = types.ListOffsetsResponse.ListOffsetsTopicResponse("orders", (bad,))
            cluster.broker().on("ListOffsets", types.ListOffsetsResponse(topics=(topic,)))
            with pytest.raises(ResponseError, match="for orders-0: UNSUPPORTED_VERSION"):
                await list_offsets(client, {("orders", 0): -99})

    run(body)


def test_records_are_deleted():
    async def body() -> None:
        async with FakeCluster(topics={"orders": [1]}) as cluster, cluster.client() as client:
            result = types.DeleteRecordsResponse.DeleteRecordsPartitionResult(0, 17)
            topic = types.DeleteRecordsResponse.DeleteRecordsTopicResult("orders", (result,))
            cluster.broker().on("DeleteRecords", types.DeleteRecordsResponse(topics=(topic,)))
            assert await delete_records(client, {("orders", 0): 17}) == {("orders", 0): 17}
            assert cluster.broker().asked_for("DeleteRecords")[0].topics[0].partitions[0].offset == 17

    run(body)


# --- configurations ---------------------------------------------------------------------------------------------------


def described(kind: int, name: str, error: int = 0) -> Any:
    answer = types.DescribeConfigsResponse
    synonym = answer.DescribeConfigsSynonym("log.retention.ms", "9", 4)
    entries = (
        answer.DescribeConfigsResourceResult("retention.ms", "5", False, 1, False, (synonym,), 5, "how long"),
        answer.DescribeConfigsResourceResult("secret", None, True, 99, True, (), 99, ""),
    )
    return answer.DescribeConfigsResult(error, "not there" if error else None, kind, name, () if error else entries)


def test_configurations_are_described():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("DescribeConfigs", types.DescribeConfigsResponse(results=(described(2, "orders"),)))
            found = await configs.describe(client, TOPIC, keys=["retention.ms"], synonyms=True, documentation=True)
            entry = found["retention.ms"]
            assert (entry.value, entry.source, entry.type) == ("5", ConfigSource.TOPIC, ConfigType.LONG)
            assert (entry.is_default, entry.documentation) == (False, "how long")
            assert entry.synonyms == (("log.retention.ms", "9", ConfigSource.STATIC_BROKER),)
            secret = found["secret"]
            assert (secret.is_sensitive, secret.is_read_only, secret.documentation) == (True, True, None)
            assert (secret.source, secret.type) == (ConfigSource.UNKNOWN, ConfigType.UNKNOWN), "newer than our table"
            (asked,) = cluster.broker().asked_for("DescribeConfigs")
            assert (asked.include_synonyms, asked.include_documentation) == (True, True)
            assert asked.resources[0].configuration_keys == ("retention.ms",)

    run(body)


def test_an_older_broker_is_not_asked_for_documentation():
    async def body() -> None:
        async with FakeCluster() as cluster:
            cluster.broker().versions["DescribeConfigs"] = (1, 2)
            cluster.broker().on("DescribeConfigs", types.DescribeConfigsResponse(results=(described(2, "orders"),)))
            async with cluster.client() as client:
                assert (await configs.describe(client, TOPIC, documentation=True))["retention.ms"].value == "5"

    run(body)


def test_a_broker_s_configurations_are_asked_of_itself():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster, cluster.client() as client:

            def answer(node_id: int, request: frames.Request) -> types.DescribeConfigsResponse:
                asked = [(each.resource_type, each.resource_name) for each in request.body.resources]
                assert node_id == 2 or (4, "2") not in asked
                return types.DescribeConfigsResponse(
                    results=tuple(described(kind, name, 42 if name == "2" else 0) for kind, name in asked)
                )

            for broker in cluster.brokers.values():
                broker.on("DescribeConfigs", partial(answer, broker.node_id))
            two, default = Resource(ResourceType.BROKER, "2"), Resource(ResourceType.BROKER, "")
            outcomes = await configs.try_describe(client, two, TOPIC, default)
            assert set(outcomes) == {two, TOPIC, default}
            assert "for broker 2: INVALID_REQUEST (42): not there" in str(outcomes[two])
            assert str(default) == "the default of every broker"
            with pytest.raises(ResponseError, match="not there"):
                await configs.describe(client, two)
            with pytest.raises(ConfigurationError, match="'two' is not a node id"):
                await configs.describe(client, Resource(ResourceType.BROKER, "two"))

    run(body)


def test_configurations_are_altered():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster:
            cluster.controller_id = 2
            result = types.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
            well = types.IncrementalAlterConfigsResponse(responses=(result(0, None, 2, "orders"),))
            bad = types.IncrementalAlterConfigsResponse(responses=(result(40, "no such key", 2, "orders"),))
            cluster.broker(2).on("IncrementalAlterConfigs", well, bad)
            cluster.broker(1).on("IncrementalAlterConfigs", well)
            changes = [
                Change(Operation.SET, "a", "1"),
                Change(Operation.DELETE, "b"),
                Change(Operation.APPEND, "c", "2"),
            ]
            async with cluster.client() as client:
                await configs.alter(client, TOPIC, changes, validate_only=True)
                with pytest.raises(ResponseError, match=r"for topic orders: INVALID_CONFIG \(40\): no such key"):
                    await configs.alter(client, TOPIC, changes)
                await configs.alter(client, Resource(ResourceType.BROKER, "1"), changes)
            asked = cluster.broker(2).asked_for("IncrementalAlterConfigs")[0]
            assert asked.validate_only
            sent = [(each.config_operation, each.name, each.value) for each in asked.resources[0].configs]
            assert sent == [(0, "a", "1"), (1, "b", None), (2, "c", "2")]
            assert len(cluster.broker(1).asked_for("IncrementalAlterConfigs")) == 1

    run(body)


def test_resources_are_listed():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            kind = types.ListConfigResourcesResponse.ConfigResource
            answer = types.ListConfigResourcesResponse(config_resources=(kind("orders", 2), kind("future", 64)))
            cluster.broker().on("ListConfigResources", answer, types.ListConfigResourcesResponse(error_code=31))
            assert await configs.list_resources(client, ResourceType.TOPIC) == [TOPIC]
            with pytest.raises(ResponseError, match="CLUSTER_AUTHORIZATION_FAILED"):
                await configs.list_resources(client)

    run(body)


# --- the cluster ------------------------------------------------------------------------------------------------------


def test_the_cluster_is_described():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            broker = types.DescribeClusterResponse.DescribeClusterBroker
            answer = types.DescribeClusterResponse(
                cluster_id="c", controller_id=2, brokers=(broker(2, "b", 2, "r"), broker(1, "a", 1, None, True))
            )
            cluster.broker().on("DescribeCluster", answer)
            found = await clusters.describe(client, include_fenced=True)
            assert found == ("c", 2, ((1, "a", 1, None, True), (2, "b", 2, "r", False)))
            assert cluster.broker().asked_for("DescribeCluster")[0].include_fenced_brokers

    run(body)


def test_an_older_cluster_is_described_without_what_it_does_not_know():
    async def body() -> None:
        async with FakeCluster() as cluster:
            cluster.broker().versions["DescribeCluster"] = (0, 1)
            cluster.broker().on("DescribeCluster", types.DescribeClusterResponse(cluster_id="c"))
            async with cluster.client() as client:
                assert (await clusters.describe(client, include_fenced=True)).cluster_id == "c"
        async with FakeCluster(nodes=2) as cluster:
            cluster.broker().versions["DescribeCluster"] = cluster.broker(2).versions["DescribeCluster"] = (0, -1)
            async with cluster.client() as client:
                found = await clusters.describe(client)
            assert (found.cluster_id, [each.node_id for each in found.brokers]) == (CLUSTER_ID, [1, 2])

    run(body)


def test_the_quorum_is_described():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("DescribeQuorum", quorum())
            found = await clusters.describe_quorum(client)
            assert (found.leader_id, found.leader_epoch, found.high_watermark) == (3, 8, 95)
            assert found.voters[0] == (3, b"d" * 16, 100, 50, 60, (("CONTROLLER", "host", 9093),))
            assert found.voters[1] == (4, None, 90, None, None, ())
            assert [found.lag(each) for each in found.voters] == [0, 10]
            assert found.observers[0].node_id == 7
            (asked,) = cluster.broker().asked_for("DescribeQuorum")
            assert asked.topics[0].topic_name == "__cluster_metadata"

    run(body)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (quorum(error_code=31, error_message="no"), r"CLUSTER_AUTHORIZATION_FAILED \(31\): no"),
        (quorum(partition_error=3), r"UNKNOWN_TOPIC_OR_PARTITION \(3\): why"),
        (quorum(topics=()), "does not contain __cluster_metadata"),
    ],
)
def test_a_quorum_that_cannot_be_described(answer: Any, reason: str):
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("DescribeQuorum", answer)
            with pytest.raises((ResponseError, ProtocolError), match=reason):
                await clusters.describe_quorum(client)

    run(body)


# --- groups -----------------------------------------------------------------------------------------------------------


def listed(*ids: str, kind: str = "consumer", state: str = "Stable") -> types.ListGroupsResponse:
    group = types.ListGroupsResponse.ListedGroup
    return types.ListGroupsResponse(groups=tuple(group(each, "consumer", state, kind) for each in ids))


def test_groups_are_listed_by_all_coordinators():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster, cluster.client() as client:
            cluster.broker(1).on("ListGroups", listed("b"))
            cluster.broker(2).on("ListGroups", listed("a", kind="share", state="Empty"))
            found = await groups.list_groups(client)
            assert found == [("a", "share", "Empty", "consumer", 2), ("b", "consumer", "Stable", "consumer", 1)]
            assert [each.group_id for each in await groups.list_groups(client, types=["share"])] == ["a"]
            assert [each.group_id for each in await groups.list_groups(client, states=["STABLE"])] == ["b"]
            asked = cluster.broker(1).asked_for("ListGroups")
            assert [each.types_filter for each in asked] == [(), ("share",), ()]
            assert [each.states_filter for each in asked] == [(), (), ("stable",)]

    run(body)


def test_older_coordinators_list_classic_groups():
    async def body() -> None:
        async with FakeCluster() as cluster:
            cluster.broker().versions["ListGroups"] = (0, 3)
            cluster.broker().on("ListGroups", listed("a"))
            async with cluster.client() as client:
                found = await groups.list_groups(client, types=["classic"], states=["Stable"])
                assert found == [("a", "classic", "", "consumer", 1)], (
                    "the state is not known, so it may be the wanted one"
                )
                assert await groups.list_groups(client, types=["share"]) == []

    run(body)


@pytest.mark.parametrize(
    ("kind", "api"),
    [
        ("classic", "DescribeGroups"),
        ("consumer", "ConsumerGroupDescribe"),
        ("share", "ShareGroupDescribe"),
        ("streams", "StreamsGroupDescribe"),
    ],
)
def test_each_kind_of_group_is_described_by_its_api(kind: str, api: str):
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster, cluster.client() as client:
            cluster.coordinator_id = 2
            response = getattr(types, f"{api}Response")
            answer = response(groups=(response.DescribedGroup(group_id="g", group_state="Stable"),))
            cluster.broker(2).on("ListGroups", listed("other", "g", kind=kind))
            cluster.broker(2).on(api, answer)
            assert (await groups.describe(client, "g")).group_state == "Stable"
            assert (await groups.describe(client, "g", type=kind.upper())).group_id == "g"
            assert len(cluster.broker(2).asked_for("ListGroups")) == 1
            assert len(cluster.broker(2).asked_for(api)) == 2

    run(body)


def test_a_group_that_is_not_there():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("ListGroups", listed("other"))
            with pytest.raises(ResponseError, match="for group g: GROUP_ID_NOT_FOUND"):
                await groups.describe(client, "g")
            gone = types.ConsumerGroupDescribeResponse.DescribedGroup(error_code=69, error_message="gone")
            cluster.broker().on("ConsumerGroupDescribe", types.ConsumerGroupDescribeResponse(groups=(gone,)))
            with pytest.raises(ResponseError, match=r"GROUP_ID_NOT_FOUND \(69\): gone"):
                await groups.describe(client, "g", type="consumer")
            with pytest.raises(ConfigurationError, match="'other' cannot be described"):
                await groups.describe(client, "g", type="other")

    run(body)


def test_an_api_that_the_cluster_does_not_have():
    async def body() -> None:
        async with FakeCluster() as cluster:
            cluster.broker().versions["ShareGroupDescribe"] = (0, -1)
            async with cluster.client() as client:
                with pytest.raises(
                    UnsupportedVersionError,
                    match=r"ShareGroupDescribe cannot be sent to .*: it does not support this API",
                ):
                    await groups.describe(client, "g", type="share")

    run(body)
