"""The offsets of groups: what is asked in which version, and how answers are read."""

from typing import Any

import pytest

from ottla.client import TopicPartition, groups
from ottla.client.errors import ProtocolError, ResponseError
from ottla.client.group_offsets import Committed, alter_share, commit, committed, delete_offsets, share_starts
from ottla.client.groups import ListedGroup
from ottla.wire import frames, types
from ottla.wire.errors import ErrorCode
from tests.component.client.fake import FakeCluster
from tests.unit.client.running import run

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
Fetched = types.OffsetFetchResponse


def fetched(request: frames.Request, code: int = 0, partition_code: int = 0) -> Fetched:
    if request.version < 8:
        old = Fetched.OffsetFetchResponsePartition
        partitions = (old(0, 12, 3, "note", partition_code), old(1, -1, -1, None))
        return Fetched(topics=(Fetched.OffsetFetchResponseTopic("orders", partitions),), error_code=code)
    new = Fetched.OffsetFetchResponsePartitions
    topic = Fetched.OffsetFetchResponseTopics("orders", partitions=(new(0, 12, 3, "note", partition_code), new(1, -1)))
    return Fetched(groups=(Fetched.OffsetFetchResponseGroup("g", (topic,), code),))


@pytest.mark.parametrize("version", [2, 5, 7, 8, 9, 10])
def test_all_offsets_are_read_by_name_in_every_version(version: int):
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster:
            cluster.coordinator_id = 2
            cluster.broker(2).versions["OffsetFetch"] = (1, version)
            cluster.broker(2).on("OffsetFetch", fetched)
            async with cluster.client() as client:
                found = await committed(client, "g", require_stable=True)
            epoch = 3 if version >= 5 else -1
            assert found == {ORDERS_0: Committed(12, epoch, "note")}, "-1 says that nothing was committed"
            (asked,) = cluster.broker(2).requests[-1:]
            assert asked.version == min(version, 9), "later versions know topics by id only"
            assert asked.body.require_stable is (version >= 7)
            wanted = asked.body.groups[0] if version >= 8 else asked.body
            assert (wanted.group_id, wanted.topics) == ("g", None)

    run(body)


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        ((ErrorCode.GROUP_AUTHORIZATION_FAILED, 0), r"group g: GROUP_AUTHORIZATION_FAILED"),
        ((0, ErrorCode.TOPIC_AUTHORIZATION_FAILED), r"group g, orders-0: TOPIC_AUTHORIZATION_FAILED"),
    ],
)
def test_offsets_that_may_not_be_read(errors: tuple[int, int], reason: str):
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            cluster.broker().on("OffsetFetch", lambda request: fetched(request, *errors))
            with pytest.raises(ResponseError, match=reason):
                await committed(client, "g")

    run(body)


def test_offsets_are_committed_by_somebody_who_is_no_member():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            kind = types.OffsetCommitResponse
            answered = kind.OffsetCommitResponsePartition
            topic = kind.OffsetCommitResponseTopic("orders", partitions=(answered(0), answered(1, 25)))
            cluster.broker().on("OffsetCommit", kind(topics=(topic,)))
            outcomes = await commit(client, "g", {ORDERS_0: 5, ORDERS_1: Committed(6, 2, "m")})
            assert outcomes[ORDERS_0] is None
            assert "group g, orders-1: UNKNOWN_MEMBER_ID (25)" in str(outcomes[ORDERS_1])
            request = cluster.broker().requests[-1]
            assert request.version == 9
            assert (request.body.generation_id_or_member_epoch, request.body.member_id) == (-1, "")
            first, second = request.body.topics[0].partitions
            assert (first.committed_offset, first.committed_leader_epoch) == (5, -1)
            assert (second.committed_offset, second.committed_leader_epoch, second.committed_metadata) == (6, 2, "m")
            cluster.broker().on("OffsetCommit", kind())
            with pytest.raises(ProtocolError, match="does not contain orders-0"):
                await commit(client, "g", {ORDERS_0: 5})

    run(body)


def test_offsets_are_deleted():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            kind = types.OffsetDeleteResponse
            answered = kind.OffsetDeleteResponsePartition
            topic = kind.OffsetDeleteResponseTopic("orders", (answered(0), answered(1, 86)))
            cluster.broker().on("OffsetDelete", kind(topics=(topic,)), kind(error_code=68))
            outcomes = await delete_offsets(client, "g", [ORDERS_0, ORDERS_1, ORDERS_0])
            assert outcomes[ORDERS_0] is None
            assert "GROUP_SUBSCRIBED_TO_TOPIC" in str(outcomes[ORDERS_1])
            (asked,) = cluster.broker().asked_for("OffsetDelete")
            assert [each.partition_index for each in asked.topics[0].partitions] == [0, 1]
            with pytest.raises(ResponseError, match="for group g: NON_EMPTY_GROUP"):
                await delete_offsets(client, "g", [ORDERS_0])

    run(body)


def test_where_share_groups_start():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            kind = types.DescribeShareGroupOffsetsResponse
            part = kind.DescribeShareGroupOffsetsResponsePartition
            topic = kind.DescribeShareGroupOffsetsResponseTopic("orders", bytes(16), (part(0, 4, 1, 9), part(1, -1)))
            group = kind.DescribeShareGroupOffsetsResponseGroup("g", (topic,))
            cluster.broker().on("DescribeShareGroupOffsets", kind(groups=(group,)))
            assert await share_starts(client, "g") == {ORDERS_0: Committed(4, 1, lag=9)}
            altered = types.AlterShareGroupOffsetsResponse
            said = altered.AlterShareGroupOffsetsResponsePartition
            answer = altered.AlterShareGroupOffsetsResponseTopic("orders", partitions=(said(0), said(1, 68, "busy")))
            cluster.broker().on("AlterShareGroupOffsets", altered(responses=(answer,)), altered(error_code=68))
            outcomes = await alter_share(client, "g", {ORDERS_0: 1, ORDERS_1: 2})
            assert outcomes[ORDERS_0] is None
            assert "busy" in str(outcomes[ORDERS_1])
            with pytest.raises(ResponseError, match="NON_EMPTY_GROUP"):
                await alter_share(client, "g", {ORDERS_0: 1})

    run(body)


def test_groups_are_deleted_one_by_one():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:

            def answer(request: frames.Request) -> Any:
                (name,) = request.body.groups_names
                kind = types.DeleteGroupsResponse
                return kind(results=(kind.DeletableGroupResult(name, 68 if name == "busy" else 0),))

            cluster.broker().on("DeleteGroups", answer)
            outcomes = await groups.try_delete(client, "idle", "busy")
            assert outcomes["idle"] is None
            assert "for group busy: NON_EMPTY_GROUP (68)" in str(outcomes["busy"])
            await groups.delete(client, "idle")
            with pytest.raises(ResponseError, match="NON_EMPTY_GROUP"):
                await groups.delete(client, "idle", "busy")

    run(body)


def test_many_groups_are_viewed_with_few_requests():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster, cluster.client() as client:
            kind = types.DescribeGroupsResponse

            def classic(request: frames.Request) -> Any:
                return kind(groups=tuple(kind.DescribedGroup(0, None, name, "Empty") for name in request.body.groups))

            share = types.ShareGroupDescribeResponse
            gone = share.DescribedGroup(error_code=69, error_message="gone", group_id="s")
            cluster.broker(1).on("DescribeGroups", classic)
            cluster.broker(2).on("ShareGroupDescribe", share(groups=(gone,)))
            listed = [ListedGroup(f"g{number}", "classic", "Empty", "", 1) for number in range(150)]
            views = await groups.try_view(client, [*listed, ListedGroup("s", "share", "Empty", "share", 2)])
            assert len(views) == 151
            assert [len(each.groups) for each in cluster.broker(1).asked_for("DescribeGroups")] == [100, 50]
            assert isinstance(views["s"], ResponseError)
            view = views["g149"]
            assert not isinstance(view, ResponseError)
            assert (view.state, view.coordinator.node_id) == ("Empty", 1)

    run(body)
