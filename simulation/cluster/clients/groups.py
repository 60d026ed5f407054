"""Members of groups: consumer, streams and classic groups, by their requests; and those who commit without a group."""

from __future__ import annotations

from typing import Any, Final

from ottla.client import group_offsets
from ottla.client.errors import check
from ottla.client.metadata import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.types.heartbeat import HeartbeatRequest
from ottla.wire.types.join_group import JoinGroupRequest
from ottla.wire.types.leave_group import LeaveGroupRequest
from ottla.wire.types.offset_commit import OffsetCommitRequest
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ottla.wire.types.sync_group import SyncGroupRequest
from simulation.clients.streams import topology_of
from simulation.cluster.clients.client import SimulatedClient
from simulation.cluster.coordinator_checks import has_former_coordinator

__all__ = ["ClassicMember", "ConsumerMember", "OffsetCommitter", "OffsetReader", "StreamsMember"]

_LEAVE: Final = -1
_BY_NAME: Final = 9
"""The last version of OffsetCommit that names topics."""


class OffsetCommitter(SimulatedClient):
    """Commits offsets of a group without members, and reads them."""

    KIND = "committer"

    async def work(self) -> None:
        await self.pause(50, 700)
        topic = await self.data_topic()
        at = TopicPartition(topic, self.random.randrange(self.partitions))
        group_id = f"offsets-{self.random.randrange(2)}"
        mark = self.world.next_mark()

        async def commit() -> None:
            outcomes = await group_offsets.commit(self.client, group_id, {at: mark})
            error = outcomes[at]
            if error is not None:
                raise error

        await self.do("commit", (group_id, at.partition, mark), commit)
        if self.random.random() < 0.3:
            await self.read(group_id, at)

    async def read(self, group_id: str, at: TopicPartition) -> None:
        await self.do("read offset", (group_id, at.partition), lambda: self._read(group_id, at))

    async def _read(self, group_id: str, at: TopicPartition) -> int:
        found = await group_offsets.committed(self.client, group_id, [at])
        return found[at].offset if at in found else -1


class OffsetReader(OffsetCommitter):
    """Reads what others have committed, unless there is a coordinator that has not heard of the next one."""

    KIND = "offset-reader"

    async def work(self) -> None:
        await self.pause(10, 100)
        at = TopicPartition(await self.data_topic(), self.random.randrange(self.partitions))
        if not has_former_coordinator(self.world):
            await self.read(f"offsets-{self.random.randrange(2)}", at)


class ConsumerMember(SimulatedClient):
    """A member of a consumer group (KIP-848), which commits what it owns."""

    KIND = "consumer"

    _member_id = ""
    _epoch = 0
    _owned: tuple[Any, ...] = ()
    _lives = 0

    async def work(self) -> None:
        topic = await self.data_topic()
        if not self._epoch:
            self._lives += 1
            self._member_id, self._owned = f"{self.name}-{self._lives}", ()
        answer = await self.ask_group(self._heartbeat(topic))
        if answer.error_code:
            self._epoch, self._owned = 0, ()
            await self.pause(100, 500)
            return
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self._owned = answer.assignment.topic_partitions
        await self._commit(topic)
        if self.random.random() < 0.05:
            await self.ask_group(ConsumerGroupHeartbeatRequest(self.group_id, self._member_id, _LEAVE))
            self._epoch = 0
        await self.pause(300, 1_000)

    @property
    def group_id(self) -> str:
        return f"{self.KIND}s"

    def _heartbeat(self, topic: str) -> ConsumerGroupHeartbeatRequest:
        kind = ConsumerGroupHeartbeatRequest
        owned = tuple(kind.TopicPartitions(each.topic_id, each.partitions) for each in self._owned)
        is_join = not self._epoch
        return kind(
            self.group_id,
            self._member_id,
            self._epoch,
            rebalance_timeout_ms=5_000,
            subscribed_topic_names=(topic,),
            topic_partitions=() if is_join else owned,
        )

    async def _commit(self, topic: str) -> None:
        partitions = [partition for each in self._owned for partition in each.partitions]
        if partitions:
            await self.commit_as_member(topic, self.random.choice(partitions), self._member_id, self._epoch)

    async def ask_group(self, request: Any) -> Any:  # noqa: ANN401
        return await self.client.send(request, coordinator=("group", self.group_id), timeout_ms=3_000)

    async def commit_as_member(self, topic: str, partition: int, member_id: str, epoch: int) -> None:
        kind, mark = OffsetCommitRequest, self.world.next_mark()
        entry = kind.OffsetCommitRequestTopic(topic, partitions=(kind.OffsetCommitRequestPartition(partition, mark),))
        request = kind(self.group_id, epoch, member_id, topics=(entry,))

        async def commit() -> None:
            answer = await self.client.send(
                request, coordinator=("group", self.group_id), timeout_ms=3_000, max_version=_BY_NAME
            )
            check(None, "OffsetCommit", answer.topics[0].partitions[0].error_code, f"group {self.group_id}")

        await self.do("commit", (self.group_id, partition, mark), commit)


class StreamsMember(ConsumerMember):
    """A member of a streams group (KIP-1071)."""

    KIND = "streams"

    _tasks: tuple[Any, ...] = ()

    @property
    def group_id(self) -> str:
        return "streams"

    async def work(self) -> None:
        topic = await self.data_topic()
        is_join = not self._epoch
        if is_join:
            self._lives += 1
            self._member_id, self._tasks = f"{self.name}-{self._lives}", ()
        kind = StreamsGroupHeartbeatRequest
        request = kind(
            group_id=self.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            endpoint_information_epoch=-1,
            rebalance_timeout_ms=5_000,
            topology=topology_of(self.group_id, topic, has_internal_topics=True) if is_join else None,
            active_tasks=tuple(kind.TaskIds(each.subtopology_id, each.partitions) for each in self._tasks),
            standby_tasks=(),
            warmup_tasks=(),
            process_id=self.name,
        )
        answer = await self.ask_group(request)
        if answer.error_code:
            self._epoch = 0
            await self.pause(100, 500)
            return
        self._epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self._tasks = answer.active_tasks
        sources = [each for task in self._tasks if task.subtopology_id == "0" for each in task.partitions]
        if sources:
            await self.commit_as_member(topic, self.random.choice(sources), self._member_id, self._epoch)
        await self.pause(300, 1_000)


class ClassicMember(ConsumerMember):
    """A member of a classic group."""

    KIND = "classic"

    @property
    def group_id(self) -> str:
        return "classics"

    async def work(self) -> None:
        topic = await self.data_topic()
        kind = JoinGroupRequest
        protocol = kind.JoinGroupRequestProtocol("range", b"\0\0")
        joined = await self.ask_group(
            kind(self.group_id, 5_000, 4_000, self._member_id, protocol_type="consumer", protocols=(protocol,))
        )
        if joined.error_code:
            self._member_id = joined.member_id if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED else ""
            await self.pause(10, 300)
            return
        self._member_id = joined.member_id
        parts = SyncGroupRequest.SyncGroupRequestAssignment
        assignments = tuple(parts(each.member_id, each.member_id.encode()) for each in joined.members)
        synced = await self.ask_group(
            SyncGroupRequest(
                self.group_id, joined.generation_id, self._member_id, None, "consumer", "range", assignments
            )
        )
        if synced.error_code:
            return
        while not self.is_over:
            await self.pause(200, 900)
            if self.random.random() < 0.05:
                leaving = LeaveGroupRequest.MemberIdentity(self._member_id)
                await self.ask_group(LeaveGroupRequest(self.group_id, members=(leaving,)))
                self._member_id = ""
                return
            beat = await self.ask_group(HeartbeatRequest(self.group_id, joined.generation_id, self._member_id))
            if beat.error_code:
                return
            partition = self.random.randrange(self.partitions)
            await self.commit_as_member(topic, partition, self._member_id, joined.generation_id)
