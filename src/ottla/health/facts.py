"""The facts that can be observed of a cluster: one class for each kind of sample, with the fields of the sample's body.

A field that the cluster does not report is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, ClassVar, Final

import msgspec

__all__ = [
    "FACTS",
    "Broker",
    "Cluster",
    "Configs",
    "Coverage",
    "Fact",
    "Failed",
    "Gone",
    "Group",
    "GroupMember",
    "Int32",
    "Int64",
    "Lag",
    "LogDir",
    "LoginFailures",
    "Partition",
    "Quorum",
    "Refusals",
    "Replica",
    "ShareMetrics",
    "ShareOffsets",
    "ShareState",
    "ShareWindow",
    "StateBatch",
    "Subtopology",
    "Tasks",
    "Topic",
    "TopicPartitions",
    "Transaction",
    "TransactionPartition",
    "fact_of",
    "read_fact",
]


Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""Kafka's numbers. A body with one that is out of range cannot be read: no table has room for it."""


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was observed at one time."""

    kind: ClassVar[str] = ""


class TopicPartitions(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    partitions: tuple[Int32, ...]
    topic_id: str | None = None


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of a member of a streams group, each written as `subtopology_partition`."""

    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()
    warmup: tuple[str, ...] = ()


class GroupMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    member: str
    epoch: Int32 = 0
    instance: str | None = None
    rack: str | None = None
    client: str = ""
    host: str = ""
    topology_epoch: Int32 | None = None
    process: str | None = None
    state: str | None = None
    subscribed: tuple[str, ...] | None = None
    rebalance_timeout_ms: Int32 | None = None
    assigned: tuple[TopicPartitions, ...] = ()
    target: tuple[TopicPartitions, ...] = ()
    tasks: Tasks | None = None
    target_tasks: Tasks | None = None
    task_offsets: dict[str, Int64] | None = None
    task_end_offsets: dict[str, Int64] | None = None


class Subtopology(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    source: tuple[str, ...] = ()
    repartition_source: tuple[str, ...] = ()
    changelog: tuple[str, ...] = ()


class Group(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A group of any type. Both epochs of a classic group are its generation."""

    kind: ClassVar[str] = "group"
    group: str
    type: str
    state: str
    protocol: str | None = None
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor: str | None = None
    coordinator: Int32 | None = None
    members: tuple[GroupMember, ...] = ()
    topology_epoch: Int32 | None = None
    subtopologies: tuple[Subtopology, ...] | None = None
    topology_description: str | None = None  # available, not_stored, error, not_supported
    failed_topology_epoch: Int32 | None = None
    metadata_hash: Int64 | None = None

    def read_by_tasks(self, member: GroupMember) -> Iterator[tuple[str, int]]:
        """The partitions that the active tasks of a member read: a task reads the partition of its number of each
        source topic of its subtopology."""
        topics = {each.id: each.source + each.repartition_source for each in self.subtopologies or ()}
        for task in member.tasks.active if member.tasks is not None else ():
            subtopology, _, partition = task.rpartition("_")
            for topic in topics.get(subtopology, ()):
                yield topic, int(partition)


class Lag(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The committed offset of a group in a partition, and the partition's end offset."""

    kind: ClassVar[str] = "lag"
    group: str
    topic: str
    partition: Int32
    committed: Int64 | None = None
    log_start: Int64 | None = None
    high_watermark: Int64 | None = None
    last_stable: Int64 | None = None
    committed_ts: Int64 | None = None
    max_ts: Int64 | None = None
    leader_epoch: Int32 | None = None
    topic_id: str | None = None


class ShareOffsets(Fact, frozen=True, kw_only=True, omit_defaults=True):
    kind: ClassVar[str] = "share_offsets"
    group: str
    topic: str
    partition: Int32
    start: Int64 | None = None
    start_ts: Int64 | None = None
    lag: Int64 | None = None
    high_watermark: Int64 | None = None
    leader_epoch: Int32 | None = None
    topic_id: str | None = None


class StateBatch(msgspec.Struct, frozen=True, kw_only=True):
    first: Int64
    last: Int64
    state: Int32  # 0 available, 2 acknowledged, 4 archived
    count: Int32


class ShareState(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A record of `__share_group_state`. The start offset is None if an update does not change it."""

    kind: ClassVar[str] = "share_state"
    group: str
    topic: str | None = None
    topic_id: str | None = None
    partition: Int32
    record: str = "ShareUpdate"
    start: Int64 | None = None
    batches: tuple[StateBatch, ...] = ()
    written_ms: Int64 | None = None
    offset: Int64 | None = None
    delivery_complete: Int64 | None = None


class ShareMetrics(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The counters of an ottla broker for a share group since the broker started."""

    kind: ClassVar[str] = "share_metrics"
    group: str
    node: Int32
    delivered: Int64 = 0
    redelivered: Int64 = 0
    accepted: Int64 = 0
    released: Int64 = 0
    rejected: Int64 = 0
    lock_expiries: Int64 = 0
    lock_ms: Int64 = 0  # how long records were held, over all of `lock_count`
    lock_count: Int64 = 0


class ShareWindow(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The records in flight of a share partition, as its leader sees them."""

    kind: ClassVar[str] = "share_window"
    group: str
    topic: str
    partition: Int32
    start: Int64
    end: Int64
    first_count: Int32 | None = None


class Replica(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A voter or an observer of the quorum. Times are on the leader's clock; -1 if it never fetched from the leader."""

    id: Int32
    role: str = "voter"
    dir: str | None = None
    log_end: Int64 | None = None
    last_fetch_ts: Int64 | None = None
    last_caught_up_ts: Int64 | None = None


class Quorum(Fact, frozen=True, kw_only=True, omit_defaults=True):
    kind: ClassVar[str] = "quorum"
    leader: Int32
    leader_epoch: Int32
    high_watermark: Int64 | None = None
    replicas: tuple[Replica, ...] = ()


class Broker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: Int32
    host: str = ""
    port: Int32 = 0
    rack: str | None = None
    fenced: bool | None = None
    reachable: bool | None = None
    error: str | None = None
    supported: dict[str, tuple[Int32, Int32]] | None = None


class Cluster(Fact, frozen=True, kw_only=True, omit_defaults=True):
    kind: ClassVar[str] = "cluster"
    controller: Int32 | None = None
    brokers: tuple[Broker, ...] = ()
    finalized: dict[str, Int32] | None = None


class Partition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    partition: Int32
    leader: Int32
    epoch: Int32 | None = None
    replicas: tuple[Int32, ...] = ()
    isr: tuple[Int32, ...] = ()
    elr: tuple[Int32, ...] | None = None
    offline: tuple[Int32, ...] = ()
    adding: tuple[Int32, ...] = ()

    def required_isr(self, min_isr: int) -> int:
        """How many replicas must be in sync for writes with acks=all: never more than there are."""
        return min(min_isr, max(1, len(self.replicas)))


class Topic(Fact, frozen=True, kw_only=True, omit_defaults=True):
    kind: ClassVar[str] = "topic"
    topic: str
    id: str | None = None
    internal: bool = False
    partitions: tuple[Partition, ...] = ()


class Configs(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """Configs of a topic, a group or a broker, under Kafka's names."""

    kind: ClassVar[str] = "configs"
    resource: str  # topic, group, broker
    name: str
    values: dict[str, str | None]


class LogDir(Fact, frozen=True, kw_only=True, omit_defaults=True):
    kind: ClassVar[str] = "log_dirs"
    node: Int32
    path: str
    error: str | None = None
    total: Int64 | None = None
    usable: Int64 | None = None
    size: Int64 | None = None


class TransactionPartition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    topic: str
    partition: Int32
    first_offset: Int64 | None = None


class Transaction(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A transaction. Without an id it is hanging: open in a partition, and unknown to all coordinators."""

    kind: ClassVar[str] = "transactions"
    id: str | None = None
    state: str = "Ongoing"
    producer: Int64
    producer_epoch: Int32 | None = None
    started: Int64 | None = None
    timeout: Int32 | None = None
    partitions: tuple[TransactionPartition, ...] = ()


class LoginFailures(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """How often logins of a user from an address failed since this ottla broker started."""

    kind: ClassVar[str] = "login_failures"
    node: Int32
    user: str
    address: str
    failed: Int64


class Refusals(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """How often requests of a principal were refused for want of rights since this ottla broker started."""

    kind: ClassVar[str] = "refusals"
    node: Int32
    principal: str
    api: str
    refused: Int64


class Coverage(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """Whether something is visible in this cluster, and if not, why not."""

    kind: ClassVar[str] = "coverage"
    what: str
    visible: bool
    why: str | None = None


class Failed(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A sample that could not be taken; `unreachable` if no node of the cluster answered."""

    kind: ClassVar[str] = "failed"
    what: str
    error: str
    unreachable: bool = False


class Gone(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A group, topic or transaction that no longer exists."""

    kind: ClassVar[str] = "gone"
    what: str
    name: str


_CLASSES: Final[tuple[type[Fact], ...]] = (
    Group, Lag, ShareOffsets, ShareState, ShareMetrics, ShareWindow, Quorum, Cluster,
    Topic, Configs, LogDir, Transaction, LoginFailures, Refusals, Coverage, Failed, Gone,
)  # fmt: skip
FACTS: Final[dict[str, type[Fact]]] = {each.kind: each for each in _CLASSES}
"""Kind of a sample -> the class of its body."""


def fact_of(kind: str, body: dict[str, Any]) -> Fact:
    """The fact in a sample's body. Unknown fields are ignored. A body of the wrong form raises msgspec.ValidationError,
    and an unknown kind KeyError."""
    return msgspec.convert(body, FACTS[kind], strict=False)


def read_fact(kind: str, body: bytes | str) -> Fact:
    """The same from a body that is JSON."""
    return _reader(kind).decode(body)


@cache
def _reader(kind: str) -> msgspec.json.Decoder[Fact]:
    return msgspec.json.Decoder(FACTS[kind], strict=False)
