"""The base of all simulated clients: they send requests, wait for responses, crash and come back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeVar

from ottla.testing.network import Network
from ottla.wire.errors import ErrorCode
from ottla.wire.types.offset_commit import OffsetCommitRequest
from simulation.topics import VirtualTopics

__all__ = ["RETRIED", "Client", "ClientPorts", "grouped"]

RETRIED: Final = frozenset(
    (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
)
"""After these errors a client finds the coordinator again and retries."""


K = TypeVar("K", str, bytes)


class ClientPorts(Protocol):
    """The ports of clients to their world."""

    random: random.Random
    network: Network
    is_calm: bool

    @property
    def topics(self) -> VirtualTopics: ...
    def now_ms(self) -> int: ...
    def after(self, delay_ms: int, action: Callable[[], None]) -> None: ...
    def note(self, line: str) -> None: ...
    def hold(self, name: str, condition: bool, detail: str) -> None:
        """Raise a `Violation` of the named invariant unless the condition holds."""
        ...

    def check_belief(self, client: Client) -> None:
        """Check that no other member of a client's group believes to own the same partitions or tasks."""
        ...

    def next_offset(self) -> int:
        """An offset that no client has committed yet."""
        ...


class Client:
    """A simulated client. `life` counts its starts; responses and timers of an earlier life are ignored."""

    request_timeout_ms = 6_000
    backoff_ms = 100
    group_id = ""
    member_id = ""

    def __init__(self, world: ClientPorts, name: str) -> None:
        self.world = world
        self.name = name
        self.is_alive = False
        self.life = 0

    def start(self) -> None:
        self.life += 1
        self.is_alive = True
        self.world.note(f"{self.name} starts")
        self.begin()

    def start_unless_alive(self) -> None:
        if not self.is_alive:
            self.start()

    def begin(self) -> None:
        raise NotImplementedError

    def crash(self) -> None:
        """Crash: the client leaves no group and closes no session."""
        self.life += 1
        self.is_alive = False
        self.world.note(f"{self.name} crashes")
        self.world.network.forget(self.name)
        self.ended()

    def stop(self) -> None:
        """Leave the group, if the protocol has a request for it."""
        self.crash()

    def ended(self) -> None:
        """Forget the state that a process holds in memory."""

    def believes_to_own(self) -> frozenset[Any]:
        """The partitions or tasks that it believes to own alone."""
        return frozenset()

    def has_converged(self) -> bool:
        """Whether the client has what it wants, as far as it knows."""
        return True

    # --- asking and waiting -------------------------------------------------------------------------------------------

    def ask(
        self,
        request: Any,  # noqa: ANN401
        version: int,
        then: Callable[[Any], None],
        timeout_ms: int | None = None,
    ) -> None:
        life = self.life

        def answered(message: Any) -> None:  # noqa: ANN401
            if self.life == life and self.is_alive:
                then(message)

        self.world.network.send(self.name, request, version, answered, timeout_ms or self.request_timeout_ms)

    def commit(
        self, partitions: Iterable[tuple[str, int]], epoch: int, version: int, instance_id: str | None = None
    ) -> None:
        """Commit an offset for each partition, given by topic and number, and wait for nothing."""
        topics: dict[str, list[Any]] = {}
        for topic, partition in partitions:
            entry = OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=self.world.next_offset(), committed_metadata=""
            )
            topics.setdefault(topic, []).append(entry)
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=epoch,
            member_id=self.member_id,
            group_instance_id=instance_id,
            topics=tuple(
                OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=tuple(entries))
                for topic, entries in topics.items()
            ),
        )
        self.ask(request, version, lambda _: None)

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        life = self.life

        def due() -> None:
            if self.life == life and self.is_alive:
                action()

        self.world.after(delay_ms, due)

    def unexpected(self, api: str, code: int) -> None:
        """An error that the protocol does not allow here."""
        self.world.hold("answers", False, f"{self.name} got {ErrorCode(code).name} from {api}")


def grouped(pairs: Iterable[tuple[K, int]]) -> dict[K, list[int]]:
    """Partitions by what they belong to, in order."""
    found: dict[K, list[int]] = {}
    for key, partition in sorted(pairs):
        found.setdefault(key, []).append(partition)
    return found
