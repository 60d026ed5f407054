"""One simulated machine: a disk, a clock that may stand still, and a replica of the metadata log while it is up."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from ottla.core.quorum.events import (
    Actions,
    AppendControl,
    Appended,
    AppendFailed,
    AppendRecords,
    AppendSnapshot,
    BeginSnapshot,
    Destination,
    Event,
    InstallSnapshot,
    QuorumSettings,
    Reply,
    Send,
    SnapshotId,
    SnapshotInstalled,
    Start,
    StateNotStored,
    StateStored,
    StoodStill,
    StoreState,
    Synced,
    Tick,
    TruncateLog,
    Write,
)
from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.stored import StoredState, read_stored
from ottla.core.quorum.voters import BOOTSTRAP_OFFSET, ControlHistory, Listener, Voter, VoterSet, voters_record
from ottla.testing.clock import WALL_START_MS
from ottla.wire.batch import BatchView, ControlRecordType, build_control_batch, read_control_batch, split_batches
from ottla.wire.types.control_records import KRaftVersionRecord
from simulation.quorum.virtual_log import Batch, LogDisk, VirtualLog, batches_of

__all__ = ["LISTENER", "QuorumNode", "World"]

LISTENER = "CONTROLLER"
_GRACE_MS = 1_000


class World(Protocol):
    """What a node needs of its world."""

    random: random.Random

    def now_ms(self) -> int: ...
    def after(self, delay_ms: int, action: Callable[[], None]) -> None: ...
    def note(self, line: str) -> None: ...
    def store_delay_ms(self, node: QuorumNode) -> int: ...
    def sync_delay_ms(self, node: QuorumNode) -> int: ...
    def send(self, node: QuorumNode, message: Send) -> None: ...
    def reply(self, node: QuorumNode, message: Reply) -> None: ...
    def stepped(self, node: QuorumNode, event: Event, actions: Actions) -> None: ...
    def broken(self, node: QuorumNode, error: Exception) -> None: ...
    def went_down(self, node: QuorumNode) -> None: ...


class QuorumNode:
    """`formatted` are the first voters of a dynamic quorum, `configured` those of a static one; a spare has neither."""

    def __init__(
        self,
        world: World,
        node_id: int,
        *,
        formatted: VoterSet | None = None,
        configured: VoterSet | None = None,
        make_quorum: Callable[..., Quorum] = Quorum,
    ) -> None:
        self._world = world
        self.node_id = node_id
        self.directory_id = bytes([node_id]) * 16
        self.port = 9000 + node_id
        self.formatted = formatted
        self._configured = configured
        self._make_quorum = make_quorum
        self.settings = QuorumSettings()
        self.bootstrap: tuple[Destination, ...] = ()
        self.disk = LogDisk()
        self.stored: bytes = b""
        """quorum-state on disk."""
        self.quorum: Quorum | None = None
        self.is_active = False
        """Whether its controller was told that it leads, and not yet that it does not."""
        self.life = 0
        self.wall_offset_ms = WALL_START_MS
        self.is_disk_full = False
        self.holds_syncs = False
        """Whether syncs take for ever, until they are let go."""
        self.after_store: Callable[[], None] | None = None
        """Called once, when quorum-state has been stored and what it says has been sent."""
        self.paused_until_ms = 0
        self.starts_again = False
        """Whether somebody starts it again when its quorum has failed."""
        self._late: list[Event] = []
        self._tick_serial = 0
        self._is_syncing = False
        self._storing: bytes | None = None
        self._draft = b""

    # --- life ---------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return f"n{self.node_id}"

    @property
    def voter(self) -> Voter:
        return Voter(self.node_id, self.directory_id, (Listener(LISTENER, self.name, self.port),))

    @property
    def log(self) -> VirtualLog:
        return self.disk.log

    @property
    def is_up(self) -> bool:
        return self.quorum is not None

    def start(self) -> None:
        """Start with the disk that there is. A start syncs what it has read."""
        self.life += 1
        self.disk.finish_sync(self.disk.begin_sync())
        self._is_syncing, self._storing, self._late = False, None, []
        self.quorum = self._make_quorum(
            self.voter,
            self._read_control(),
            self.log,
            stored=self.stored_state,
            cluster_id="c",
            random=lambda below: self._world.random.randrange(below),
            settings=self.settings,
            bootstrap=self.bootstrap,
        )
        self._world.note(f"{self.name} starts")
        self.step(Start())

    @property
    def stored_state(self) -> StoredState | None:
        return _read_stored(self.stored) if self.stored else None

    def _read_control(self) -> ControlHistory:
        """kraft.version and voters: of formatting, of the newest snapshot, of the log."""
        control = ControlHistory(self._configured)
        latest = self.log.latest_snapshot
        if latest is not None:
            control.replace(_snapshot_control(self.log.snapshots[latest]), latest.end_offset - 1)
        elif self.formatted is not None:
            control.replay(KRaftVersionRecord(k_raft_version=1), BOOTSTRAP_OFFSET)
            control.replay(voters_record(self.formatted), BOOTSTRAP_OFFSET)
        for batch in self.log.batches:
            if latest is None or batch.base_offset >= latest.end_offset:
                for offset, message in _control_records(batch.data):
                    control.replay(message, offset)
        return control

    def crash(self, *, power_loss: bool) -> None:
        """The process is killed, or the machine loses its power."""
        self.quorum = None
        self.is_active = False
        if self._storing is not None and self._world.random.random() < 0.5:
            self.stored = self._storing
        if power_loss:
            self.disk.lose_power(self._world.random)
        self.paused_until_ms = 0
        self._world.went_down(self)
        self._world.note(f"{self.name} {'loses its power' if power_loss else 'is killed'}")

    def empty_disk(self, directory_id: bytes) -> None:
        """A new disk, formatted as a spare's."""
        self.disk, self.stored, self.directory_id = LogDisk(), b"", directory_id
        self.formatted = None

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self, event: Event) -> None:
        quorum, world = self.quorum, self._world
        if quorum is None:
            return
        if world.now_ms() < self.paused_until_ms:
            if not isinstance(event, Tick):
                self._late.append(event)
            return
        try:
            actions = quorum.step(event, world.now_ms(), world.now_ms() + self.wall_offset_ms)
        except (AssertionError, ValueError) as error:
            world.broken(self, error)
            return
        for write in actions.writes:
            self._write(write)
        if actions.leader is not None:
            self.is_active = actions.leader.leader_id == self.node_id
        world.stepped(self, event, actions)
        for message in actions.messages:
            if isinstance(message, Send):
                world.send(self, message)
            else:
                world.reply(self, message)
        self._set_timer(actions.deadline_ms)
        if quorum.has_failed and self.starts_again:
            self._later(0, self.restart)

    def restart(self) -> None:
        self.crash(power_loss=False)
        self.start()

    def pause(self, until_ms: int) -> None:
        """The process stands still; what arrives waits."""
        self.paused_until_ms = until_ms
        life = self.life

        def go_on() -> None:
            if self.life == life and self.is_up:
                late, self._late = self._late, []
                self.step(StoodStill(_GRACE_MS))
                for event in late:
                    self.step(event)
                self.step(Tick())

        self._world.after(until_ms - self._world.now_ms(), go_on)

    def _set_timer(self, deadline_ms: int | None) -> None:
        self._tick_serial += 1
        if deadline_ms is not None:
            self._later(deadline_ms - self._world.now_ms(), self._tick, self._tick_serial)

    def _tick(self, serial: int) -> None:
        if serial == self._tick_serial:
            self.step(Tick())

    def _later(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401
        life = self.life

        def act() -> None:
            if self.life == life and self.is_up:
                action(*arguments)

        self._world.after(max(0, delay_ms), act)

    # --- the disk -----------------------------------------------------------------------------------------------------

    def _write(self, write: Write) -> None:
        note = self._world.note
        if isinstance(write, StoreState):
            self._storing = write.content
            self._later(self._world.store_delay_ms(self), self._stored)
        elif isinstance(write, BeginSnapshot):
            self._draft = b""
        elif isinstance(write, AppendSnapshot):
            self._draft += bytes(write.data)
        elif isinstance(write, InstallSnapshot):
            self._later(self._world.sync_delay_ms(self), self._install, write.snapshot_id)
        elif self.is_disk_full and not isinstance(write, TruncateLog):
            self._later(0, self.step, AppendFailed())
        elif isinstance(write, TruncateLog):
            note(f"{self.name} cuts its log at {write.end_offset}, was {self.log.end_offset}")
            self.disk.do("truncate", write.end_offset)
            self._sync()
        elif isinstance(write, AppendControl | AppendRecords):
            data = write.batch if isinstance(write, AppendControl) else b"".join(write.batches)
            self._append(batches_of(data))

    def _append(self, batches: list[Batch]) -> None:
        self.disk.do("append", batches)
        self._sync()

    def propose(self, batch: bytes) -> None:
        """The active controller appends a batch of its own."""
        if self.is_disk_full:
            self.step(AppendFailed())
            return
        self._append(batches_of(batch))
        self.step(Appended(self.log.end_offset))

    def _stored(self) -> None:
        assert self._storing is not None
        content, self._storing = self._storing, None
        if self.is_disk_full:
            self.step(StateNotStored())
            return
        self.stored = content
        self.step(StateStored())
        after, self.after_store = self.after_store, None
        if after is not None:
            after()

    def _sync(self) -> None:
        if not self._is_syncing and not self.holds_syncs:
            self._is_syncing = True
            self._later(self._world.sync_delay_ms(self), self._synced, self.disk.begin_sync(), self.log.end_offset)

    def _synced(self, count: int, end_offset: int) -> None:
        self._is_syncing = False
        self.disk.finish_sync(count)
        if self.disk.begin_sync():
            self._sync()
        self.step(Synced(end_offset))

    def let_syncs_go(self) -> None:
        self.holds_syncs = False
        if self.is_up:
            self._sync()

    def _install(self, snapshot_id: SnapshotId) -> None:
        self.disk.do("replace", snapshot_id, self._draft)
        self.disk.finish_sync(self.disk.begin_sync())
        self._world.note(f"{self.name} installs the snapshot {snapshot_id.end_offset}@{snapshot_id.epoch}")
        self.step(SnapshotInstalled(snapshot_id, tuple(_snapshot_control(self._draft))))

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def make_snapshot(self, end_offset: int, digest: bytes, padding: int) -> SnapshotId:
        """Write a snapshot of the log below an offset; `digest` stands for the state there."""
        assert self.quorum is not None
        epoch = self.log.epoch_at(end_offset - 1)
        assert epoch is not None
        snapshot_id = SnapshotId(end_offset, epoch)
        version, voters = self.quorum.control.at(end_offset)
        records: list[tuple[ControlRecordType, object]] = []
        if version >= 1:
            records = [
                (ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(k_raft_version=version)),
                (ControlRecordType.KRAFT_VOTERS, voters_record(voters)),
            ]
        head = (
            build_control_batch(records, base_offset=0, timestamp=0, partition_leader_epoch=epoch) if records else b""
        )
        self.disk.do("add_snapshot", snapshot_id, _pack(head, digest, padding))
        self.disk.finish_sync(self.disk.begin_sync())
        self._world.note(f"{self.name} makes the snapshot {end_offset}@{epoch}")
        return snapshot_id

    def drop_log(self, snapshot_id: SnapshotId) -> None:
        self.disk.do("drop_below", snapshot_id)
        self.disk.finish_sync(self.disk.begin_sync())
        self._world.note(f"{self.name} drops its log below {snapshot_id.end_offset}")


_read_stored = lru_cache(maxsize=256)(read_stored)


def _pack(head: bytes, digest: bytes, padding: int) -> bytes:
    return len(head).to_bytes(4, "big") + head + digest + bytes(padding)


def _snapshot_control(data: bytes) -> list[object]:
    size = int.from_bytes(data[:4], "big")
    return [message for _, message in _control_records(data[4 : 4 + size])]


def snapshot_digest(data: bytes) -> bytes:
    size = int.from_bytes(data[:4], "big")
    return data[4 + size : 4 + size + 8]


def _control_records(data: bytes) -> list[tuple[int, object]]:
    found: list[tuple[int, object]] = []
    for batch in split_batches(data):
        if isinstance(batch, BatchView) and batch.is_control:
            found += [(each.offset, each.message) for each in read_control_batch(batch)]
    return found
