"""Members of groups over raw frames: as much of a consumer as is needed to rebalance, and no more.

A crew is some members of one group, each with a connection of its own, that are driven until all of them have settled.
A member heartbeats every `HEARTBEAT_S`, far more often than a real one: what is measured shall be the broker's work and
not how long a member does not ask.
"""

import select
import time
from collections.abc import Callable
from typing import Any, Protocol

from benchmarks.groups.connections import Connection, body_of, frame_of
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import encode_framed
from ottla.wire.types import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)

HEARTBEAT_S = 0.02
SETTLE_S = 60.0
SESSION_MS = 6_000
"""The shortest that Apache Kafka allows a classic member by default."""
LONG_SESSION_MS = 1_800_000
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, CONSUMER_VERSION = 9, 5, 4, 1
RETRY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class Member(Protocol):
    connection: Connection
    is_settled: bool
    heard_at: float
    """When the broker last answered a heartbeat."""

    def begin(self) -> None: ...

    def heartbeat(self) -> bool:
        """Send one unless something else is under way; whether it did."""
        ...

    def take(self, content: bytes) -> None:
        """An answer has come."""
        ...


class ClassicMember:
    """Joins, synchronises, heartbeats. The leader shares the partitions out as the range assignor does."""

    def __init__(self, port: int, group: str, topic: str, partitions: int, session_ms: int = SESSION_MS) -> None:
        self.connection = Connection(port)
        self.group, self.topic, self.partitions = group, topic, partitions
        self.session_ms = session_ms
        self.member_id = ""
        self.generation = -1
        self.is_settled = False
        self.heard_at = 0.0
        self._asked: Any = None
        self._version = 0
        self._subscription = encode_framed(ConsumerProtocolSubscription(topics=(topic,)), 0)

    def begin(self) -> None:
        self._join()

    def heartbeat(self) -> bool:
        if self._asked is None and self.is_settled:
            self._ask(HeartbeatRequest(self.group, self.generation, self.member_id), HEARTBEAT_VERSION)
            return True
        return False

    def take(self, content: bytes) -> None:
        request, self._asked = self._asked, None
        answer = body_of(content, request, self._version)
        if isinstance(request, JoinGroupRequest):
            self._joined(answer)
        elif isinstance(request, SyncGroupRequest):
            self._synchronised(answer.error_code)
        elif answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._join()
        else:
            assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
            self.heard_at = time.perf_counter()

    def frame(self) -> bytes:
        """A heartbeat of this member as it is now."""
        return frame_of(HeartbeatRequest(self.group, self.generation, self.member_id), HEARTBEAT_VERSION)

    def _ask(self, request: object, version: int) -> None:
        self._asked, self._version = request, version
        self.connection.send(frame_of(request, version))

    def _join(self) -> None:
        self.is_settled = False
        protocols = (JoinGroupRequest.JoinGroupRequestProtocol("range", self._subscription),)
        request = JoinGroupRequest(
            self.group,
            self.session_ms,
            60_000,
            self.member_id,
            protocol_type="consumer",
            protocols=protocols,
        )
        self._ask(request, JOIN_VERSION)

    def _joined(self, answer: Any) -> None:  # noqa: ANN401
        if answer.error_code in RETRY | {ErrorCode.MEMBER_ID_REQUIRED}:
            self.member_id = answer.member_id
            self._join()
            return
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        self.member_id, self.generation = answer.member_id, answer.generation_id
        shares = self._shares([each.member_id for each in answer.members])
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(
            self.group,
            self.generation,
            self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(kind(member_id, share) for member_id, share in shares.items()),
        )
        self._ask(request, SYNC_VERSION)

    def _shares(self, member_ids: list[str]) -> dict[str, bytes]:
        shares, first = {}, 0
        for number, member_id in enumerate(sorted(member_ids)):
            size = self.partitions // len(member_ids) + (number < self.partitions % len(member_ids))
            kind = ConsumerProtocolAssignment
            share = kind.TopicPartition(self.topic, tuple(range(first, first + size)))
            shares[member_id] = encode_framed(kind(assigned_partitions=(share,)), 0)
            first += size
        return shares

    def _synchronised(self, code: int) -> None:
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._join()
            return
        assert code == ErrorCode.NONE, ErrorCode(code)
        self.is_settled = True
        self.heard_at = time.perf_counter()


class ConsumerMember:
    """Heartbeats, and owns at once what it is told to own."""

    def __init__(self, port: int, group: str, topic: str, partitions: int, session_ms: int = SESSION_MS) -> None:
        self.connection = Connection(port)
        self.group, self.topic = group, topic
        self.member_id = f"{group}-{id(self):016x}"
        self.epoch = 0
        self.owned: tuple[Any, ...] = ()
        self.heard_at = 0.0
        self._is_asking = False
        self._is_told = False

    @property
    def is_settled(self) -> bool:
        """Whether the broker knows what this member owns."""
        return self.epoch > 0 and self._is_told

    @property
    def owned_count(self) -> int:
        return sum(len(each.partitions) for each in self.owned)

    def begin(self) -> None:
        self._ask(
            ConsumerGroupHeartbeatRequest(
                self.group,
                self.member_id,
                0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=(self.topic,),
                topic_partitions=(),
            )
        )

    def heartbeat(self) -> bool:
        if self._is_asking:
            return False
        owned = None if self._is_told else self.owned
        self._is_told = True
        self._ask(ConsumerGroupHeartbeatRequest(self.group, self.member_id, self.epoch, topic_partitions=owned))
        return True

    def take(self, content: bytes) -> None:
        self._is_asking = False
        answer = wire_body(content)
        if answer.error_code in RETRY and not self.epoch:
            self.begin()
            return
        assert answer.error_code == ErrorCode.NONE, (ErrorCode(answer.error_code), answer.error_message)
        self.heard_at = time.perf_counter()
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            kind = ConsumerGroupHeartbeatRequest.TopicPartitions
            owned = tuple(kind(each.topic_id, each.partitions) for each in answer.assignment.topic_partitions)
            self._is_told = owned == self.owned
            self.owned = owned
            self.heartbeat()  # a consumer tells at once what it has given up or taken

    def frame(self) -> bytes:
        return frame_of(ConsumerGroupHeartbeatRequest(self.group, self.member_id, self.epoch), CONSUMER_VERSION)

    def _ask(self, request: ConsumerGroupHeartbeatRequest) -> None:
        self._is_asking = True
        self.connection.send(frame_of(request, CONSUMER_VERSION))


def wire_body(content: bytes) -> Any:  # noqa: ANN401
    return body_of(content, ConsumerGroupHeartbeatRequest(), CONSUMER_VERSION)


class Crew:
    """Members of one group that are driven together."""

    def __init__(self, is_done: Callable[[list[Any]], bool]) -> None:
        self.members: list[Any] = []
        self._is_done = is_done
        self._poll = select.epoll()
        self._by_number: dict[int, Any] = {}

    def add(self, member: Member) -> None:
        self.members.append(member)
        self._by_number[member.connection.sock.fileno()] = member
        self._poll.register(member.connection.sock, select.EPOLLIN)
        member.begin()

    def remove(self, member: Member) -> None:
        """Without a word, as in a crash."""
        self.members.remove(member)
        del self._by_number[member.connection.sock.fileno()]
        self._poll.unregister(member.connection.sock)
        member.connection.close()

    def settle(self) -> float:
        """Drive until all have settled; gives the time of the clock then."""
        deadline = time.perf_counter() + SETTLE_S
        due_at = 0.0
        while not self._is_done(self.members):
            now = time.perf_counter()
            assert now < deadline, "the group does not settle"
            if now >= due_at:
                for member in self.members:
                    member.heartbeat()
                due_at = now + HEARTBEAT_S
            self._turn(max(due_at - now, 0))
        return time.perf_counter()

    def run(self, seconds: float) -> None:
        """Heartbeat for a while."""
        end_at = time.perf_counter() + seconds
        while (now := time.perf_counter()) < end_at:
            for member in self.members:
                member.heartbeat()
            self._turn(min(HEARTBEAT_S, end_at - now))

    def _turn(self, seconds: float) -> None:
        for number, _ in self._poll.poll(seconds):
            for content in self._by_number[number].connection.take():
                self._by_number[number].take(content)

    def close(self) -> None:
        for member in list(self.members):
            self.remove(member)
        self._poll.close()


def classic_is_done(members: list[ClassicMember]) -> bool:
    """Whether all have synchronised in one generation."""
    return all(each.is_settled for each in members) and len({each.generation for each in members}) == 1


def consumer_is_done(partitions: int) -> Callable[[list[ConsumerMember]], bool]:
    """Whether all are in one epoch and own everything between them, in equal shares."""

    def is_done(members: list[ConsumerMember]) -> bool:
        if not all(each.is_settled for each in members) or len({each.epoch for each in members}) != 1:
            return False
        counts = [each.owned_count for each in members]
        return sum(counts) == partitions and max(counts) - min(counts) <= 1

    return is_done
