"""One long conversation with a coordinator of share groups, to be had with any broker.

Members join, follow, leave and are refused; administrators describe, change and delete. Whoever listens gets each
request and its answer; the log tells what was written for it. `record.py` writes down what Apache Kafka answers and
writes; the unit tests hold a node of ours to it, and the interop tests both brokers.

Apache Kafka gives a new member its partitions with a later heartbeat, ottla with the first. So `joined` and `followed`
go on until the member has partitions, and are one note: the records are the same, and so is the last answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.wire.types import (
    AlterShareGroupOffsetsRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreatePartitionsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    DescribeShareGroupOffsetsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    SyncGroupRequest,
)

Send = Callable[[Any, int], Any]
"""A request and its version -> the answer."""
Until = Callable[[Any, int, Callable[[Any], Any | None]], Any]
"""A request, its version, and what gives the next request for an answer, or None for the last -> the last answer."""

TOPICS = {"t1": 4, "t2": 2, "t3": 1}


class Talk:
    def __init__(self, send: Send, until: Until) -> None:
        self._send = send
        self._until = until

    # --- members ------------------------------------------------------------------------------------------------------

    def beat(self, group: str, member: str, epoch: int, **fields: Any) -> Any:
        return self._send(_heartbeat(group, member, epoch, **fields), 1)

    def join(self, group: str, member: str, *names: str, **fields: Any) -> Any:
        return self.beat(group, member, 0, subscribed_topic_names=names, **fields)

    def joined(self, group: str, member: str, *names: str, count: int) -> int:
        """Join, and go on until there are so many partitions: the epoch."""
        return self.followed(group, member, 0, subscribed_topic_names=names, count=count)

    def followed(self, group: str, member: str, epoch: int, *, count: int, **fields: Any) -> int:
        """Send a heartbeat, and go on until so many partitions come: the epoch."""

        def again(answer: Any) -> Any | None:
            topics = () if answer.assignment is None else answer.assignment.topic_partitions
            has_all = sum(len(topic.partitions) for topic in topics) == count
            return None if has_all else _heartbeat(group, member, answer.member_epoch)

        return int(self._until(_heartbeat(group, member, epoch, **fields), 1, again).member_epoch)

    # --- administrators -----------------------------------------------------------------------------------------------

    def describe(self, *groups: str) -> Any:
        return self._send(ShareGroupDescribeRequest(groups), 1)

    def list(self, **filters: Any) -> Any:
        return self._send(ListGroupsRequest(**filters), 5)

    def offsets(self, group: str, topics: Mapping[str, Sequence[int]] | None = None) -> Any:
        kind = DescribeShareGroupOffsetsRequest
        asked = None
        if topics is not None:
            asked = tuple(
                kind.DescribeShareGroupOffsetsRequestTopic(name, tuple(each)) for name, each in topics.items()
            )
        return self._send(kind((kind.DescribeShareGroupOffsetsRequestGroup(group, asked),)), 1)

    def alter(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> Any:
        kind = AlterShareGroupOffsetsRequest
        topics = tuple(
            kind.AlterShareGroupOffsetsRequestTopic(
                name, tuple(kind.AlterShareGroupOffsetsRequestPartition(*each) for each in by_partition.items())
            )
            for name, by_partition in offsets.items()
        )
        return self._send(kind(group, topics), 0)

    def forget(self, group: str, *names: str) -> Any:
        kind = DeleteShareGroupOffsetsRequest
        topics = tuple(kind.DeleteShareGroupOffsetsRequestTopic(name) for name in names)
        return self._send(kind(group, topics), 0)

    def delete(self, *groups: str) -> Any:
        return self._send(DeleteGroupsRequest(groups), 2)

    def grow(self, topic: str, count: int) -> Any:
        kind = CreatePartitionsRequest
        return self._send(kind((kind.CreatePartitionsTopic(topic, count, None),), 30_000), 3)

    def delete_topic(self, topic: str) -> Any:
        kind = DeleteTopicsRequest
        return self._send(kind((kind.DeleteTopicState(topic),), timeout_ms=30_000), 6)

    # --- other kinds of groups ----------------------------------------------------------------------------------------

    def send(self, request: Any, version: int) -> Any:
        return self._send(request, version)

    def consumer_join(self, group: str) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group, "C", 0, rebalance_timeout_ms=300_000, subscribed_topic_names=("t1",), topic_partitions=()
        )
        return self._send(request, 1)

    def classic_join(self, group: str) -> Any:
        protocols = (JoinGroupRequest.JoinGroupRequestProtocol("range", b"\0"),)
        return self._send(JoinGroupRequest(group, 300_000, 300_000, "J", None, "consumer", protocols), 9)


def _heartbeat(group: str, member: str, epoch: int, **fields: Any) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)


def converse(talk: Talk) -> None:
    for part in (_life, _refusals, _sharing, _subscriptions, _growth, _kinds, _offsets, _deletion, _topics_gone):
        part(talk)


def _life(talk: Talk) -> None:
    epoch = talk.joined("life", "A", "t1", count=4)
    talk.beat("life", "A", epoch)
    talk.beat("life", "A", epoch - 1)
    talk.join("life", "A", "t1")
    talk.beat("life", "A", epoch, subscribed_topic_names=("t1",))
    talk.beat("life", "A", epoch, rack_id="r1")
    talk.describe("life")
    talk.beat("life", "A", -1)
    talk.beat("life", "A", -1)
    talk.describe("life", "nothing")
    talk.describe("")
    talk.joined("life", "A", "t1", count=4)
    talk.beat("life", "A", -1)


def _refusals(talk: Talk) -> None:
    talk.beat("nothing", "A", 5)
    talk.beat("nothing", "A", -1)
    epoch = talk.joined("refuse", "A", "t2", count=2)
    for each in (epoch + 1, 1):
        talk.beat("refuse", "A", each)
    talk.beat("refuse", "nobody", epoch)
    talk.join("refuse", "B")
    talk.beat("refuse", "B", 0)
    talk.join("refuse", "B", "t2", rack_id="")
    talk.join("refuse", "", "t2")
    talk.join("refuse", "B" * 36, "nowhere")
    talk.join("refuse", "B" * 37, "t2")
    talk.join("", "B", "t2")
    talk.beat("refuse", "A", -2)
    talk.beat("refuse", "A", -1)


def _sharing(talk: Talk) -> None:
    """More members than partitions, so that who has what does not depend on any order."""
    first = talk.joined("many", "A", "t3", count=1)
    talk.joined("many", "B", "t3", count=1)
    talk.beat("many", "A", first)
    talk.joined("many", "C", "t3", "nowhere", count=1)
    talk.beat("many", "C", -1)
    talk.describe("many")
    talk.list(types_filter=("share",), states_filter=("Stable",))


def _subscriptions(talk: Talk) -> None:
    talk.join("sub", "A", "nowhere")
    epoch = talk.followed("sub", "A", 2, subscribed_topic_names=("t2",), count=2)
    epoch = talk.followed("sub", "A", epoch, subscribed_topic_names=("t1", "t2"), count=6)
    epoch = talk.beat("sub", "A", epoch, subscribed_topic_names=("t1",)).member_epoch
    talk.beat("sub", "A", epoch, subscribed_topic_names=())
    talk.describe("sub")


def _growth(talk: Talk) -> None:
    epoch = talk.joined("grow", "A", "t2", count=2)
    talk.grow("t2", 3)
    talk.followed("grow", "A", epoch, count=3)


def _kinds(talk: Talk) -> None:
    """Each kind of group refuses what is said to another."""
    epoch = talk.joined("kind", "A", "t1", count=4)
    talk.consumer_join("kind")
    talk.send(ConsumerGroupHeartbeatRequest("kind", "C", -1), 1)
    talk.send(ConsumerGroupDescribeRequest(("kind",)), 1)
    talk.send(DescribeGroupsRequest(("kind",)), 6)
    talk.classic_join("kind")
    talk.send(HeartbeatRequest("kind", 1, "J"), 4)
    talk.send(SyncGroupRequest("kind", 1, "J", protocol_type="consumer", protocol_name="range"), 5)
    talk.send(LeaveGroupRequest("kind", members=(LeaveGroupRequest.MemberIdentity("J", None),)), 5)
    _committed(talk, "kind", epoch)
    talk.beat("kind", "A", -1)
    talk.classic_join("kind")
    talk.consumer_join("kind")
    talk.consumer_join("kind-consumer")
    talk.join("kind-consumer", "A", "t1")
    talk.beat("kind-consumer", "A", 2)
    talk.beat("kind-consumer", "A", -1)
    talk.describe("kind-consumer")
    talk.alter("kind-consumer", {"t1": {0: 0}})
    talk.forget("kind-consumer", "t1")
    talk.offsets("kind-consumer")


def _committed(talk: Talk, group: str, epoch: int) -> None:
    """A share group commits no offsets."""
    commit, fetch, delete = OffsetCommitRequest, OffsetFetchRequest, OffsetDeleteRequest
    entry = commit.OffsetCommitRequestPartition(0, 1)
    topics = (commit.OffsetCommitRequestTopic(name="t1", partitions=(entry,)),)
    talk.send(commit(group, epoch, "A", topics=topics), 9)
    talk.send(commit(group, -1, "", topics=topics), 9)
    asked = (fetch.OffsetFetchRequestTopics("t1", partition_indexes=(0,)),)
    talk.send(fetch(groups=(fetch.OffsetFetchRequestGroup(group, topics=asked),)), 8)
    talk.send(fetch(groups=(fetch.OffsetFetchRequestGroup(group, topics=None),)), 8)
    talk.send(fetch(groups=(fetch.OffsetFetchRequestGroup(group, "A", epoch, topics=asked),)), 9)
    topic = delete.OffsetDeleteRequestTopic("t1", (delete.OffsetDeleteRequestPartition(0),))
    talk.send(delete(group, (topic,)), 0)


def _offsets(talk: Talk) -> None:
    epoch = talk.joined("offsets", "A", "t1", count=4)
    talk.offsets("offsets", {"t1": (0,), "nowhere": (0, 1)})
    talk.offsets("offsets", {})
    talk.offsets("nothing")
    talk.offsets("nothing", {"t1": (0,)})
    talk.alter("offsets", {"t1": {0: 0}})
    talk.forget("offsets", "t1")
    talk.beat("offsets", "A", epoch)
    talk.beat("offsets", "A", -1)
    talk.alter("offsets", {"t1": {1: 7, 0: 3}})
    talk.offsets("offsets")
    talk.alter("offsets", {"t1": {0: -5}})
    talk.offsets("offsets", {"t1": (0,)})
    talk.alter("", {"t1": {0: 0}})
    talk.alter("made", {"t1": {0: 500}})
    talk.describe("made")
    talk.offsets("made")
    talk.alter("offsets", {"nowhere": {0: 0}})
    talk.forget("offsets", "t1", "t2", "nowhere")
    talk.offsets("offsets")
    talk.forget("nothing", "t1")
    talk.forget("", "t1")
    talk.joined("offsets", "A", "t1", count=4)


def _deletion(talk: Talk) -> None:
    talk.delete("offsets", "made", "nothing")
    talk.beat("offsets", "A", -1)
    talk.delete("offsets")
    talk.describe("offsets", "made")
    talk.joined("offsets", "A", "t1", count=4)


def _topics_gone(talk: Talk) -> None:
    epoch = talk.joined("gone", "A", "t1", "t2", count=7)
    talk.delete_topic("t2")
    talk.followed("gone", "A", epoch, count=4)
    talk.offsets("gone")
    talk.describe("gone")
