"""A member of a share group. Like a Kafka client it has a share session with each broker, and one request in flight in
each.

It chooses at random what to do with records: accept, release, reject, renew and decide again, acknowledge too late, or
forget. In the calm it accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ottla.core.share.partition.states import AcknowledgeType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.types.share_fetch import ShareFetchRequest
from simulation.clients.client import Client, ClientPorts
from simulation.share.node import BROKERS, ShareConnection

__all__ = ["Call", "ShareMember", "ShareMemberPorts"]

_VERSION: Final = 2
_BAD_SESSION: Final = frozenset(
    (
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    )
)
_BAD_LUCK: Final = frozenset(
    (
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""The errors that a fetched partition may have in this world."""
_FATES: Final = (
    (AcknowledgeType.ACCEPT, 60),
    (AcknowledgeType.RELEASE, 15),
    (AcknowledgeType.REJECT, 5),
    (AcknowledgeType.GAP, 2),
    (AcknowledgeType.RENEW, 8),
    (None, 10),
)
"""None: the record is forgotten until the lock has ended, then accepted too late, or never."""


class Call(NamedTuple):
    """A request to one of the brokers."""

    broker: int
    connection: ShareConnection
    body: Any
    version: int


class _Verdict(NamedTuple):
    partition: int
    first_offset: int
    last_offset: int
    types: tuple[int, ...]

    @property
    def is_renewal(self) -> bool:
        return AcknowledgeType.RENEW in self.types


class ShareMemberPorts(ClientPorts, Protocol):
    """The ports of share members to their world."""

    is_calm: bool

    @property
    def topic_id(self) -> bytes: ...
    @property
    def lock_ms(self) -> int: ...
    def led_by(self, broker: int) -> Sequence[int]:
        """The partitions that a broker leads."""
        ...

    def hang_up(self, broker: int, connection: ShareConnection, delay_ms: int) -> None:
        """Let a broker notice, after a while, that a connection is closed."""
        ...


class ShareMember(Client):
    world: ShareMemberPorts

    def __init__(self, world: ShareMemberPorts, name: str, group_id: str) -> None:
        super().__init__(world, name)
        self.group_id = group_id
        self.lines: Sequence[_BrokerSession] = ()

    def begin(self) -> None:
        self.member_id = f"{self.name}-{self.life}"
        self.lines = [_BrokerSession(self, broker) for broker in range(BROKERS)]
        for line in self.lines:
            line.go_on(self.world.random.randint(0, 1_000))

    def ended(self) -> None:
        """The connections break; brokers may notice late."""
        for line in self.lines:
            line.hang_up()

    def stop(self) -> None:
        for line in self.lines:
            line.is_leaving = True

    def break_connection(self) -> None:
        self.world.random.choice(self.lines).reconnect()


class _BrokerSession:
    """The share session of a member with one of the brokers."""

    def __init__(self, member: ShareMember, broker: int) -> None:
        self._member = member
        self._world = member.world
        self._broker = broker
        self.is_leaving = False
        self._begin_session(self._connected())

    def _connected(self) -> ShareConnection:
        return ShareConnection(self._member.member_id)

    def _begin_session(self, connection: ShareConnection) -> None:
        self._connection = connection
        self._epoch = 0
        self._in_session: set[int] = set()
        self._verdicts: list[_Verdict] = []
        self._serial = object()
        """Responses to another session are ignored."""

    def hang_up(self) -> None:
        chance = self._world.random
        self._world.hang_up(self._broker, self._connection, chance.choice((0, 0, chance.randint(1, 10_000))))

    def reconnect(self) -> None:
        if self._member.is_alive:
            self.hang_up()
            self._begin_session(self._connected())
            self.go_on(self._member.backoff_ms)

    def go_on(self, delay_ms: int) -> None:
        serial = self._serial

        def go() -> None:
            if self._serial is serial:
                self._next()

        self._member.after(delay_ms, go)

    # --- requests -----------------------------------------------------------------------------------------------------

    def _next(self) -> None:
        chance = self._world.random
        if self.is_leaving:
            self._leave()
        elif self._epoch and any(each.is_renewal for each in self._verdicts):
            self._acknowledge(is_renewal=True)
        elif self._epoch and self._verdicts and chance.random() < 0.4:
            self._acknowledge()
        else:
            self._fetch()

    def _fetch(self) -> None:
        chance = self._world.random
        wanted = set(self._world.led_by(self._broker))
        if not wanted and not self._epoch:
            self.go_on(500)
            return
        verdicts = self._take_verdicts() if self._epoch else []
        named = sorted((wanted - self._in_session) | {each.partition for each in verdicts})
        gone = sorted(self._in_session - wanted)
        message = ShareFetchRequest
        partitions = tuple(
            message.FetchPartition(number, 0, _batches(message.AcknowledgementBatch, verdicts, number))
            for number in named
        )
        body = message(
            group_id=self._member.group_id,
            member_id=self._member.member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=chance.choice((0, 500, 500, 2_000)),
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=chance.choice((1, 5, 20, 500)),
            batch_size=chance.choice((1, 5, 100)),
            share_acquire_mode=chance.randint(0, 1),
            topics=(message.FetchTopic(self._world.topic_id, partitions),) if partitions else (),
            forgotten_topics_data=(message.ForgottenTopic(self._world.topic_id, tuple(gone)),) if gone else (),
        )
        self._in_session = (self._in_session | set(named)) - set(gone)
        self._ask(body, self._fetched)

    def _acknowledge(self, *, is_renewal: bool = False) -> None:
        self._ask(self._acknowledgement(self._epoch, is_renewal=is_renewal), self._acknowledged)

    def _leave(self) -> None:
        if not self._epoch:
            self._member.is_alive = False
            return
        self._ask(self._acknowledgement(-1), lambda _: self._end())

    def _end(self) -> None:
        self.hang_up()
        self._begin_session(self._connected())

    def _acknowledgement(self, epoch: int, *, is_renewal: bool = False) -> ShareAcknowledgeRequest:
        message = ShareAcknowledgeRequest
        verdicts = self._take_verdicts(renewals=is_renewal)
        partitions = tuple(
            message.AcknowledgePartition(number, _batches(message.AcknowledgementBatch, verdicts, number))
            for number in sorted({each.partition for each in verdicts})
        )
        topics = (message.AcknowledgeTopic(self._world.topic_id, partitions),) if partitions else ()
        return message(self._member.group_id, self._member.member_id, epoch, is_renewal, topics)

    def _take_verdicts(self, *, renewals: bool = False) -> list[_Verdict]:
        """The acknowledgements of records, ordered by offset. A member that got a record twice acknowledges it once and
        forgets the other."""
        taken: list[_Verdict] = []
        for each in sorted(each for each in self._verdicts if renewals or not each.is_renewal):
            if not taken or taken[-1].partition != each.partition or taken[-1].last_offset < each.first_offset:
                taken.append(each)
        self._verdicts = [] if renewals else [each for each in self._verdicts if each.is_renewal]
        return taken

    def _ask(self, body: Any, then: Callable[[Any], None]) -> None:  # noqa: ANN401
        serial = self._serial

        def answered(message: Any) -> None:  # noqa: ANN401
            if self._serial is not serial:
                return
            if message is None:
                self.reconnect()
            elif message.error_code:
                self._world.hold(
                    "answers", message.error_code in _BAD_SESSION, f"{self._member.name} got {message.error_code}"
                )
                self._begin_session(self._connection)
                self.go_on(self._member.backoff_ms)
            else:
                self._epoch += 1
                then(message)

        self._member.ask(Call(self._broker, self._connection, body, _VERSION), _VERSION, answered)

    # --- answers ------------------------------------------------------------------------------------------------------

    def _acknowledged(self, _: Any) -> None:  # noqa: ANN401
        self.go_on(self._world.random.randint(0, 50))

    def _fetched(self, message: Any) -> None:  # noqa: ANN401
        for topic in message.responses:
            for each in topic.partitions:
                self._world.hold(
                    "answers",
                    each.error_code in _BAD_LUCK,
                    f"{self._member.name} got {each.error_code} for a partition",
                )
                for acquired in each.acquired_records:
                    self._decide(each.partition_index, acquired.first_offset, acquired.last_offset)
        self.go_on(self._world.random.randint(0, 100))

    def _decide(self, partition: int, first: int, last: int) -> None:
        """Decide about records after a while, all together or one by one."""
        chance = self._world.random
        if self._world.is_calm:
            self._say(_Verdict(partition, first, last, (AcknowledgeType.ACCEPT,)), 0)
            return
        if last > first and chance.random() < 0.3:
            middle = chance.randint(first, last - 1)
            self._decide(partition, first, middle)
            self._decide(partition, middle + 1, last)
            return
        kinds, weights = zip(*_FATES, strict=True)
        if last > first and last - first < 20 and chance.random() < 0.4:
            types = tuple(chance.choices(kinds[:4], weights[:4], k=last - first + 1))
        else:
            (kind,) = chance.choices(kinds, weights)
            if kind is None:
                self._forget(partition, first, last)
                return
            types = (kind,)
        verdict = _Verdict(partition, first, last, types)
        delay_ms = chance.choice((0, 0, chance.randint(0, 300), chance.randint(0, self._world.lock_ms)))
        self._say(verdict, delay_ms)
        if verdict.is_renewal:
            self._member.after(delay_ms + chance.randint(100, self._world.lock_ms), lambda: self._decide(*verdict[:3]))

    def _forget(self, partition: int, first: int, last: int) -> None:
        if self._world.random.random() < 0.5:
            late = _Verdict(partition, first, last, (AcknowledgeType.ACCEPT,))
            self._say(late, self._world.lock_ms + self._world.random.randint(1, 3_000))

    def _say(self, verdict: _Verdict, delay_ms: int) -> None:
        serial = self._serial

        def say() -> None:
            if self._serial is serial:
                self._verdicts.append(verdict)

        if delay_ms:
            self._member.after(delay_ms, say)
        else:
            say()


def _batches(batch: Any, verdicts: Iterable[_Verdict], partition: int) -> tuple[Any, ...]:  # noqa: ANN401
    return tuple(
        batch(each.first_offset, each.last_offset, each.types) for each in verdicts if each.partition == partition
    )
