"""One long conversation with a coordinator of consumer groups, to be had with any broker.

Members of both protocols join, follow, commit, leave and are refused; the group changes its kind both ways. Whoever
listens gets each request and its answer; the log tells what was written for it. `record.py` writes down what Apache
Kafka answers and writes; the unit tests hold ottla's core to it, and the interop tests both brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.wire.keyed import encode_framed
from ottla.wire.types import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    DeleteGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)

Send = Callable[[Any, int], Any]
"""A request and its version -> the answer."""

TOPICS = {"t1": 4, "t2": 2}


class Talk:
    def __init__(self, send: Send, topic_ids: Mapping[str, bytes]) -> None:
        self._send = send
        self._topic_ids = topic_ids

    # --- members of the new protocol ----------------------------------------------------------------------------------

    def beat(self, group: str, member: str, epoch: int, **fields: Any) -> Any:
        owned = fields.pop("owned", None)
        if owned is not None:
            fields["topic_partitions"] = tuple(
                ConsumerGroupHeartbeatRequest.TopicPartitions(self._topic_ids[topic], tuple(partitions))
                for topic, partitions in owned.items()
            )
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)
        return self._send(request, 1)

    def join(self, group: str, member: str, *names: str, **fields: Any) -> Any:
        given = {"rebalance_timeout_ms": 300_000, "topic_partitions": (), "subscribed_topic_names": names} | fields
        return self.beat(group, member, 0, **given)

    def commit(self, group: str, member: str, epoch: int, topic: str, partitions: Sequence[int], version: int) -> Any:
        entries = tuple(OffsetCommitRequest.OffsetCommitRequestPartition(each, 1) for each in partitions)
        topics = (OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=entries),)
        return self._send(OffsetCommitRequest(group, epoch, member, topics=topics), version)

    # --- members of the classic protocol ------------------------------------------------------------------------------

    def classic_join(
        self, group: str, member: str, *names: str, owned: Mapping[str, Sequence[int]] | None = None, **fields: Any
    ) -> Any:
        subscription = ConsumerProtocolSubscription(
            topics=names,
            user_data=None,
            owned_partitions=tuple(
                ConsumerProtocolSubscription.TopicPartition(topic, tuple(each)) for topic, each in (owned or {}).items()
            ),
            rack_id=None,
        )
        protocols = (JoinGroupRequest.JoinGroupRequestProtocol("range", encode_framed(subscription, 3)),)
        given = {"protocol_type": "consumer", "protocols": protocols} | fields
        return self._send(JoinGroupRequest(group, 300_000, 300_000, member, **given), 9)

    def new_classic(self, group: str, *names: str) -> tuple[str, Any]:
        """Joins twice, as a dynamic member does: its id, and the second answer."""
        member_id = self.classic_join(group, "", *names).member_id
        return member_id, self.classic_join(group, member_id, *names)

    def sync(self, group: str, member: str, generation: int, **fields: Any) -> Any:
        given = {"protocol_type": "consumer", "protocol_name": "range"} | fields
        return self._send(SyncGroupRequest(group, generation, member, **given), 5)

    def assign(self, group: str, member: str, generation: int, topic: str, partitions: Sequence[int]) -> Any:
        assignment = ConsumerProtocolAssignment(
            (ConsumerProtocolAssignment.TopicPartition(topic, tuple(partitions)),), None
        )
        own = SyncGroupRequest.SyncGroupRequestAssignment(member, encode_framed(assignment, 3))
        return self.sync(group, member, generation, assignments=(own,))

    def classic_beat(self, group: str, member: str, generation: int, instance_id: str | None = None) -> Any:
        return self._send(HeartbeatRequest(group, generation, member, instance_id), 4)

    def classic_leave(self, group: str, member: str, instance_id: str | None = None) -> Any:
        who = LeaveGroupRequest.MemberIdentity(member, instance_id)
        return self._send(LeaveGroupRequest(group, members=(who,)), 5)

    def delete(self, group: str) -> Any:
        return self._send(DeleteGroupsRequest((group,)), 2)


def converse(talk: Talk) -> None:
    for part in (_share, _refusals, _subscriptions, _statics, _patterns, _upgrade, _mix, _static_rolls):
        part(talk)


def _share(talk: Talk) -> None:
    """Two members share a topic; the second waits until the first has let go."""
    talk.join("share", "A", "t1")
    talk.join("share", "B", "t1")
    talk.beat("share", "A", 2)
    talk.commit("share", "A", 2, "t1", (0, 1, 2, 3), 9)
    talk.beat("share", "A", 2, owned={"t1": (0, 1)})
    talk.commit("share", "A", 2, "t1", (0, 1), 9)
    talk.commit("share", "A", 2, "t1", (0, 2), 9)
    talk.beat("share", "B", 3)
    talk.beat("share", "A", 2, owned={"t1": (0,)})
    talk.beat("share", "A", 3, rebalance_timeout_ms=300_000, subscribed_topic_names=("t1",), owned={"t1": (0, 1)})
    talk.join("share", "A", "t1")
    talk.beat("share", "A", -1)
    talk.beat("share", "B", 3)
    talk.beat("share", "B", -1)
    talk.delete("share")


def _refusals(talk: Talk) -> None:
    talk.join("refuse", "A", "t1")
    for epoch in (1, 9):
        talk.beat("refuse", "A", epoch)
        talk.commit("refuse", "A", epoch, "t1", (0,), 9)
    talk.beat("refuse", "nobody", 2)
    talk.beat("refuse", "A", 2, instance_id="nobody")
    talk.beat("nothing", "A", 2)
    talk.beat("nothing", "A", -1)
    talk.commit("refuse", "A", 2, "t1", (0,), 8)
    talk.commit("refuse", "", -1, "t1", (0,), 9)
    talk.join("refuse", "B", "t1", rebalance_timeout_ms=-1)
    talk.join("refuse", "B", "t1", topic_partitions=None)
    talk.join("refuse", "B", "t1", server_assignor="xx")
    talk.join("refuse", "B", subscribed_topic_names=None, subscribed_topic_regex="(")
    talk.beat("refuse", "A", -2)
    talk.beat("refuse", "A", -3)
    talk.delete("refuse")


def _subscriptions(talk: Talk) -> None:
    talk.join("sub", "A")
    talk.beat("sub", "A", 1, subscribed_topic_names=("t1", "nowhere"))
    talk.beat("sub", "A", 2, subscribed_topic_names=("t2",))
    talk.beat("sub", "A", 2, owned={})
    talk.beat("sub", "A", 3, server_assignor="range")
    talk.beat("sub", "A", 3, rack_id="r2")
    talk.beat("sub", "A", 3, subscribed_topic_names=(), owned={})


def _statics(talk: Talk) -> None:
    talk.join("static", "A", "t1", instance_id="i")
    talk.join("static", "B", "t1", instance_id="i")
    talk.beat("static", "A", -2, instance_id="i")
    talk.join("static", "B", "t1", instance_id="i")
    talk.beat("static", "A", 2, instance_id="i")
    talk.beat("static", "B", 2, instance_id="i")
    talk.beat("static", "B", -2, instance_id="i")
    talk.join("static", "C", "t2", instance_id="i")
    talk.beat("static", "C", -1, instance_id="i")


def _patterns(talk: Talk) -> None:
    talk.join("pattern", "A", subscribed_topic_names=None, subscribed_topic_regex="[st]1")
    talk.beat("pattern", "A", 1)
    talk.join("pattern", "B", subscribed_topic_names=None, subscribed_topic_regex="[st]1")
    talk.beat("pattern", "B", 3, subscribed_topic_regex="", subscribed_topic_names=("t2",))
    talk.beat("pattern", "A", -1)
    talk.beat("pattern", "B", -1)


def _upgrade(talk: Talk) -> None:
    """A classic group becomes a consumer group, and a classic one again."""
    old, answer = talk.new_classic("roll", "t1")
    talk.assign("roll", old, answer.generation_id, "t1", (0, 1, 2, 3))
    talk.join("roll", "A", "t1")
    talk.classic_beat("roll", old, 1)
    talk.classic_join("roll", old, "t1", owned={"t1": (0, 1, 2, 3)})
    talk.sync("roll", old, 1)
    talk.classic_beat("roll", old, 1)
    talk.classic_join("roll", old, "t1", owned={"t1": (0, 1)})
    talk.sync("roll", old, 2)
    talk.classic_beat("roll", old, 2)
    talk.beat("roll", "A", 2)
    talk.beat("roll", "A", -1)
    talk.classic_beat("roll", old, 2)
    answer = talk.classic_join("roll", old, "t1", owned={"t1": (0, 1)})
    talk.assign("roll", old, answer.generation_id, "t1", (0, 1, 2, 3))
    talk.classic_leave("roll", old)


def _mix(talk: Talk) -> None:
    """Members of the classic protocol in a consumer group."""
    talk.join("mix", "A", "t1")
    classic, _ = talk.new_classic("mix", "t1")
    talk.sync("mix", classic, 3)
    talk.sync("mix", classic, 2)
    talk.sync("mix", classic, 3, protocol_name="sticky")
    talk.classic_beat("mix", classic, 2)
    talk.classic_beat("mix", "A", 2)
    talk.beat("mix", "A", 2, owned={"t1": (0, 1)})
    talk.classic_beat("mix", classic, 3)
    talk.classic_join("mix", classic, "t1")
    talk.sync("mix", classic, 3)
    talk.commit("mix", classic, 3, "t1", (2,), 8)
    talk.commit("mix", classic, 2, "t1", (2,), 8)
    talk.classic_join("mix", "", "t1", protocol_type="connect")
    talk.classic_leave("mix", "nobody")
    talk.classic_leave("mix", classic)
    talk.beat("mix", "A", -1)
    talk.classic_join("mix", "", "t1")


def _static_rolls(talk: Talk) -> None:
    talk.join("still", "A", "t1", instance_id="i")
    back = talk.classic_join("still", "", "t1", group_instance_id="i").member_id
    talk.sync("still", back, 2, group_instance_id="i")
    talk.classic_beat("still", back, 2, "i")
    talk.join("still", "B", "t1", instance_id="i")
    talk.classic_beat("still", back, 2, "i")
    talk.beat("still", "B", -1, instance_id="i")
