"""Moves of partitions between the log directories of a node, while clients write to them (AlterReplicaLogDirs).

A move begins with an empty log in the new directory, under a name that ends in `-future`. What the
partition holds is copied there batch by batch, in a cooperative task, as a follower would copy it; what is written
meanwhile follows. Threads sync the copy as it grows. When next to nothing is missing, the controller is told that the
replica is in the new directory. When that is committed, this happens in one step of the loop, and so between two
appends:

1. the last batches are copied;
2. the old log leaves: its directory's name ends in `-delete` from now on;
3. the copy gets the partition's own name.

Files that keep what recovery has cut (`ottla.log.cuts`) are copied with the first sync of a copy, in the same thread.

No two directories hold the partition under its own name. After a crash before 2 the next start goes on copying. Between
2 and 3 only the copy is there: the next start, of this broker or of Apache Kafka, takes it for the partition.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.broker.loop.offload import Job
from ottla.broker.replicas.replicas import Replica
from ottla.log.cuts import copy_files
from ottla.log.directory import LogDirectory
from ottla.log.errors import LogError, StorageError
from ottla.log.flush import Flush
from ottla.log.names import FUTURE_SUFFIX, TopicPartition, marked_directory_name
from ottla.log.partition import Partition
from ottla.log.read import Isolation
from ottla.log.recovery import LoadRequest, load

if TYPE_CHECKING:
    from ottla.broker.replicas.ports import LogDirMovePorts

__all__ = ["LogDirMove", "LogDirMoves"]

log = logging.getLogger(__name__)

_PIECE_BYTES_MIN: Final = 16 << 10
_PIECE_BYTES_MAX: Final = 1 << 20
_PIECE_SECONDS: Final = 0.001
"""A piece that takes longer is followed by a smaller one, so that the loop is never blocked for long."""
_REST_BYTES_MAX: Final = 256 << 10
"""The last step, which blocks the loop, begins when no more bytes than this are missing."""
_SYNC_BYTES: Final = 16 << 20
"""After so much the copy is synced, so that no sync is so large that requests slow down."""
_TURN_SECONDS: Final = 0.05
"""Then other cooperative tasks have their turn."""
_WORK: Final = "log moves"
_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


class _Stage(Enum):
    WAITING = "there is no copy yet"
    COPYING = "batches are copied"
    SYNCING = "the copy is synced"
    SYNCED = "the copy was synced, and little can be missing"
    ASSIGNING = "the controller is told"


_WAITING_STAGES: Final = (_Stage.SYNCING, _Stage.ASSIGNING)
"""A move in one of these goes on when it is told to."""


class LogDirMove:
    """The move of one partition."""

    __slots__ = ("directory", "is_assigned", "job", "log", "piece_bytes", "replica", "stage", "unsynced_bytes")

    def __init__(self, replica: Replica, directory: LogDirectory, log: Partition | None = None) -> None:
        self.replica = replica
        self.directory = directory
        self.log = log
        """What is copied so far."""
        self.stage = _Stage.WAITING if log is None else _Stage.COPYING
        self.piece_bytes = _PIECE_BYTES_MIN
        self.unsynced_bytes = 0
        self.job: Job | None = None
        """The sync that is under way."""
        self.is_assigned = False
        """The controller knows that the replica is in the new directory."""

    @property
    def copy(self) -> Partition:
        assert self.log is not None
        return self.log

    @property
    def size_bytes(self) -> int:
        return 0 if self.log is None else self.log.size_bytes

    @property
    def lag(self) -> int:
        """How many offsets are missing."""
        return self.replica.log_end_offset - (0 if self.log is None else self.log.log_end_offset)


class LogDirMoves:
    """All moves of a node."""

    def __init__(self, node: LogDirMovePorts) -> None:
        self._node = node
        self.by_key: dict[TopicPartition, LogDirMove] = {}
        self._copied_bytes = 0
        self._window_began = 0.0

    def __len__(self) -> int:
        return len(self.by_key)

    def logs(self, directory: LogDirectory) -> list[Partition]:
        """The copies that lie in a directory."""
        return [move.log for move in self.in_directory(directory) if move.log is not None]

    def in_directory(self, directory: LogDirectory) -> Iterable[LogDirMove]:
        return (move for move in self.by_key.values() if move.directory is directory)

    # --- beginning and ending -----------------------------------------------------------------------------------------

    def move(self, replica: Replica, directory: LogDirectory) -> None:
        """Begin to move a replica to a directory; cancel a move if the replica is there already."""
        known = self.by_key.get(replica.topic_partition)
        if known is not None and known.directory is directory:
            return
        if known is not None:
            self.cancel(known)
        if directory is replica.directory:
            return
        if not replica.has_log:
            replica.directory = directory
            self._node.broker_lifecycle.assign([(replica, directory)], lambda: None)
            return
        self.by_key[replica.topic_partition] = LogDirMove(replica, directory)
        self._go_on()

    def _begin(self, move: LogDirMove) -> None:
        replica, directory, key = move.replica, move.directory, move.replica.topic_partition
        name = marked_directory_name(key, self._node.randomness.uuid().hex(), FUTURE_SUFFIX)
        path = f"{directory.path}/{name}"
        self._node.replicas.make_directory(directory, path, replica.topic_id)
        request = LoadRequest(path, key, replica.log.config, is_clean=True)
        move.log, _ = load(directory.storage, request, self._node.clock.wall_ms())
        move.stage = _Stage.COPYING
        directory.futures[key] = name
        log.info("moving %s from %s to %s", key, replica.directory.path, directory.path)

    def resume(self, replica: Replica, directory: LogDirectory, copy: Partition) -> None:
        """Go on with a move, at the end of what is copied and not past the end of the partition."""
        _, end_offset = replica.log.epochs.end_offset_for(copy.epochs.latest_epoch, replica.log_end_offset)
        end_offset = replica.log_end_offset if end_offset < 0 else min(end_offset, replica.log_end_offset)
        if copy.log_end_offset > end_offset:
            copy.truncate_to(end_offset, self._node.clock.wall_ms())
        self.by_key[replica.topic_partition] = LogDirMove(replica, directory, copy)
        self._go_on()

    def cancel(self, move: LogDirMove) -> None:
        """Leave a partition where it is; what was copied is thrown away."""
        del self.by_key[move.replica.topic_partition]
        if move.job is not None:
            move.job.finish()  # its files must keep their names until then
        if move.log is None or move.directory.is_offline:
            return
        try:
            move.directory.remove_partition(move.log, self._node.randomness.uuid().hex())
        except StorageError as error:
            self._node.replicas.directory_failed(move.directory, error)

    def follow(self) -> None:
        """Partitions that are gone need not arrive."""
        for key, move in list(self.by_key.items()):
            if self._node.replicas.by_key.get(key) is not move.replica:
                self.cancel(move)

    def follow_truncation(self, replica: Replica) -> None:
        """A log has lost its end: so does its copy, before other records come to stand there."""
        move = self.by_key.get(replica.topic_partition)
        if move is None or move.log is None or move.directory.is_offline:
            return
        try:
            move.log.truncate_to(replica.log_end_offset, self._node.clock.wall_ms())
        except StorageError as error:
            self._node.replicas.directory_failed(move.directory, error)

    # --- copying ------------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        if self.by_key and self._node.is_serving:
            self._node.cooperative_tasks.add_once(_WORK, self._turn())

    def start(self) -> None:
        """Go on with what the last run has left; the node serves from now on."""
        self._go_on()

    def _turn(self) -> Generator[None, None, None]:
        """Bring every copy forward for a while."""
        until = self._node.clock.precise_s() + _TURN_SECONDS
        is_busy = True
        while is_busy and self._wait_seconds() <= 0 and self._node.clock.precise_s() < until:
            is_busy = False
            for move in list(self.by_key.values()):
                is_busy = self._step(move) or is_busy
                yield
        if any(move.stage not in _WAITING_STAGES for move in self.by_key.values()):
            self._node.loop.call_later(max(self._wait_seconds(), 0.001), self._go_on)

    def _wait_seconds(self) -> float:
        """How long the rate that is allowed makes copying pause."""
        now = self._node.clock.precise_s()
        if now - self._window_began >= 1:
            self._window_began, self._copied_bytes = now, 0
        return 0 if self._copied_bytes < self._rate() else self._window_began + 1 - now

    def _rate(self) -> float:
        return self._node.settings.throttle(_RATE)

    def _step(self, move: LogDirMove) -> bool:
        """Do the next small thing for a move; False if it waits for something or is over."""
        if move.replica.is_offline or move.directory.is_offline:
            self.by_key.pop(move.replica.topic_partition, None)  # the next start decides
            return False
        if move.stage in _WAITING_STAGES or self.by_key.get(move.replica.topic_partition) is not move:
            return False
        try:
            return self._advance(move)
        except StorageError as error:
            self._node.replicas.directory_failed(_failed(move), error)
        except LogError as error:
            self._stay(move, error)
        return False

    def _stay(self, move: LogDirMove, reason: object) -> None:
        log.warning("%s stays in %s: %s", move.replica.topic_partition, move.replica.directory.path, reason)
        self.cancel(move)

    def _advance(self, move: LogDirMove) -> bool:
        if move.stage is _Stage.SYNCED and not move.is_assigned:
            return self._assign(move)
        if move.stage is _Stage.SYNCED:
            return self._complete(move)
        if move.stage is _Stage.WAITING:
            self._begin(move)
            return True
        if move.lag:
            self._copy_piece(move)
        if not move.lag or move.unsynced_bytes >= _SYNC_BYTES:
            self._sync(move)
        return True

    def _copy_piece(self, move: LogDirMove) -> None:
        began = self._node.clock.precise_s()
        size_bytes = copy_piece(move.replica.log, move.copy, move.piece_bytes, self._node.clock.wall_ms())
        took = self._node.clock.precise_s() - began
        self._copied_bytes += size_bytes
        move.unsynced_bytes += size_bytes
        if took > _PIECE_SECONDS:
            move.piece_bytes = max(move.piece_bytes // 2, _PIECE_BYTES_MIN)
        elif took < _PIECE_SECONDS / 2:
            move.piece_bytes = min(move.piece_bytes * 2, _PIECE_BYTES_MAX)

    def _sync(self, move: LogDirMove) -> None:
        move.stage = _Stage.SYNCING
        move.unsynced_bytes = 0
        flush = move.copy.prepare_flush()
        source, target = move.replica.log.directory.path, move.copy.directory.path
        cuts = {name: offset for name, offset in move.replica.log.cuts.items() if name not in move.copy.cuts}
        failures: list[OSError] = []

        def work() -> None:
            try:
                copy_files(self._node.disk, source, target, cuts)
            except OSError as error:
                failures.append(error)
            flush.run()

        def then() -> None:
            self._synced(move, flush)
            if not failures:
                move.copy.cuts |= cuts
            elif self.by_key.get(move.replica.topic_partition) is move:
                self._stay(move, f"what recovery has cut cannot be copied: {failures[0]}")

        move.job = self._node.offload(work, then)

    def _synced(self, move: LogDirMove, flush: Flush) -> None:
        move.job = None
        is_fine = move.copy.finish_flush(flush, self._node.clock.wall_ms())
        if not is_fine:
            self._node.replicas.directory_failed(move.directory, StorageError(str(flush.error)))
        move.stage = _Stage.SYNCED
        self._go_on()

    # --- arriving -----------------------------------------------------------------------------------------------------

    def is_arriving(self, replica: Replica) -> bool:
        """Whether the controller was told of the new directory of a replica that is still in the old one."""
        move = self.by_key.get(replica.topic_partition)
        return move is not None and (move.is_assigned or move.stage is _Stage.ASSIGNING)

    def _assign(self, move: LogDirMove) -> bool:
        move.stage = _Stage.ASSIGNING
        self._node.broker_lifecycle.assign([(move.replica, move.directory)], lambda: self._assigned(move))
        return False

    def _assigned(self, move: LogDirMove) -> None:
        move.stage, move.is_assigned = _Stage.SYNCED, True
        self._go_on()

    def _complete(self, move: LogDirMove) -> bool:
        """The last step, as the module says; False when the partition has arrived."""
        replica, node = move.replica, self._node
        replica.log.write()
        left_bytes = _REST_BYTES_MAX
        while move.lag and left_bytes > 0:
            left_bytes -= copy_piece(replica.log, move.copy, _PIECE_BYTES_MIN, node.clock.wall_ms())
        if move.lag:
            move.stage = _Stage.COPYING
            return True
        if node.replicas.is_syncing(replica.log) or replica.log.is_truncating:
            return True
        move.copy.stand_in_for(replica.log)
        source = replica.directory
        if node.replicas.waits_for_disk:  # what is acknowledged outlives a power cut
            move.copy.flush()
        del self.by_key[replica.topic_partition]
        dirty_offset = source.cleaner_offsets().get(replica.topic_partition)
        node.replicas.replace_log(replica, move.directory, move.copy)
        if dirty_offset is not None:
            move.directory.cleaner_offsets()[replica.topic_partition] = dirty_offset
        log.info("%s has moved from %s to %s", replica.topic_partition, source.path, move.directory.path)
        return False


def _failed(move: LogDirMove) -> LogDirectory:
    return move.directory if move.directory.is_offline else move.replica.directory


def copy_piece(source: Partition, copy: Partition, max_bytes: int, now_ms: int) -> int:
    """Copy what follows the end of a copy, which must have less, at least one batch; gives how many bytes.

    What the source has removed at its beginning is removed from the copy, too.
    """
    offset = max(copy.log_end_offset, source.log_start_offset)
    if offset == source.log_end_offset:  # all that the copy has not was deleted
        copy.truncate_fully(offset, now_ms)
        return 0
    region = source.read(offset, min(max_bytes, copy.config.segment_bytes), Isolation.LOG_END, min_one_batch=True)
    if not region.length:
        raise LogError(f"no batch lies between offset {offset} and the end at {source.log_end_offset}")
    data = source.bytes_of(region)
    if copy.log_end_offset < source.log_start_offset:
        copy.truncate_fully(region.base_offset, now_ms)
    if region.length > copy.config.segment_bytes:  # a batch from before segments were made so small
        copy.update_config(msgspec.structs.replace(copy.config, segment_bytes=region.length))
    copy.append_as_follower(data, source.epochs.latest_epoch, now_ms)
    copy.increment_log_start_offset(min(source.log_start_offset, copy.log_end_offset))
    copy.update_high_watermark(source.high_watermark)
    return len(data)
