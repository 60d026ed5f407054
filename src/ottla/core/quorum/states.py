"""The states of a replica of the metadata log.

============  ====================================  ====================================================================
state         sends                                 leaves to
============  ====================================  ====================================================================
UNATTACHED    Fetch to a bootstrap server           PROSPECTIVE after the election timeout (voters); FOLLOWER
PROSPECTIVE   Vote with pre-vote, same epoch        CANDIDATE by majority; else back, with the same epoch and vote
CANDIDATE     Vote in the next epoch                LEADER by majority; PROSPECTIVE after the election timeout
LEADER        BeginQuorumEpoch                      RESIGNED: stopped, no majority fetches, or removed from the voters
FOLLOWER      Fetch, FetchSnapshot to the leader    PROSPECTIVE after the fetch timeout (voters)
RESIGNED      EndQuorumEpoch                        UNATTACHED in the next epoch after the election timeout
============  ====================================  ====================================================================

A start waits for no election timeout: a voter that finds no leader asks for pre-votes when its turn comes, by rank.
Every state is left for UNATTACHED or FOLLOWER when a higher epoch is heard of. An observer, which is no voter, is
UNATTACHED or FOLLOWER. Epoch, leader and vote are stored before anything is said; PROSPECTIVE and RESIGNED store
nothing new.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from ottla.core.quorum.events import SnapshotId
from ottla.core.quorum.replica_progress import ReplicaProgress
from ottla.core.quorum.stored import NOBODY
from ottla.core.quorum.voter_changes import VoterChange
from ottla.core.quorum.voters import Listener, ReplicaKey, Voter


class State(Enum):
    """Where the node stands."""

    UNATTACHED = "knows no leader"
    PROSPECTIVE = "asks whether it would be elected"
    CANDIDATE = "asks for votes"
    LEADER = "leads"
    FOLLOWER = "follows a leader"
    RESIGNED = "has led, and writes no more in this epoch"


class Unattached(msgspec.Struct):
    epoch: int
    election_at_ms: int
    leader_id: int = NOBODY
    """A leader of the epoch whose address is not known."""
    voted: ReplicaKey | None = None


class Votes(msgspec.Struct):
    """The answers of voters in one round, by id."""

    granted: set[int]
    refused: set[int]


class Prospective(msgspec.Struct):
    epoch: int
    election_at_ms: int
    votes: Votes
    leader_id: int = NOBODY
    leader_listeners: tuple[Listener, ...] = ()
    voted: ReplicaKey | None = None


class Candidate(msgspec.Struct):
    epoch: int
    election_at_ms: int
    votes: Votes
    has_won: bool = False
    """It leads as soon as that is stored."""


class Leader(msgspec.Struct):
    epoch: int
    start_offset: int
    """Where the epoch begins in the log."""
    granting: tuple[int, ...]
    progress: ReplicaProgress
    high_watermark: int | None = None
    """None until a record of this epoch is committed."""
    change: VoterChange | None = None
    """The change of voters that waits for its commit."""
    announced: dict[int, Voter] = {}
    """With kraft.version 0: what the voters have said of themselves."""


class Download(msgspec.Struct):
    """A snapshot that a follower copies from its leader."""

    snapshot_id: SnapshotId
    position: int = 0
    is_complete: bool = False


class Follower(msgspec.Struct):
    epoch: int
    leader_id: int
    leader_listeners: tuple[Listener, ...]
    fetch_by_ms: int
    """When to give the leader up, unless a fetch succeeds."""
    voted: ReplicaKey | None = None
    has_fetched: bool = False
    """Whether this leader has answered a fetch: then pre-votes are refused."""
    download: Download | None = None
    update_at_ms: int = 0
    """When to tell the leader of this voter's listeners, or to ask to become a voter, next."""
    has_updated: bool = False


class Resigned(msgspec.Struct):
    epoch: int
    election_at_ms: int
    unacknowledged: set[int]
    """Voters that have not been told."""
    candidates: tuple[ReplicaKey, ...] = ()
    """Who should follow, the most complete log first."""


QuorumState = Unattached | Prospective | Candidate | Leader | Follower | Resigned

KINDS = {
    Unattached: State.UNATTACHED,
    Prospective: State.PROSPECTIVE,
    Candidate: State.CANDIDATE,
    Leader: State.LEADER,
    Follower: State.FOLLOWER,
    Resigned: State.RESIGNED,
}
