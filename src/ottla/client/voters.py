"""Who votes in the quorum of controllers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.client.client import Client
from ottla.client.errors import check
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest, AddRaftVoterRequestListener
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest

__all__ = ["add_raft_voter", "remove_raft_voter"]

_TIMEOUT_MS: Final = 60_000


async def add_raft_voter(
    client: Client, node_id: int, directory_id: bytes, listeners: Iterable[tuple[str, str, int]]
) -> None:
    """Give a controller a vote; `listeners` are name, host and port of each."""
    places = tuple(AddRaftVoterRequestListener(*each) for each in listeners)
    request = AddRaftVoterRequest(client.metadata.cluster_id, _TIMEOUT_MS, node_id, directory_id, places)
    answer = await client.send(request, broker="controller")
    check(None, "AddRaftVoter", answer.error_code, f"node {node_id}", answer.error_message)


async def remove_raft_voter(client: Client, node_id: int, directory_id: bytes) -> None:
    """Take a controller's vote."""
    request = RemoveRaftVoterRequest(client.metadata.cluster_id, node_id, directory_id)
    answer = await client.send(request, broker="controller")
    check(None, "RemoveRaftVoter", answer.error_code, f"node {node_id}", answer.error_message)
