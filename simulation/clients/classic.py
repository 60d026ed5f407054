"""A member of a classic group: joins, syncs, heartbeats, commits, leaves. The leader assigns.

States::

    away -> joining -> syncing -> stable -> joining (the coordinator asks for it, or does not know the member any more)

An eager member revokes everything before it joins again; a cooperative one keeps its partitions until its assignment
lacks them, and then joins once more so that another member can get them.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.wire.errors import ErrorCode
from ottla.wire.types.heartbeat import HeartbeatRequest
from ottla.wire.types.join_group import JoinGroupRequest
from ottla.wire.types.leave_group import LeaveGroupRequest
from ottla.wire.types.sync_group import SyncGroupRequest
from simulation.clients.assignment import (
    Partitions,
    assign,
    read_assignment,
    subscribed_topics,
    write_assignment,
    write_subscription,
)
from simulation.clients.client import RETRIED, Client, ClientPorts

__all__ = ["ClassicMember"]

_EAGER: Final = "range"
_COOPERATIVE: Final = "cooperative-sticky"
_LOST: Final = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION))
_GOING_ON: Final = frozenset((ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS))
_STATIC_FROM: Final = 5
"""The first version of JoinGroup with static members."""


class ClassicMember(Client):
    session_timeout_ms = 10_000
    rebalance_timeout_ms = 20_000
    heartbeat_ms = 3_000

    def __init__(
        self,
        world: ClientPorts,
        name: str,
        group_id: str,
        topics: tuple[str, ...],
        *,
        instance_id: str | None = None,
        cooperative: bool = False,
        version: int = 9,
    ) -> None:
        super().__init__(world, name)
        self.group_id = group_id
        self.topics = topics
        self.instance_id = instance_id
        self.cooperative = cooperative
        self.version = max(version, _STATIC_FROM) if instance_id else version
        self.ended()

    def ended(self) -> None:
        self.state = "away"
        self.member_id = ""
        self.generation = -1
        self.owned: Partitions = frozenset()
        self._round = 0
        self._leads = False
        self._watched: dict[str, int] = {}
        """The topics of the whole group, with their partition counts at the beginning of the generation."""

    def begin(self) -> None:
        self._join()

    def has_converged(self) -> bool:
        return self.state == "stable"

    def stop(self) -> None:
        """Leave the group. A static member sends no LeaveGroup, because it will come back."""
        if self.member_id and self.instance_id is None:
            version = 4 if self.version >= 3 else 1
            member = LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
            fields = {"members": (member,)} if version >= 3 else {"member_id": self.member_id}
            self.ask(LeaveGroupRequest(group_id=self.group_id, **fields), version, lambda _: None)
        self.crash()

    # --- joining ------------------------------------------------------------------------------------------------------

    def _join(self) -> None:
        self.state = "joining"
        if not self.cooperative:
            self.owned = frozenset()
        name = _COOPERATIVE if self.cooperative else _EAGER
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name=name, metadata=write_subscription(self.topics, self.owned)
        )
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms if self.version >= 1 else -1,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=(protocol,),
        )
        self.ask(request, self.version, self._joined, self.rebalance_timeout_ms + 5_000)

    def _partition_count(self, name: str) -> int:
        topic = self.world.topics.by_name(name)
        return 0 if topic is None else topic.partition_count

    def _joined(self, answer: Any) -> None:  # noqa: ANN401
        code = ErrorCode.REQUEST_TIMED_OUT if answer is None else ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self._sync(answer)
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self._join()
        elif code in _LOST:
            self._lose()
            self.after(self.backoff_ms, self._join)
        elif code in RETRIED or code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS):
            self.after(self.backoff_ms, self._join)
        else:
            self._refused("JoinGroup", code)

    def _refused(self, api: str, code: ErrorCode) -> None:
        """The member is fenced by another process with the same name, or not accepted: the application ends."""
        if code not in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED):
            self.unexpected(api, code)
        self.crash()

    def _lose(self) -> None:
        self.member_id, self.generation, self.owned = "", -1, frozenset()

    def _sync(self, joined: Any) -> None:  # noqa: ANN401
        self.state = "syncing"
        self._leads = joined.leader == joined.member_id
        assignments: tuple[Any, ...] = ()
        subscriptions = {each.member_id: each.metadata for each in joined.members}
        self._watched = {name: self._partition_count(name) for name in subscribed_topics(subscriptions.values())}
        if joined.skip_assignment:
            # It cannot know what has changed while it was away, so it asks for another generation.
            self._watched = dict.fromkeys(self._watched, -1)
        if self._leads and not joined.skip_assignment:
            chosen = assign(subscriptions, self.world.topics, cooperative=self.cooperative)
            entry = SyncGroupRequest.SyncGroupRequestAssignment
            assignments = tuple(entry(member_id=each, assignment=write_assignment(chosen[each])) for each in chosen)
        version = 5 if self.version >= 7 else 3 if self.version >= _STATIC_FROM else 1
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer" if version >= 5 else None,
            protocol_name=joined.protocol_name if version >= 5 else None,
            assignments=assignments,
        )
        self.ask(request, version, self._synced, self.rebalance_timeout_ms + 5_000)
        self._round += 1
        self._beat_later(self._round)

    def _synced(self, answer: Any) -> None:  # noqa: ANN401
        if self.state != "syncing":
            return
        code = ErrorCode.REQUEST_TIMED_OUT if answer is None else ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._take(read_assignment(bytes(answer.assignment)))
        elif code in _LOST:
            self._lose()
            self._join()
        elif code in RETRIED or code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS):
            self.after(self.backoff_ms, self._join)
        else:
            self._refused("SyncGroup", code)

    def _take(self, assigned: Partitions) -> None:
        revoked = self.owned - assigned
        self.owned = assigned
        self.state = "stable"
        self.world.note(f"{self.name} owns {sorted(assigned)} in generation {self.generation}")
        if self.cooperative and revoked:
            self._join()

    # --- living -------------------------------------------------------------------------------------------------------

    def _beat_later(self, round_number: int) -> None:
        self.after(self.heartbeat_ms, lambda: self._beat(round_number))

    def _beat(self, round_number: int) -> None:
        if self.state not in ("syncing", "stable") or self._round != round_number:
            return
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        version = 4 if self.version >= 6 else 3 if self.version >= _STATIC_FROM else 1
        self.ask(request, version, lambda answer: self._beaten(answer, round_number))

    def _beaten(self, answer: Any, round_number: int) -> None:  # noqa: ANN401
        if self.state not in ("syncing", "stable") or self._round != round_number:
            return  # the state has changed since
        code = ErrorCode.REQUEST_TIMED_OUT if answer is None else ErrorCode(answer.error_code)
        if self.state == "stable" and (code is ErrorCode.REBALANCE_IN_PROGRESS or self._sees_other_topics()):
            self._join()
        elif code in _LOST:
            self._lose()
            self._join()
        elif code in _GOING_ON or code in RETRIED:
            self._commit()
            self._beat_later(round_number)
        else:
            self._refused("Heartbeat", code)

    def _sees_other_topics(self) -> bool:
        """Whether topics have changed: the leader watches them and asks for another generation."""
        return self._leads and any(count != self._partition_count(name) for name, count in self._watched.items())

    def _commit(self) -> None:
        if self.state != "stable" or not self.owned or self.world.random.random() < 0.4:
            return
        self.commit(sorted(self.owned), self.generation, 8, self.instance_id)
