"""What the leader of share partitions needs of its node, so that it runs in the simulation as well."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol

from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.network.request import Request
from ottla.broker.replicas.lookup import Endpoint, Leader, endpoints_of, leader_of
from ottla.broker.share.ports import LeaderPorts
from ottla.core.share.partition.events import DeadLetters
from ottla.core.share.state.kept import Key
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["Edge", "NodeEdge", "Source"]


class Source(Protocol):
    """A partition that this node leads. A `Replica` is one."""

    bytes_out: int

    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def has_log(self) -> bool: ...
    @property
    def log(self) -> Partition: ...


class Edge(Protocol):
    """What a `ShareLeader` needs of its node."""

    @property
    def settings_version(self) -> int:
        """Grows when a setting of any group or of the broker has changed."""

    def monotonic_ms(self) -> int: ...
    def wall_ms(self) -> int: ...

    def setting(self, name: str) -> Any:  # noqa: ANN401
        """A setting of the broker."""

    def group_setting(self, group_id: str, name: str) -> Any: ...  # noqa: ANN401
    def share_version(self) -> int: ...
    def authorize(self, request: Request, operation: Operation, resource_type: ResourceType, name: str) -> bool: ...

    def topic_name(self, topic_id: bytes) -> str | None: ...

    def source(self, topic_name: str, partition: int) -> Source:
        """The partition, if it is led here; otherwise Reject says why it is not."""

    def leader_of(self, topic_name: str, partition: int) -> Leader: ...
    def endpoints(self, request: Request, leader_ids: Iterable[int]) -> Iterable[Endpoint]: ...

    def throttle_ms(self, request: Request) -> int:
        """How long the client must be held up by its quota. Asked before anything is acquired for it."""

    def persist(self, body: object, done: Callable[[Any], None]) -> None:
        """Put a request to the share coordinators; see `Persister.ask`."""

    def dead_letter(self, key: Key, source: Source, letters: DeadLetters, done: Callable[[], None]) -> None:
        """Put records into the dead-letter queue of a group; see `DeadLetterQueues.send`."""

    def park(self, delayed: DelayedOperation) -> bool: ...
    def unpark(self, delayed: DelayedOperation) -> None: ...

    def wake(self, key: Hashable) -> None:
        """Try those again who wait for this, once what is going on is over."""

    def due_at(self, at_ms: int) -> None:
        """Call `ShareLeader.expire` then; an earlier time that was asked for before stands."""


class NodeEdge:
    """The edge to a node. `due_at` is what the timer of `ShareNode` is for."""

    def __init__(
        self,
        node: LeaderPorts,
        persist: Callable[..., None],
        due_at: Callable[[int], None],
        dead_letter: Callable[..., None],
    ) -> None:
        self._node = node
        self._world = node.world
        self.monotonic_ms = node.clock.monotonic_ms
        self.wall_ms = node.clock.wall_ms
        self.authorize = node.authorize
        self.topic_name = node.image.topic_name
        self.persist = persist
        self.due_at = due_at
        self.dead_letter = dead_letter
        self.park = node.purgatory.park
        self.unpark = node.purgatory.remove
        self.wake = node.purgatory.wake

    @property
    def settings_version(self) -> int:
        return self._world.settings_version

    def setting(self, name: str) -> Any:  # noqa: ANN401
        return self._node.settings[name]

    def group_setting(self, group_id: str, name: str) -> Any:  # noqa: ANN401
        return self._world.group_setting(group_id, name)

    def share_version(self) -> int:
        return self._world.feature("share.version")

    def source(self, topic_name: str, partition: int) -> Source:
        if (topic_name, partition) not in self._node.replicas.by_key and self._is_elsewhere(topic_name, partition):
            raise Reject(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self._node.replicas.leader(topic_name, partition)

    def _is_elsewhere(self, topic_name: str, partition: int) -> bool:
        return self._node.image.partition(topic_name, partition) is not None

    def leader_of(self, topic_name: str, partition: int) -> Leader:
        return leader_of(self._node.image, topic_name, partition)

    def endpoints(self, request: Request, leader_ids: Iterable[int]) -> Iterable[Endpoint]:
        return endpoints_of(self._node.image, request, leader_ids)

    def throttle_ms(self, request: Request) -> int:
        return 0 if request.charge is None else request.charge.fetch_excess_ms()
