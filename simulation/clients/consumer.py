"""A member of a consumer group (KIP-848), which sends nothing but heartbeats.

The coordinator sends the partitions that the member may own now. The member revokes the others after some time, and its
next heartbeat lists what it owns, so that the coordinator knows. A fenced member owns nothing and joins again with
epoch 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from ottla.wire.errors import ErrorCode
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.types.offset_commit import OffsetCommitRequest
from simulation.clients.client import RETRIED, Client, ClientPorts

__all__ = ["ConsumerMember"]

_JOIN: Final = 0
_LEAVE: Final = -1
_STEP_AWAY: Final = -2
_FENCED: Final = frozenset((ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND))
_UNRELEASED_RETRY_MS: Final = 1_000
_STUCK_CHANCE: Final = 0.02
"""How likely the application hangs while its heartbeats go on."""

Owned = frozenset[tuple[bytes, int]]
"""Topic id and partition."""


class ConsumerMember(Client):
    rebalance_timeout_ms = 20_000
    heartbeat_ms = 5_000

    def __init__(
        self,
        world: ClientPorts,
        name: str,
        group_id: str,
        topics: tuple[str, ...],
        *,
        instance_id: str | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        always_full: bool = False,
    ) -> None:
        super().__init__(world, name)
        self.group_id = group_id
        self.topics = topics
        self.instance_id = instance_id
        self.regex = regex
        self.assignor = assignor
        self.always_full = always_full
        self.ended()

    def ended(self) -> None:
        self.epoch = _JOIN
        self.owned: Owned = frozenset()
        self.target: Owned = frozenset()
        self._told: Owned | None = None
        """The owned partitions in the last heartbeat, if the coordinator has certainly received it."""
        self._is_asking = False
        self._is_giving_up = False
        self._beats = 0
        self._joined = 0
        """How often it has joined: work that began before the last join is void."""

    def begin(self) -> None:
        self.member_id = f"{self.name}-{self.life}"
        self._beat()

    def has_converged(self) -> bool:
        return self.epoch > 0 and self.owned == self.target and not self._is_giving_up

    def subscription(self) -> Iterable[str]:
        """The topics that it subscribes to: those that it names, or those that its pattern matches now."""
        if self.regex is None:
            return self.topics
        return [name for name in self.world.topics.names() if re.fullmatch(self.regex, name)]

    def believes_to_own(self) -> Owned:
        return self.owned

    def stop(self) -> None:
        epoch = _LEAVE if self.instance_id is None else _STEP_AWAY
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, instance_id=self.instance_id, member_epoch=epoch
        )
        self.ask(request, 1, lambda _: None)
        self.crash()

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        if self._is_asking:
            return
        self._is_asking = True
        self._beats += 1
        is_full = self.epoch == _JOIN or self.always_full or self._told is None
        sent = self.owned
        entry = ConsumerGroupHeartbeatRequest.TopicPartitions
        partitions = tuple(entry(topic_id=topic, partitions=tuple(each)) for topic, each in _grouped(sent).items())
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms if is_full else -1,
            subscribed_topic_names=self.topics if is_full and self.regex is None else None,
            subscribed_topic_regex=self.regex if is_full else None,
            server_assignor=self.assignor if is_full else None,
            topic_partitions=partitions if is_full or sent != self._told else None,
        )
        self._told = None
        self.ask(request, 1, lambda answer: self._beaten(answer, sent))

    def _beat_later(self, delay_ms: int) -> None:
        beats = self._beats
        self.after(delay_ms, lambda: self._beat() if self._beats == beats else None)

    def _beaten(self, answer: Any, sent: Owned) -> None:  # noqa: ANN401
        self._is_asking = False
        code = ErrorCode.REQUEST_TIMED_OUT if answer is None else ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._told = sent
            self._take(answer)
        elif code in _FENCED:
            self._join_anew()
        elif code is ErrorCode.UNRELEASED_INSTANCE_ID:
            self._beat_later(_UNRELEASED_RETRY_MS)
        elif code in RETRIED or code is ErrorCode.REQUEST_TIMED_OUT:
            self._beat_later(self.backoff_ms)
        elif code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED):
            self.crash()
        else:
            self.unexpected("ConsumerGroupHeartbeat", code)

    def _join_anew(self) -> None:
        self.epoch, self.owned, self.target, self._told = _JOIN, frozenset(), frozenset(), None
        self._is_giving_up = False
        self._joined += 1
        self._beat_later(self.backoff_ms)

    def _take(self, answer: Any) -> None:  # noqa: ANN401
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.target = frozenset(
                (each.topic_id, partition)
                for each in answer.assignment.topic_partitions
                for partition in each.partitions
            )
        self._commit()
        if self.owned != self.target and not self._is_giving_up:
            self._reconcile()
        self._beat_later(self.heartbeat_ms)

    def _reconcile(self) -> None:
        """Revoke what is no longer assigned, which takes some time, then take what is new."""
        if not self.owned - self.target:
            self._own()
            return
        self._is_giving_up = True
        if self.world.random.random() < _STUCK_CHANCE:
            self.world.note(f"{self.name} never gives up what it should, until it is fenced")
            return
        joined = self._joined
        self.after(self.world.random.randint(0, 3_000), lambda: self._own() if self._joined == joined else None)

    def _own(self) -> None:
        self._is_giving_up = False
        self.owned = self.target
        self.world.check_belief(self)
        self.world.note(f"{self.name} owns {len(self.owned)} partitions in epoch {self.epoch}")
        self._beat()

    # --- commits ------------------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        if not self.owned or self.world.random.random() < 0.4:
            return
        topics: dict[str, list[Any]] = {}
        for topic_id, partition in sorted(self.owned):
            topic = self.world.topics.by_id(topic_id)
            if topic is not None:
                entry = OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=self.world.next_offset(), committed_metadata=""
                )
                topics.setdefault(topic.name, []).append(entry)
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=tuple(
                OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=tuple(partitions))
                for topic, partitions in topics.items()
            ),
        )
        self.ask(request, 9, lambda _: None)


def _grouped(owned: Owned) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(owned):
        found.setdefault(topic_id, []).append(partition)
    return found
