"""Clients that are members of no group: one that commits offsets, and an administrator."""

from __future__ import annotations

from typing import Any

from ottla.core.groups.admin import DeleteGroup
from ottla.wire.types.offset_commit import OffsetCommitRequest
from simulation.clients.client import Client, ClientPorts

__all__ = ["Administrator", "LoneCommitter"]


class LoneCommitter(Client):
    """Commits offsets for a group without being its member, as some tools and connectors do."""

    def __init__(self, world: ClientPorts, name: str, group_id: str) -> None:
        super().__init__(world, name)
        self.group_id = group_id

    def begin(self) -> None:
        self.after(self.world.random.randint(100, 8_000), self._commit)

    def _commit(self) -> None:
        names = sorted(self.world.topics.names())
        if names:
            partition = OffsetCommitRequest.OffsetCommitRequestPartition(
                committed_offset=self.world.next_offset(), committed_metadata=""
            )
            topic = OffsetCommitRequest.OffsetCommitRequestTopic(
                name=self.world.random.choice(names), partitions=(partition,)
            )
            request = OffsetCommitRequest(group_id=self.group_id, generation_id_or_member_epoch=-1, topics=(topic,))
            self.ask(request, self.world.random.choice((2, 5, 7, 9)), lambda _: None)
        self.begin()


class Administrator(Client):
    """Sometimes deletes groups; those with members are not deleted."""

    def __init__(self, world: ClientPorts, name: str, groups: tuple[str, ...]) -> None:
        super().__init__(world, name)
        self.groups = groups

    def begin(self) -> None:
        self.after(self.world.random.randint(1_000, 40_000), self._delete)

    def _delete(self) -> None:
        self.ask(DeleteGroup(self.world.random.choice(self.groups)), 0, self._deleted)

    def _deleted(self, answer: Any) -> None:  # noqa: ANN401
        self.begin()
