"""What passes between a core and the runtime that drives it.

Theory of operation. A core holds *hard* state, which is what its records say and nothing else, and *soft* state: parked
requests, when a member was last heard of, back-offs. Each module lists its soft fields.

* `handle` and `expire` and `settled` read hard state and give a `Result`. They change no hard state. Soft state that
  needs no record (a parked join) they may change at once.
* The runtime appends the records of a result as one batch, or part of one, and calls `replay` for each; `replay` is the
  only function that changes hard state, and the same one that runs at start-up. `replay_marker` ends a transaction
  whose records came with a producer id.
* Replies and effects of a result leave when its records are committed. A result without records waits until everything
  that it may have read is committed. Timers are set when the records are appended.
* If the append fails, nothing has happened: the replies become errors, and a deadline that brought the records comes
  again, unless the result has `after`. If it is not committed in time, the replies become errors and the records stay
  applied. In both cases, and when it is committed, `settled(after, outcome)` tells a core that asked to be told.
* What an effect brings re-enters through `settled(effect, outcome)`.

The law, tested in every scenario: `hard_state` of the live core equals that of a new core that replays the log, and
that of one that replays the compacted log.

Timers and deadlines are on the clock of `Context.now_ms`, which never goes back; records tell `Context.wall_ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord

__all__ = [
    "COMMITTED",
    "NOTHING",
    "Authorize",
    "BrokerSettings",
    "Context",
    "Core",
    "GroupSettings",
    "Outcome",
    "Producer",
    "Reply",
    "Result",
    "Timer",
    "Topic",
    "Topics",
    "TopicsChange",
    "World",
    "allow_all",
    "answer",
]

Token = Any
"""Whom a reply is for. The core keeps it and gives it back; it never looks inside."""


class Reply(NamedTuple):
    token: Token
    message: Any


class Timer(NamedTuple):
    """At `at_ms`, `expire(key)` is called; None cancels. Setting a key again moves it."""

    key: Hashable
    at_ms: int | None


class Producer(NamedTuple):
    """The transaction that records belong to: they become visible with its marker.

    `guard` is what `Runtime.verification_guard` gave before the transaction's coordinator was asked: up to transaction
    version 1, a marker that came in between makes the append fail; from version 2 on, its epoch does. None stands for:
    asked in this very step, or not at all.
    """

    producer_id: int
    producer_epoch: int
    guard: int | None = None
    transaction_version: int = 0


class Outcome(NamedTuple):
    """How something went that a core asked for. `value` is what it brought."""

    error: ErrorCode = ErrorCode.NONE
    value: Any = None
    message: str | None = None

    @property
    def is_ok(self) -> bool:
        return self.error is ErrorCode.NONE


COMMITTED: Final = Outcome()


class Result(NamedTuple):
    """What a core decides.

    `effects` are work for the edge (create these topics, write these markers, call this plugin): plain values whose
    classes the edge knows. `after` is a value that comes back through `settled` once the records are committed or
    cannot be. An atomic result's records stand in one batch; others may be spread over several.
    """

    records: Sequence[KeyedRecord] = ()
    replies: Sequence[Reply] = ()
    timers: Sequence[Timer] = ()
    effects: Sequence[Any] = ()
    after: Any = None
    producer: Producer | None = None
    is_atomic: bool = True


NOTHING: Final = Result()


def answer(token: Token, message: Any, timers: Sequence[Timer] = ()) -> Result:  # noqa: ANN401
    """One reply, and nothing to write. The most frequent requests come to this, so it goes past the constructors of
    named tuples, which cost more than all else that such a request needs."""
    reply = tuple.__new__(Reply, (token, message))
    return tuple.__new__(Result, ((), (reply,), timers, (), None, None, True))


class Topic(Protocol):
    """What a core must know of a topic."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partition_count(self) -> int: ...
    def racks(self, partition: int) -> frozenset[str]:
        """The racks of the brokers that hold a partition."""
        ...


class Topics(Protocol):
    """The topics of the cluster as this node knows them."""

    @property
    def version(self) -> int:
        """Grows with every change: the offset of the last metadata record."""
        ...

    def by_name(self, name: str) -> Topic | None: ...
    def by_id(self, topic_id: bytes) -> Topic | None: ...
    def names(self) -> Iterable[str]: ...


class TopicsChange(NamedTuple):
    """What has changed since a core was last told."""

    created: Sequence[str] = ()
    grown: Sequence[str] = ()
    deleted: Sequence[tuple[str, bytes]] = ()
    """Name and id."""

    def names(self) -> set[str]:
        return {*self.created, *self.grown, *(name for name, _ in self.deleted)}


class BrokerSettings(Protocol):
    def __getitem__(self, name: str, /) -> Any:  # noqa: ANN401
        """A setting of the broker, such as offsets.retention.minutes, in its own type."""
        ...


class GroupSettings(Protocol):
    def __call__(self, group_id: str, name: str) -> Any:  # noqa: ANN401
        """A setting of a group, such as consumer.session.timeout.ms, in its own type."""
        ...


class World(msgspec.Struct):
    """What surrounds a core and changes without its doing. One for all shards of a kind."""

    settings: BrokerSettings
    group_setting: GroupSettings
    topics: Topics
    feature: Callable[[str], int]
    """The finalized level of a feature; 0 if it is not there."""
    new_uuid: Callable[[], bytes]
    """16 random bytes."""
    draw: Callable[[], float]
    """A random number from 0 to 1, 1 excluded, for jitter."""
    serves_newest: Callable[[], bool] = lambda: True
    """Whether every broker that is registered serves what Kafka 4.4 has beyond 4.3. The coordinator may move to any of
    them, and must leave nothing behind that the next one does not go on with."""
    settings_version: int = 0
    """Grows when settings of the broker or of a group change, or other brokers come."""
    own_assignors: Mapping[str, str] = {}
    """Those in group.consumer.assignors that are not Kafka's: the dotted name -> the name that clients use."""
    inline_target_max: int = 2_000
    """Topics, partitions and members up to which a target is computed within a heartbeat: some 5 ms. Larger ones are
    computed outside the event loop."""


Authorize = Callable[[Any, Any, str], bool]
"""Operation, resource type (both of `ottla.wire.access`), name -> whether somebody may do it."""


def allow_all(operation: Any, resource_type: Any, name: str) -> bool:  # noqa: ANN401
    return True


class Context(msgspec.Struct, frozen=True, gc=False):
    """The circumstances of one call."""

    now_ms: int
    """On the clock of timers."""
    wall_ms: int
    world: World
    token: Token = None
    api_version: int = 0
    client_id: str = ""
    client_host: str = ""
    """As Kafka shows it: a slash before the address."""
    authorize: Authorize = allow_all


class Core(Protocol):
    """A coordinator without its log. A shard has one of its own."""

    def handle(self, request: Any, context: Context) -> Result:  # noqa: ANN401
        """Decide on a request. A raised `Reject` becomes its answer."""
        ...

    def replay(self, record: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        """Take over what a record says. Ids are -1 unless it is part of a transaction."""
        ...

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None: ...

    def loaded(self, context: Context) -> Result:
        """The log has been replayed and this node leads: deadlines of those who are there, work that was not ended."""
        ...

    def unloaded(self) -> Iterable[Token]:
        """Leadership is lost. Gives the requests that are parked here; they are told to look elsewhere."""
        ...

    def expire(self, key: Any, context: Context) -> Result:  # noqa: ANN401
        """A deadline has come."""
        ...

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        """How an effect, or the write of a result with `after`, went."""
        ...

    def topics_changed(self, change: TopicsChange, context: Context) -> Result: ...

    def hard_state(self) -> Mapping[Any, Any]:
        """All hard state as plain values that can be compared and printed. For tests and inspection."""
        ...
