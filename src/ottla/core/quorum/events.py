"""What goes into a quorum (events) and what comes out of it (actions).

Whoever drives a `Quorum` does the writes of a step in their order before the next step, reports each as the writes ask
for, and sends the messages of a step after its writes were begun: a message that speaks of something on disk is given
out only when the disk has been reported to have it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ottla.wire.reject import Reject


class SnapshotId(NamedTuple):
    """A snapshot of the log below `end_offset`; `epoch` is that of the last record in it."""

    end_offset: int
    epoch: int


class EpochEnd(NamedTuple):
    """Where an epoch ends in a log."""

    epoch: int
    end_offset: int


class Destination(NamedTuple):
    """To whom a request goes. The id is NOBODY for a bootstrap server, of which only the address is known."""

    node_id: int
    host: str
    port: int


class ReplicatedLog(Protocol):
    """The log on this node's disk, for reading. Each call costs the same however long the log is."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; that of the snapshot if the log is empty behind one; 0 if there is neither."""

    @property
    def latest_snapshot(self) -> SnapshotId | None: ...

    @property
    def earliest_snapshot(self) -> SnapshotId | None: ...

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """The end of the largest epoch that is not above `epoch`; the log's start if there is none."""

    def read(self, offset: int, max_bytes: int) -> bytes | memoryview:
        """Batches from an offset on: as many as fit, and at least one if there is one."""

    def is_batch_boundary(self, offset: int) -> bool:
        """Whether a batch begins at an offset of the log, or the log ends there."""

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """The bytes of a snapshot; None if there is no such snapshot."""

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes | memoryview: ...


class QuorumSettings(msgspec.Struct, frozen=True):
    """The `controller.quorum.*` settings, and the limits that Kafka fixes."""

    election_timeout_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    election_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    retry_backoff_max_ms: int = 320
    """The pause after a failure is twice the one before, up to this."""
    bootstrap_backoff_ms: int = 100
    """The pause between two bootstrap servers that know no leader."""
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20
    auto_join: bool = False
    has_controller_role: bool = True
    observer_session_ms: int = 300_000
    voter_fetched_within_ms: int = 3_600_000
    """A new voter must have fetched within this time."""
    rank_ms: int = 30
    """A voter that knows of no leader waits this long times its rank before it asks for pre-votes."""

    @property
    def check_quorum_ms(self) -> int:
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_ms(self) -> int:
        return self.fetch_timeout_ms // 2


# --- events


class Start(msgspec.Struct, frozen=True):
    """The log is recovered and read; the node may take part."""


class StoodStill(msgspec.Struct, frozen=True):
    """The process did not run for a while: the others have `grace_ms` from now on to be heard of."""

    grace_ms: int


class StateStored(msgspec.Struct, frozen=True):
    """The state of the last StoreState is on disk."""


class StateNotStored(msgspec.Struct, frozen=True):
    """It is not, and the old one may be. The node says nothing more until it is started again."""


class Appended(msgspec.Struct, frozen=True):
    """The leader has appended records of its own; the log ends at `end_offset`, exclusive."""

    end_offset: int


class Synced(msgspec.Struct, frozen=True):
    """The log up to `end_offset`, exclusive, is as safe as it is going to be."""

    end_offset: int


class AppendFailed(msgspec.Struct, frozen=True):
    """The log cannot be written; what of it is on disk is not known. The node says nothing more in this life."""


class SnapshotInstalled(msgspec.Struct, frozen=True):
    """A downloaded snapshot is on disk and has replaced the log. `control` has its KRaftVersion and voters."""

    snapshot_id: SnapshotId
    control: tuple[Any, ...] = ()


class Tick(msgspec.Struct, frozen=True):
    """The deadline of the last step has passed."""


class Received(msgspec.Struct, frozen=True):
    """A request of a peer or a client. Its answer goes to `token`."""

    request: Any
    token: Any
    api_version: int
    listener: str = ""


class Answered(msgspec.Struct, frozen=True):
    """The response to a request that was sent."""

    request_id: int
    response: Any


class NotAnswered(msgspec.Struct, frozen=True):
    """A request that was sent will not be answered: the connection is closed, or was not made."""

    request_id: int


class PeerGone(msgspec.Struct, frozen=True):
    """The process of a peer is dead: its connection was closed, and a new one was refused."""

    node_id: int


class UpgradeKRaftVersion(msgspec.Struct, frozen=True):
    """UpdateFeatures asks for a level of kraft.version, or whether it can be had. The reply is None or a Reject."""

    level: int
    token: Any
    validate_only: bool = False


class Stop(msgspec.Struct, frozen=True):
    """The node goes down in order; a leader tells its followers."""


Event = (
    Start
    | StateStored
    | StateNotStored
    | Appended
    | Synced
    | AppendFailed
    | SnapshotInstalled
    | Tick
    | Received
    | Answered
    | NotAnswered
    | PeerGone
    | StoodStill
    | UpgradeKRaftVersion
    | Stop
)


# --- actions


class StoreState(msgspec.Struct, frozen=True):
    """Replace quorum-state by this content, sync it, and report StateStored or StateNotStored."""

    content: bytes


class AppendControl(msgspec.Struct, frozen=True):
    """Append this control batch of the leader, and report Synced or AppendFailed."""

    batch: bytes
    end_offset: int


class AppendRecords(msgspec.Struct, frozen=True):
    """Append these batches of the leader to the follower's log, and report Synced or AppendFailed."""

    batches: tuple[memoryview, ...]
    end_offset: int


class TruncateLog(msgspec.Struct, frozen=True):
    """Cut the log, so that it ends at `end_offset`, exclusive."""

    end_offset: int


class BeginSnapshot(msgspec.Struct, frozen=True):
    """Open a new, empty download of a snapshot; an older one can be thrown away."""

    snapshot_id: SnapshotId


class AppendSnapshot(msgspec.Struct, frozen=True):
    """Append bytes to the download."""

    snapshot_id: SnapshotId
    data: bytes | memoryview


class InstallSnapshot(msgspec.Struct, frozen=True):
    """The download is complete: sync it, let it replace the whole log, and report SnapshotInstalled or AppendFailed."""

    snapshot_id: SnapshotId


Write = StoreState | AppendControl | AppendRecords | TruncateLog | BeginSnapshot | AppendSnapshot | InstallSnapshot


class Send(msgspec.Struct, frozen=True):
    """Send a request, in the newest version that both ends know, and report Answered or NotAnswered with its id.

    To what no version known there can say, the answer is UNSUPPORTED_VERSION.
    """

    request_id: int
    to: Destination
    request: Any


class Reply(msgspec.Struct, frozen=True):
    """The answer to a Received: a response, or a Reject, which the API's handler makes a response of."""

    token: Any
    response: Any | Reject | None


class LeaderChanged(msgspec.Struct, frozen=True):
    """Another leader is known, or none is (NOBODY), or another epoch has begun."""

    leader_id: int
    epoch: int


class Actions(msgspec.Struct, frozen=True):
    """What a step asks for. `high_watermark` is given when it has risen, `deadline_ms` is when to Tick."""

    writes: tuple[Write, ...] = ()
    messages: tuple[Send | Reply, ...] = ()
    high_watermark: int | None = None
    leader: LeaderChanged | None = None
    deadline_ms: int | None = None


NOTHING: Final = Actions()
