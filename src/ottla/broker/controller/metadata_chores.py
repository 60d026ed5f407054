"""The periodic chores of the metadata log: heartbeats, no-op records and snapshots."""

from __future__ import annotations

import logging
from collections.abc import Generator
from typing import TYPE_CHECKING, Final, Protocol

from ottla.core.metadata.context import Result
from ottla.core.metadata.snapshot import snapshot_id
from ottla.core.quorum.errors import QuorumError
from ottla.core.quorum.events import SnapshotId
from ottla.core.quorum.voters import voters_record
from ottla.log.errors import StorageError
from ottla.log.steps import finish
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import NoOpRecord

if TYPE_CHECKING:
    from ottla.broker.config.node_config import NodeConfig
    from ottla.broker.config.settings import Settings
    from ottla.broker.controller.active_controller import ActiveController
    from ottla.broker.controller.broker_lifecycle import BrokerLifecycle
    from ottla.broker.controller.raft_log import RaftLog
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.cooperative_tasks import CooperativeTasks
    from ottla.core.metadata.image import MetadataImage

__all__ = ["MetadataChorePorts", "MetadataChores"]

log = logging.getLogger(__name__)

RECORDS_AT_STOP: Final = 10_000
"""With so many records behind the newest snapshot a stop writes one. Else nodes that are started often would take
longer each time: a stop and a start write records for each partition without another replica."""
_AGAIN_MS: Final = 100
"""How soon something is tried again that is due and cannot be done: the controller is busy, or has stood still."""


class MetadataChorePorts(Protocol):
    """What the chores need of the node."""

    clock: Clock
    cooperative_tasks: CooperativeTasks
    config: NodeConfig
    settings: Settings
    image: MetadataImage
    raft: RaftLog
    controller: ActiveController
    broker_lifecycle: BrokerLifecycle

    def fail(self, reason: str) -> None:
        """The node cannot go on."""


class MetadataChores:
    """Chores over the metadata log of one node."""

    def __init__(self, node: MetadataChorePorts) -> None:
        self._node = node
        self._snapshot_at_ms = node.clock.wall_ms()
        self.snapshot_written_at_ms = node.clock.wall_ms()
        """When the last snapshot was complete; the start of the node if it has written none."""
        self.snapshot_bytes = 0
        self._beat_at_ms = node.clock.monotonic_ms()

    def begin(self) -> None:
        """The node serves: from now on heartbeats are due."""
        self._beat_at_ms = self._node.clock.monotonic_ms()

    def heartbeat(self) -> None:
        """Send the broker's heartbeat, and do what is due in the controller."""
        node = self._node
        node.controller.excuse(self._stood_still_ms())
        if node.config.is_broker:
            node.broker_lifecycle.stay()
        node.controller.run_timers()

    def fence(self) -> None:
        """Do what is due in the controller when a session ends.

        If this node stood still, or its own heartbeat is not committed, the others may have been heard of in vain: the
        next heartbeat knows, and excuses them.
        """
        node = self._node
        is_late = node.clock.monotonic_ms() - self._beat_at_ms > 2 * self._beat_period_ms
        if not is_late and not node.broker_lifecycle.is_waiting:
            node.controller.run_timers()

    def fencing_period_ms(self) -> int:
        """Until the next session ends. Those that begin before the next heartbeat end after it."""
        due_in_ms = self._node.controller.due_in_ms()
        if due_in_ms is None:
            return self._beat_period_ms
        return min(due_in_ms if due_in_ms > 0 else _AGAIN_MS, self._beat_period_ms)

    @property
    def _beat_period_ms(self) -> int:
        period_ms: int = self._node.settings["broker.heartbeat.interval.ms"]
        return period_ms

    def _stood_still_ms(self) -> int:
        """How long this node could hear or answer nobody since the last heartbeat: a stalled process or disk."""
        node = self._node
        period_ms = self._beat_period_ms
        now_ms = node.clock.monotonic_ms()
        last_ms, self._beat_at_ms = self._beat_at_ms, now_ms
        if node.broker_lifecycle.is_waiting:
            return now_ms - last_ms  # its last heartbeat is not committed, nor is any other
        late_ms = now_ms - last_ms - period_ms
        return late_ms if late_ms > period_ms else 0

    def append_no_op(self) -> None:
        self._node.controller.append(Result((Versioned(NoOpRecord(), 0),), None))

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> None:
        """Write a snapshot if one is due; then delete old snapshots and the log below them."""
        if self._is_due():
            self._node.cooperative_tasks.add_once("snapshot", self._write())

    def snapshot_at_stop(self) -> None:
        """Write a snapshot in one go if the next start would have to replay many records; nobody is served any more."""
        if self._records_since_snapshot >= RECORDS_AT_STOP and not self._node.image.in_transaction:
            finish(self._write())

    @property
    def _records_since_snapshot(self) -> int:
        newest = self._node.raft.snapshots.newest
        return self._node.image.last_offset + 1 - (0 if newest is None else newest.end_offset)

    def _is_due(self) -> bool:
        node = self._node
        if self._records_since_snapshot <= 0 or node.image.in_transaction:
            return False
        if node.raft.bytes_since_snapshot >= node.settings["metadata.log.max.record.bytes.between.snapshots"]:
            return True
        interval_ms: int = node.settings["metadata.log.max.snapshot.interval.ms"]
        return interval_ms > 0 and node.clock.wall_ms() - self._snapshot_at_ms >= interval_ms

    def _write(self) -> Generator[None, None, None]:
        node = self._node
        raft = node.raft
        self._snapshot_at_ms = node.clock.wall_ms()
        raft.bytes_since_snapshot = 0
        image = node.image.fork()
        identity = snapshot_id(image)
        try:
            raft.quorum.check_snapshot(SnapshotId(identity.end_offset, identity.epoch))
        except QuorumError:
            log.exception("no metadata snapshot is written")
            return
        kraft_version, voters = raft.quorum.control.at(identity.end_offset)
        steps = raft.snapshots.write_steps(
            image,
            now_ms=node.clock.wall_ms(),
            last_timestamp_ms=raft.counts.committed_timestamp_ms,
            kraft_version=kraft_version,
            voters=voters_record(voters) if kraft_version >= 1 else None,
        )
        try:
            identity = yield from steps
            self.snapshot_written_at_ms = node.clock.wall_ms()
            self.snapshot_bytes = raft.snapshots.size_of(identity) or 0
            log.info("metadata snapshot end=%d epoch=%d", identity.end_offset, identity.epoch)
            self._clean()
        except (OSError, StorageError) as error:
            node.fail(f"cannot write the metadata: {error}")

    def _clean(self) -> None:
        """Delete the oldest snapshots, and the log below the first that stays, as far as retention allows."""
        node = self._node
        snapshots = node.raft.snapshots
        while len(snapshots.ids) > 1 and self._is_expendable():
            kept = snapshots.ids[1].end_offset
            node.raft.drop_below(kept)
            snapshots.remove_below(kept)

    def _is_expendable(self) -> bool:
        """Whether the oldest snapshot is too old, or all of it takes too much room."""
        node = self._node
        snapshots = node.raft.snapshots
        size_bytes = node.raft.partition.size_bytes + snapshots.size_bytes
        if size_bytes > node.settings["metadata.max.retention.bytes"] >= 0:
            return True
        age_ms = node.clock.wall_ms() - snapshots.timestamp_ms(snapshots.ids[0])
        limit_ms: int = node.settings["metadata.max.retention.ms"]
        return 0 <= limit_ms < age_ms
