"""The connections of a voter to the others: one to each address, for the messages of the quorum alone.

A connection that is refused means that the process at the other end is dead: that is told at once, long before the
other end would be missed, and once for each death.

A request goes in the newest version that both ends know. What an older one cannot say is left out where the receiver
can do without it: directories, endpoints, the high watermark. It cannot ask for a pre-vote, and a request that the
other end does not know at all has no older version; then the answer is UNSUPPORTED_VERSION, as if it came from there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from ottla.broker.peers.peer_connection import Address, NotServed, PeerConnection, PeerError, PeerEvent
from ottla.core.quorum.events import Destination
from ottla.core.quorum.stored import NOBODY
from ottla.wire import versions
from ottla.wire.errors import ErrorCode
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.types.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.wire.types.fetch import FetchRequest, FetchResponse
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.types.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.wire.types.vote import VoteRequest, VoteResponse

__all__ = ["RaftPeers"]

_FETCH_FROM: Final = 13
"""The metadata log is named by its topic's id."""
_REPLICA_STATE_FROM: Final = 15
_PRE_VOTE_FROM: Final = 2
_QUICK_ADD_FROM: Final = 1
_RESPONSES: Final[dict[type, type]] = {
    AddRaftVoterRequest: AddRaftVoterResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
    FetchRequest: FetchResponse,
    FetchSnapshotRequest: FetchSnapshotResponse,
    RemoveRaftVoterRequest: RemoveRaftVoterResponse,
    UpdateRaftVoterRequest: UpdateRaftVoterResponse,
    VoteRequest: VoteResponse,
}

Connect = Callable[[Address, Callable[[PeerEvent], None]], PeerConnection]


class RaftPeers:
    """The connections to other voters."""

    def __init__(self, connect: Connect, gone: Callable[[int], None]) -> None:
        """`gone` gets the id of a node whose process is dead."""
        self._connect = connect
        self._gone = gone
        self._connections: dict[Address, PeerConnection] = {}
        self._node_ids: dict[Address, int] = {}
        self._gone_addresses: set[Address] = set()
        """Where no process was, when a connection was last tried."""

    def send(self, to: Destination, request: Any, done: Callable[[Any], None]) -> None:  # noqa: ANN401
        address = Address(to.host, to.port)
        if to.node_id != NOBODY:
            self._node_ids[address] = to.node_id
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = self._connect(address, partial(self._told, address))
        connection.send(request, _usable(request), lambda answer: done(_response(request, answer)), fit=_in_version)

    def found(self, node_id: int) -> None:
        """A node is known to be there, whatever became of earlier connections to it."""
        for address, connection in self._connections.items():
            if self._node_ids.get(address) == node_id:
                connection.forget_failures()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _told(self, address: Address, event: PeerEvent) -> None:
        if event is not PeerEvent.REFUSED:
            self._gone_addresses.discard(address)
        elif address not in self._gone_addresses and address in self._node_ids:
            self._gone_addresses.add(address)
            self._gone(self._node_ids[address])


def _usable(request: Any) -> tuple[int, int]:  # noqa: ANN401
    """The versions that can say what a request says."""
    known = versions(type(request).__name__)
    lowest = known[0]
    if isinstance(request, FetchRequest):
        lowest = _FETCH_FROM
    elif isinstance(request, VoteRequest) and request.topics[0].partitions[0].pre_vote:
        lowest = _PRE_VOTE_FROM
    elif isinstance(request, AddRaftVoterRequest) and not request.ack_when_committed:
        lowest = _QUICK_ADD_FROM
    return lowest, known[-1]


def _in_version(request: Any, version: int) -> Any:  # noqa: ANN401
    """A Fetch names its replica in another field from version 15 on."""
    if isinstance(request, FetchRequest) and version < _REPLICA_STATE_FROM:
        return replace(request, replica_id=request.replica_state.replica_id, replica_state=FetchRequest.ReplicaState())
    return request


def _response(request: Any, answer: Any) -> Any:  # noqa: ANN401
    """What came of a request: a response, or None if there is none."""
    if isinstance(answer, NotServed) and type(request) in _RESPONSES:
        return _RESPONSES[type(request)](error_code=ErrorCode.UNSUPPORTED_VERSION)
    return None if isinstance(answer, PeerError) else answer
