"""Everything of share groups that a node has, made with the first request that needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ottla.broker.network.connection import Connection
from ottla.broker.network.request import Answer, Request
from ottla.core.metadata.image import Changes

if TYPE_CHECKING:
    from ottla.broker.share.dead_letters import DeadLetterQueues
    from ottla.broker.share.edge import Source
    from ottla.broker.share.leader import ShareLeader
    from ottla.broker.share.led_share_partition import LedSharePartition
    from ottla.broker.share.persister import Persister
    from ottla.broker.share.ports import LeaderPorts, ShareCoordinatorPorts
    from ottla.core.share.partition.events import DeadLetters
    from ottla.core.share.state.kept import Key

__all__ = ["ShareNode"]


class ShareNode:
    def __init__(self, node: LeaderPorts, state: ShareCoordinatorPorts) -> None:
        self._node = node
        self._state = state
        self._leader: ShareLeader | None = None
        self._dead_letters: DeadLetterQueues | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0

    @cached_property
    def persister(self) -> Persister:
        """Reads and writes the state of share partitions."""
        from ottla.broker.share.persister import Persister
        from ottla.broker.share.share_coordinators import ShareCoordinators

        return Persister(self._node, ShareCoordinators(self._state).ask)

    @property
    def leader(self) -> ShareLeader:
        """The share partitions that are led here."""
        if self._leader is None:
            from ottla.broker.share.edge import NodeEdge
            from ottla.broker.share.leader import ShareLeader

            edge = NodeEdge(self._node, self.persister.ask, self._due_at, self._dead_letter)
            self._leader = ShareLeader(edge)
        return self._leader

    def _dead_letter(self, key: Key, source: Source, letters: DeadLetters, done: Callable[[], None]) -> None:
        if self._dead_letters is None:
            from ottla.broker.share.dead_letters import DeadLetterQueues

            self._dead_letters = DeadLetterQueues(self._node)
        self._dead_letters.send(key, source, letters, done)

    def serve(self, answer: Callable[[ShareLeader, Request], Answer], request: Request) -> Answer:
        """Answer a request within its connection's turn, at the end of which what it decides is written."""
        unit_of_work = self._node.unit_of_work
        unit_of_work.is_attended = True
        try:
            return answer(self.leader, request)
        finally:
            unit_of_work.is_attended = False

    def drop(self, group_id: str, topic_ids: Collection[bytes] | None = None) -> None:
        """Forget the share partitions of a group, of some topics or of all: their state was changed elsewhere."""
        if self._leader is not None:
            self._leader.drop(group_id, topic_ids)

    def partitions_of(self, group_id: str) -> list[LedSharePartition]:
        """The share partitions of a group that are in memory, for the inspect listener."""
        return [] if self._leader is None else [led for led in self._leader if led.key.group_id == group_id]

    def samples(self) -> Iterator[tuple[str, dict[str, object], float]]:
        """Numbers for the page of metrics."""
        if self._leader is not None:
            from ottla.broker.share.samples import samples

            yield from samples(self._leader)
        if self._dead_letters is not None:
            yield from self._dead_letters.samples()

    # --- what the node tells ------------------------------------------------------------------------------------------

    def disconnected(self, connection: Connection) -> None:
        if self._leader is not None:
            self._leader.disconnected(connection)

    def follow(self, changes: Changes) -> None:
        """The cluster has changed."""
        if self._leader is not None and (changes.features or changes.partitions or changes.topics_deleted):
            self._leader.follow()

    # --- time ---------------------------------------------------------------------------------------------------------

    def expire(self) -> None:
        """End the locks that are due."""
        if self._leader is not None:
            self._leader.expire()

    def _due_at(self, at_ms: int) -> None:
        if self._timer is not None:
            if self._timer_at_ms <= at_ms:
                return
            self._timer.cancel()
        self._timer_at_ms = at_ms
        wait_ms = max(at_ms - self._node.clock.monotonic_ms(), 0)
        self._timer = self._node.loop.call_later(wait_ms / 1000, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self.expire()
        next_at_ms = None if self._leader is None else self._leader.next_at_ms()
        if next_at_ms is not None:
            self._due_at(max(next_at_ms, self._node.clock.monotonic_ms() + 1))

    def close(self) -> None:
        """The node ends: what connections that close from now on have held is not released."""
        self._leader = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
