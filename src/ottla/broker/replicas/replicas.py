"""The replicas of this node: their logs, their leadership, and their high watermarks.

A `Replica` is made from the metadata image. Its log is opened, or created, on first use: a topic with a thousand
partitions costs a thousand small objects and no files before the first write. Writing has two halves. A
handler stages batches (`Replica.stage`); at the end of the connection's turn `Replicas.write_staged` writes all of them
and moves high watermarks, and then those who wait for a partition are woken.

A write is acknowledged once the high watermark has passed it, or with acks=1 once it is written. With `ottla.fsync`
both wait for the disk, and the high watermark does where `flush.messages` asks for it: a thread syncs in rounds, and
what is written meanwhile is synced in the next.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from operator import add
from typing import Final

from ottla.broker.config.settings import Settings
from ottla.broker.loop.clock import Clock
from ottla.broker.loop.offload import Job, Offload
from ottla.broker.replicas.fetch_sessions import FetchSession, FetchSessions
from ottla.broker.replicas.replication_throttle import ReplicationThrottle
from ottla.broker.replicas.storage import cordoned
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import TOPIC, Changes, MetadataImage
from ottla.core.metadata.topic_image import NO_LEADER, PartitionImage, TopicImage
from ottla.core.metadata.uuids import UNASSIGNED, is_reserved
from ottla.core.replication.partition_leader import InSyncChange, PartitionLeader
from ottla.core.replication.replica_selection import RACK_AWARE, ReadableReplica, replica_in_rack
from ottla.log.append import NOT_VERIFIED, AppendInfo
from ottla.log.checkpoint import format_partition_metadata
from ottla.log.directory import LogDirectory
from ottla.log.disk import Disk, write_file
from ottla.log.errors import StorageError
from ottla.log.flush import Flush, GroupCommit
from ottla.log.names import PARTITION_METADATA_FILE, TopicPartition
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.producer_state import Verification
from ottla.log.recovery import LoadRequest, load
from ottla.wire.errors import ErrorCode

__all__ = ["Replica", "Replicas", "log_end_key"]

log = logging.getLogger(__name__)


def log_end_key(topic: str, partition: int) -> tuple[str, str, int]:
    """What followers without a session wait for: an append. Clients wait for the high watermark, under the partition's
    own key."""
    return ("log end", topic, partition)


TAKEN_OVER_MS: Final = 5_000
"""For so long after a partition has moved here, producers may still have batches on their way to the former leader."""
_COUNTED: Final = ("messagesin", "bytesin", "bytesout")


class Replica:
    """A replica of a partition on this node."""

    __slots__ = (
        "_log",
        "_owner",
        "bytes_in",
        "bytes_out",
        "directory",
        "is_staged",
        "isr",
        "leader",
        "leader_epoch",
        "leading",
        "messages_in",
        "partition_epoch",
        "replicas",
        "taken_over_at_ms",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self, owner: Replicas, topic_partition: TopicPartition, topic_id: bytes, directory: LogDirectory
    ) -> None:
        self._owner = owner
        self._log: Partition | None = None
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.directory = directory
        self.leader = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.leading: PartitionLeader | None = None
        """What is known of its followers, while this node leads it and there are any."""
        self.is_staged = False
        self.taken_over_at_ms: int | None = None
        """When this node became the leader in place of another one."""
        # What clients have produced and fetched since the start.
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0

    def __repr__(self) -> str:
        return f"Replica({self.topic_partition}, leader {self.leader}, epoch {self.leader_epoch})"

    @property
    def is_leader(self) -> bool:
        return self.leader == self._owner.node_id

    @property
    def is_taken_over(self) -> bool:
        """Whether this node leads since a moment ago, in place of another one."""
        began_at_ms = self.taken_over_at_ms
        return began_at_ms is not None and self._owner.clock.monotonic_ms() - began_at_ms < TAKEN_OVER_MS

    @property
    def is_offline(self) -> bool:
        return self.directory.is_offline

    @property
    def min_insync_replicas(self) -> int:
        wanted: int = self._owner.settings.topic_value(self.topic_partition.topic, "min.insync.replicas")
        return wanted

    @property
    def log(self) -> Partition:
        """The partition's log. Raises StorageError if its directory is offline and was never opened."""
        if self._log is None:
            self._log = self._owner.make_log(self)
        return self._log

    @property
    def has_log(self) -> bool:
        """Whether there is anything on the disk yet."""
        return self._log is not None

    @property
    def log_end_offset(self) -> int:
        return 0 if self._log is None else self._log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return 0 if self._log is None else self._log.high_watermark

    def stage(
        self, records: bytes | bytearray | memoryview, *, verification: Verification = NOT_VERIFIED
    ) -> AppendInfo:
        """Validate a client's batch and assign its offsets; it is written at the end of the turn.

        Raises LogError for what is refused. `records` is changed in place, and kept until it is written.
        """
        now_ms = self._owner.clock.wall_ms()
        info = self.log.stage_as_leader(records, self.leader_epoch, now_ms, verification=verification)
        self._owner.note_staged(self)
        if not info.is_duplicate:
            self.messages_in += info.last_offset - info.base_offset + 1
            self.bytes_in += info.size_bytes
        return info

    def stage_as_coordinator(self, batch: bytearray, *, verification: Verification = NOT_VERIFIED) -> AppendInfo:
        """Assign offsets to a batch that this node has built; it is written at the end of the turn."""
        now_ms = self._owner.clock.wall_ms()
        info = self.log.stage_as_coordinator(batch, self.leader_epoch, now_ms, verification=verification)
        self._owner.note_staged(self)
        return info

    def is_acknowledged(self, end_offset: int, acks: int) -> bool:
        """Whether what ends at `end_offset`, exclusive, may be acknowledged. Raises StorageError if it is lost."""
        if self.directory.is_offline:
            self.directory.storage.check()
        if acks == -1:
            return self.high_watermark >= end_offset
        return (self.log.recovery_point if self._owner.waits_for_disk else self.log_end_offset) >= end_offset

    @property
    def knows_committed(self) -> bool:
        """Whether everything that was committed before this leadership is below the high watermark. A new leader learns
        that with its followers' fetches."""
        return self.leading is None or self.leading.epoch_start_offset <= self.high_watermark

    def adopt(self, partition: Partition) -> None:
        """Use a log that was loaded."""
        self._log = partition

    def take_log(self) -> Partition | None:
        partition, self._log = self._log, None
        return partition


class Replicas:
    """All replicas of a node."""

    def __init__(
        self,
        node_id: int,
        directories: Iterable[LogDirectory],
        settings: Settings,
        image: MetadataImage,
        clock: Clock,
        *,
        fetch_sessions: FetchSessions,
        wake: Callable[[TopicPartition], None],
        wake_followers: Callable[[Hashable], None],
        offload: Offload,
        new_uuid: Callable[[], bytes],
        went_offline: Callable[[LogDirectory], None],
        change_isr: Callable[[Replica, PartitionLeader, InSyncChange], None],
        leader_changed: Callable[[Replica], None],
        removed: Callable[[Replica], None],
    ) -> None:
        self.node_id = node_id
        self.directories = list(directories)
        self.settings = settings
        self._image = image
        self.clock = clock
        self.waits_for_disk: bool = settings["ottla.fsync"]
        self.throttle = ReplicationThrottle("leader", node_id, settings, clock)
        """Of what followers fetch here."""
        self.by_key: dict[tuple[str, int], Replica] = {}
        self._fetch_sessions = fetch_sessions
        self.wake = wake
        self._wake_followers = wake_followers
        self._offload = offload
        self._new_uuid = new_uuid
        self._went_offline = went_offline
        self._change_isr = change_isr
        self._leader_changed = leader_changed
        self._removed = removed
        self._staged: list[Replica] = []
        self._commits = GroupCommit()
        self._to_flush: dict[Partition, Replica] = {}
        self._flushing: dict[Partition, Replica] = {}
        self._round: Job | None = None
        self._after_round: list[Callable[[], None]] = []
        self._after_next_round: list[Callable[[], None]] = []
        self._gone: tuple[int, ...] = (0,) * len(_COUNTED)
        self._loaded: dict[TopicPartition, tuple[LogDirectory, Partition | None]] = {}
        self._counts: Counter[LogDirectory] | None = None
        """How many replicas each directory has, while new ones are placed."""
        self.misplaced: dict[Replica, None] = {}
        """Replicas in another directory than the controller knows of."""
        self._failed: set[LogDirectory] = set()

    def __iter__(self) -> Iterator[Replica]:
        return iter(self.by_key.values())

    def __len__(self) -> int:
        return len(self.by_key)

    # --- finding ------------------------------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> Replica | None:
        return self.by_key.get((topic, partition))

    def leader(self, topic: str, partition: int) -> Replica:
        """The replica, if this node leads it; else Reject with the reason."""
        replica = self.by_key.get((topic, partition))
        if replica is None:
            is_elsewhere = self._image.partition(topic, partition) is not None
            raise Reject(ErrorCode.NOT_LEADER_OR_FOLLOWER if is_elsewhere else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if replica.directory.is_offline:
            raise Reject(ErrorCode.KAFKA_STORAGE_ERROR)
        if replica.leader != self.node_id:
            raise Reject(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return replica

    # --- following the image ------------------------------------------------------------------------------------------

    def apply_steps(self, image: MetadataImage, changes: Changes) -> Generator[None, None, None]:
        """Follow the partitions of an image, a few at a time."""
        self._counts = None
        for deleted in changes.topics_deleted.values():
            for partition_id in deleted.partitions:
                self._remove(deleted.name, partition_id)
                yield
        for topic_id, partition_id in sorted(changes.partitions):
            topic = image.topic_by_id(topic_id)
            if topic is not None:
                self._update(topic, topic.partitions[partition_id])
                yield

    def reconfigure(self, image: MetadataImage, changes: Changes) -> None:
        """Follow the settings of topics."""
        for resource_type, name in changes.configs:
            if resource_type == TOPIC:
                self._reconfigure(image.topic(name))

    def reconfigure_all(self) -> None:
        """Apply broker settings that are defaults of topics."""
        for replica in self.by_key.values():
            if replica.has_log:
                replica.log.update_config(self.settings.log_config(replica.topic_partition.topic))

    def _reconfigure(self, topic: TopicImage | None) -> None:
        for partition_id in topic.partitions if topic is not None else ():
            replica = self.by_key.get((topic.name, partition_id)) if topic is not None else None
            if replica is not None and replica.has_log:
                replica.log.update_config(self.settings.log_config(replica.topic_partition.topic))

    def _update(self, topic: TopicImage, partition: PartitionImage) -> None:
        key = TopicPartition(topic.name, partition.partition_id)
        if self.node_id not in partition.replicas:
            self._remove(*key)
            return
        replica = self.by_key.get(key)
        if replica is not None and replica.topic_id != topic.topic_id:
            self._remove(*key)
            replica = None
        if replica is None:
            replica = self.by_key[key] = self._make(key, topic.topic_id, partition)
        led_before = (replica.leader, replica.leader_epoch)
        replica.replicas, replica.isr = partition.replicas, partition.isr
        replica.leader, replica.leader_epoch = partition.leader, partition.leader_epoch
        replica.partition_epoch = partition.partition_epoch
        is_new = led_before != (replica.leader, replica.leader_epoch)
        self._follow_followers(replica, is_new=is_new)
        if is_new:
            self._leader_changed(replica)
        if replica.is_leader:
            if is_new:
                is_other = led_before[0] not in (NO_LEADER, self.node_id)
                replica.taken_over_at_ms = self.clock.monotonic_ms() if is_other else None
                self._lead(replica)
            elif replica.leading is not None and replica.has_log and not replica.is_offline:
                self._advance(replica, replica.log)
                self.wake(key)
        elif led_before[0] == self.node_id and not replica.is_leader:
            self.wake(key)
        self.look_again(replica)
        if replica.is_offline or partition.directory_of(self.node_id) == replica.directory.properties.directory_id:
            self.misplaced.pop(replica, None)
        else:
            self.misplaced[replica] = None

    def _make(self, key: TopicPartition, topic_id: bytes, partition: PartitionImage) -> Replica:
        loaded = self._loaded.pop(key, None)
        if loaded is not None:
            directory, partition_log = loaded
            replica = Replica(self, key, topic_id, directory)
            if partition_log is not None:
                replica.adopt(partition_log)
            return replica
        return Replica(self, key, topic_id, self._directory_for(partition.directory_of(self.node_id)))

    def _directory_for(self, directory_id: bytes) -> LogDirectory:
        """The directory of a replica: the one the cluster names, or the one with the fewest."""
        if len(self.directories) == 1:
            return self.directories[0]
        for directory in self.directories:
            if directory_id != UNASSIGNED and directory.properties.directory_id == directory_id:
                return directory
        unread = next((each for each in self.directories if each.properties.directory_id is None), None)
        if unread is not None and unread.is_offline and not is_reserved(directory_id):
            return unread  # where it must be
        closed = cordoned(self.settings, self.directories)
        online = [each for each in self.directories if not each.is_offline]
        online = [each for each in online if each not in closed] or online
        if self._counts is None:
            self._counts = Counter(replica.directory for replica in self.by_key.values())
        chosen = min(online or self.directories, key=self._counts.__getitem__)
        self._counts[chosen] += 1
        return chosen

    def _follow_followers(self, replica: Replica, *, is_new: bool) -> None:
        """Follow who the replicas are, in this leader epoch or in a new one."""
        leading = None if is_new else replica.leading
        if not replica.is_leader or len(replica.replicas) == 1:
            replica.leading = None
        elif leading is not None:
            leading.follow(replica.replicas, replica.isr, replica.partition_epoch, self.clock.monotonic_ms())
        else:
            replica.leading = PartitionLeader(
                self.node_id,
                replica.replicas,
                replica.isr,
                leader_epoch=replica.leader_epoch,
                partition_epoch=replica.partition_epoch,
                epoch_start_offset=replica.log_end_offset,
                now_ms=self.clock.monotonic_ms(),
                lag_max_ms=self.settings["replica.lag.time.max.ms"],
                is_eligible=self._is_eligible,
            )

    def _is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether a broker may be in sync: it fetches as it is registered, and is neither fenced nor about to leave."""
        broker = self._image.brokers.get(broker_id)
        return broker is not None and broker.is_active and broker_epoch in (-1, broker.epoch)

    # --- followers ----------------------------------------------------------------------------------------------------

    def fetched(
        self, replica: Replica, follower_id: int, offset: int, *, log_start_offset: int, broker_epoch: int
    ) -> None:
        """A follower has everything below an offset: it may be in sync now, and more may be committed."""
        leading = replica.leading
        if leading is None or follower_id not in leading.followers:
            return
        if leading.followers[follower_id].log_start_offset != log_start_offset:
            self.wake(replica.topic_partition)
        leading.fetched(
            follower_id,
            offset,
            log_start_offset=log_start_offset,
            broker_epoch=broker_epoch,
            end_offset=replica.log_end_offset,
            now_ms=self.clock.monotonic_ms(),
        )
        change = leading.expand(follower_id, replica.high_watermark)
        if change is not None:
            self._change_isr(replica, leading, change)
        self.advance(replica)

    def look_again(self, replica: Replica) -> list[FetchSession]:
        """Something has happened to a partition: the sessions of followers that have it look at it again."""
        topic, partition = replica.topic_partition
        sessions = []
        for session, key in self._fetch_sessions.of_followers_with(topic, replica.topic_id, partition):
            if session.look_again(key) and replica.leading is not None:
                replica.leading.was_caught_up(session.replica_id, session.last_used_ms)
            sessions.append(session)
        return sessions

    def _tell_followers(self, replica: Replica) -> None:
        """There are more records."""
        self._wake_followers(log_end_key(*replica.topic_partition))
        for session in self.look_again(replica):
            self._wake_followers(session.wait_key)

    @property
    def is_rack_aware(self) -> bool:
        """Whether consumers are sent to followers in their rack."""
        return bool(self.settings["replica.selector.class"] == RACK_AWARE)

    def preferred_replica(self, replica: Replica, rack: str, offset: int) -> int:
        """Where a consumer in a rack reads on from an offset; -1 if that is here."""
        leading = replica.leading
        if leading is None or not self.is_rack_aware:
            return -1
        brokers = self._image.brokers
        followers = [
            ReadableReplica(number, brokers[number].rack, each.end_offset, each.last_caught_up_ms)
            for number, each in leading.followers.items()
            if number in leading.isr and self._is_alive(number) and each.log_start_offset <= offset <= each.end_offset
        ]
        leader = ReadableReplica(self.node_id, brokers[self.node_id].rack, replica.log_end_offset, 0)
        chosen = replica_in_rack(rack, leader, followers)
        return -1 if chosen == self.node_id else chosen

    def is_throttled(self, replica: Replica, follower_id: int) -> bool:
        """Whether a follower that is not in sync gets no records of a partition for now."""
        if not self.throttle.pause_ms(replica.topic_partition):
            return False
        return replica.leading is not None and follower_id not in replica.leading.maximal_isr

    def low_watermark(self, replica: Replica) -> int:
        """Where the log of a partition starts on all replicas whose brokers are alive."""
        start_offset = replica.log.log_start_offset if replica.has_log else 0
        leading = replica.leading
        return start_offset if leading is None else leading.low_watermark(start_offset, self._is_alive)

    def _is_alive(self, broker_id: int) -> bool:
        broker = self._image.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def advance(self, replica: Replica) -> None:
        """Commit what the in-sync replicas have."""
        if replica.has_log and not replica.is_offline:
            self._advance(replica, replica.log)

    def shrink_isrs(self) -> None:
        """Ask for followers to be out of sync that are behind for too long."""
        now_ms = self.clock.monotonic_ms()
        for replica in self.by_key.values():
            leading = replica.leading
            if leading is not None:
                change = leading.shrink(replica.log_end_offset, now_ms)
                if change is not None:
                    self._change_isr(replica, leading, change)

    def _lead(self, replica: Replica) -> None:
        if replica.has_log and not replica.is_offline:
            replica.log.become_leader(replica.leader_epoch)
            self._advance(replica, replica.log)

    # --- logs ---------------------------------------------------------------------------------------------------------

    def leave_unread(self, directory: LogDirectory, key: TopicPartition) -> None:
        """The log of a partition lies in a directory that has failed while it was loaded: its replica stays there."""
        replica = self.by_key.get(key)
        if replica is None:
            self._loaded[key] = (directory, None)
        elif not replica.has_log:
            replica.directory = directory

    def adopt(self, directory: LogDirectory, partition: Partition) -> None:
        """Take over a log that was loaded at the start: for its replica, or for the one that the image will make."""
        replica = self.by_key.get(partition.topic_partition)
        if replica is None:
            self._loaded[partition.topic_partition] = (directory, partition)
            return
        # The controller has changed the partition already, as it does after a crash.
        replica.directory = directory
        replica.adopt(partition)
        if replica.is_leader:
            self._lead(replica)
        self.look_again(replica)

    def make_log(self, replica: Replica) -> Partition:
        """The log of a partition that nothing was written to yet."""
        directory, key = replica.directory, replica.topic_partition
        directory.storage.check()
        path = f"{directory.path}/{key}"
        self.make_directory(directory, path, replica.topic_id)
        directory.found[key] = str(key)
        request = LoadRequest(path, key, self.settings.log_config(key.topic), is_clean=True)
        partition, _ = load(directory.storage, request, self.clock.wall_ms())
        if replica.is_leader:
            partition.become_leader(replica.leader_epoch)
        return partition

    def make_directory(self, directory: LogDirectory, path: str, topic_id: bytes) -> None:
        """Make a partition's directory. Its name is synced at once only where data are, too."""
        disk = directory.disk
        try:
            if self.waits_for_disk:
                create_partition_directory(disk, path, topic_id)
                disk.sync_directory(directory.path)
                return
            disk.make_directory(path)
            draft = f"{path}/{PARTITION_METADATA_FILE}.tmp"
            write_file(disk, draft, format_partition_metadata(topic_id), sync=False)
            disk.rename(draft, f"{path}/{PARTITION_METADATA_FILE}")
        except OSError as error:
            raise directory.storage.fail(error, f"creating {path}") from error
        self._sync_names(directory, path)

    def _sync_names(self, directory: LogDirectory, path: str) -> None:
        failures: list[OSError] = []

        def work() -> None:
            try:
                _sync_new(directory.disk, directory.path, path)
            except FileNotFoundError:
                pass  # the topic was deleted meanwhile
            except OSError as error:
                failures.append(error)

        def then() -> None:
            for error in failures:
                self.directory_failed(directory, directory.storage.fail(error, f"syncing {path}"))

        self._offload(work, then)

    def replace_log(self, replica: Replica, directory: LogDirectory, partition: Partition) -> None:
        """Let a replica go on with a copy of its log in another directory; the old one leaves."""
        old, source = replica.log, replica.directory
        self._settle(old)
        self.misplaced.pop(replica, None)
        replica.directory = directory
        replica.adopt(partition)
        # In this order: at no moment do two directories have the partition under its own name.
        self._guarded(source, lambda: source.remove_partition(old, self._new_uuid().hex(), sync=self.waits_for_disk))
        self._guarded(directory, lambda: directory.admit(partition))
        if not directory.is_offline:
            self._advance(replica, partition)
            self.begin_round()
        self.look_again(replica)
        self.wake(replica.topic_partition)

    def _guarded(self, directory: LogDirectory, step: Callable[[], None]) -> None:
        try:
            step()
        except StorageError as error:
            self.directory_failed(directory, error)

    def is_syncing(self, partition: Partition) -> bool:
        """Whether a sync of a log is under way, during which its files must keep their names."""
        return self._round is not None and partition in self._flushing

    def _remove(self, topic: str, partition: int) -> None:
        replica = self.by_key.pop((topic, partition), None)
        if replica is None:
            return
        self._removed(replica)
        self._gone = tuple(map(add, self._gone, _counts(replica)))
        self.misplaced.pop(replica, None)
        partition_log = replica.take_log()
        replica.leader = -1
        if replica.is_staged:
            self._staged.remove(replica)
        if partition_log is not None and not replica.is_offline:
            self._settle(partition_log)
            try:
                partition_log.write()
                replica.directory.remove_partition(partition_log, self._new_uuid().hex())
            except StorageError as error:
                self.directory_failed(replica.directory, error)
        self.look_again(replica)
        self.wake(replica.topic_partition)

    def logs(self, directory: LogDirectory | None = None) -> list[Partition]:
        """The open logs, of one directory or of all."""
        return [
            replica.log
            for replica in self.by_key.values()
            if replica.has_log and (directory is None or replica.directory is directory)
        ]

    # --- counting -----------------------------------------------------------------------------------------------------

    def totals(self) -> dict[str, int]:
        """What clients have produced and fetched, by the names of metrics, with topics that are gone."""
        totals = self._gone
        for replica in self.by_key.values():
            totals = tuple(map(add, totals, _counts(replica)))
        return dict(zip(_COUNTED, totals, strict=True))

    def totals_by_topic(self) -> dict[str, dict[str, int]]:
        topics: dict[str, tuple[int, ...]] = {}
        for replica in self.by_key.values():
            name = replica.topic_partition.topic
            topics[name] = tuple(map(add, topics.get(name, (0,) * len(_COUNTED)), _counts(replica)))
        return {name: dict(zip(_COUNTED, totals, strict=True)) for name, totals in topics.items()}

    # --- writing ------------------------------------------------------------------------------------------------------

    def note_staged(self, replica: Replica) -> None:
        if not replica.is_staged:
            replica.is_staged = True
            self._staged.append(replica)

    @property
    def has_staged(self) -> bool:
        """Whether `write_staged` has something to do."""
        return bool(self._staged)

    def write_staged(self) -> None:
        """Write what was staged since the last time. Failures show in `Replica.is_acknowledged`."""
        if not self._staged:
            return
        staged, self._staged = self._staged, []
        for replica in staged:
            replica.is_staged = False
            try:
                replica.log.write()
                if len(replica.replicas) > 1:
                    self._tell_followers(replica)
                self._advance(replica, replica.log)
            except StorageError as error:
                self.directory_failed(replica.directory, error)
        self.begin_round()

    def _advance(self, replica: Replica, partition: Partition) -> None:
        """Commit what is written, after a sync where one is required."""
        if self._must_sync(partition):
            self.flush_soon(replica, partition)
        else:
            self._commit(replica, partition, partition.log_end_offset)

    def _must_sync(self, partition: Partition) -> bool:
        unsynced = partition.log_end_offset - partition.recovery_point
        return unsynced > 0 and (self.waits_for_disk or unsynced >= partition.config.flush_messages)

    def _commit(self, replica: Replica, partition: Partition, end_offset: int) -> None:
        leading = replica.leading
        if leading is not None:
            minimum, now_ms = replica.min_insync_replicas, self.clock.monotonic_ms()
            end_offset = leading.high_watermark(partition.high_watermark, end_offset, minimum, now_ms)
        elif replica.isr != (self.node_id,):
            return
        if partition.update_high_watermark(end_offset):
            self.look_again(replica)
            self.wake(replica.topic_partition)

    # --- syncing ------------------------------------------------------------------------------------------------------

    def flush_soon(self, replica: Replica, partition: Partition) -> None:
        """Let the next round sync a log; `begin_round` starts it."""
        self._commits.add(partition)
        self._to_flush[partition] = replica

    def sync(self, replicas: Iterable[Replica], then: Callable[[], None]) -> None:
        """Go on when the logs of replicas are synced, or have failed."""
        for replica in replicas:
            self.flush_soon(replica, replica.log)
        self._after_next_round.append(then)
        self.begin_round()

    def begin_round(self) -> None:
        """Sync what waits for it, in a thread, unless a round is under way."""
        if (self._to_flush or self._after_next_round) and self._round is None:
            self._flushing, self._to_flush = self._to_flush, {}
            self._after_round, self._after_next_round = self._after_next_round, []
            flushes = self._commits.begin()
            self._round = self._offload(lambda: _run_all(flushes), self._finish_round)

    def _finish_round(self) -> None:
        self._round = None
        synced = set(self._commits.finish())
        failed: dict[LogDirectory, None] = {}
        for partition, replica in self._flushing.items():
            if partition not in synced:
                failed[replica.directory] = None
            elif replica.has_log:
                self._commit(replica, partition, max(partition.recovery_point, partition.high_watermark))
                self.wake(replica.topic_partition)  # writes with acks=1 wait for the sync alone
        self._flushing = {}
        for directory in failed:
            self.directory_failed(directory, StorageError(f"a sync failed: {directory.storage.failure}"))
        after, self._after_round = self._after_round, []
        for then in after:
            then()
        self.begin_round()

    def _settle(self, partition: Partition) -> None:
        """Wait until no sync of a log is in progress: its files are about to be renamed."""
        if partition in self._flushing and self._round is not None:
            self._round.finish()
        if self._to_flush.pop(partition, None) is not None:
            self._commits.remove(partition)

    def directory_failed(self, directory: LogDirectory, error: StorageError) -> None:
        """A log directory is offline: fail the requests that wait for its partitions, and tell the controller."""
        self._failed.add(directory)
        log.error("log directory %s is offline: %s", directory.path, error)
        for replica in self.by_key.values():
            if replica.directory is directory:
                self.look_again(replica)
                self.wake(replica.topic_partition)
        self._went_offline(directory)

    def note_failure(self, directory: LogDirectory, error: StorageError) -> None:
        """The same, if nobody has said so yet: a reader does not, or a producer whose batch begins a new segment."""
        if directory not in self._failed:
            self.directory_failed(directory, error)


def _counts(replica: Replica) -> tuple[int, ...]:
    return replica.messages_in, replica.bytes_in, replica.bytes_out


def _run_all(flushes: Iterable[Flush]) -> None:
    for flush in flushes:
        flush.run()


def _sync_new(disk: Disk, parent: str, path: str) -> None:
    """Let the directory of a new partition outlive a power cut."""
    file = disk.open(f"{path}/{PARTITION_METADATA_FILE}")
    try:
        file.sync()
    finally:
        file.close()
    disk.sync_directory(path)
    disk.sync_directory(parent)
