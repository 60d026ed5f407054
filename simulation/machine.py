"""A virtual disk with the logs of a broker: formatted, recovered at every start, and copied for checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.disk import replace_file
from ottla.log.files import LogStorage
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.recovery import load
from ottla.testing.clock import VirtualClock
from ottla.testing.disk import VirtualDisk
from ottla.testing.network import Network
from ottla.testing.timeline import Timeline
from ottla.wire.properties import META_PROPERTIES_FILE, MetaProperties, write_meta_properties

__all__ = ["COORDINATOR_LOG", "DATA_LOG", "Machine", "MachineWorld"]

_ROOT: Final = "/data"
_SMALL: Final = LogConfig(segment_bytes=16_384, index_interval_bytes=1_024, max_message_bytes=16_000)
DATA_LOG: Final = _SMALL
COORDINATOR_LOG: Final = LogConfig(
    segment_bytes=_SMALL.segment_bytes,
    index_interval_bytes=_SMALL.index_interval_bytes,
    max_message_bytes=_SMALL.max_message_bytes,
    cleanup_policy=frozenset(("compact",)),
)
"""Small segments, so that a short run has several."""


class Machine:
    def __init__(self, clock: VirtualClock, disk: VirtualDisk | None = None) -> None:
        self.clock = clock
        self.disk = disk or VirtualDisk()
        self.crashed: Callable[[VirtualDisk], None] = lambda disk: None
        """Called with the disk after a crash, before the next start."""
        if not self.disk.exists(_ROOT):
            self._format()
        self._start()

    def _format(self) -> None:
        self.disk.make_directory(_ROOT)
        identity = write_meta_properties(MetaProperties("c", 1, bytes(range(16))), self.clock.wall_ms())
        replace_file(self.disk, f"{_ROOT}/{META_PROPERTIES_FILE}", identity)

    def _start(self) -> None:
        self._directory = LogDirectory.open(LogStorage(self.disk), _ROOT)
        self._directory.begin()

    def crash(self, *, power_loss: bool = False) -> None:
        """The process is killed, or the power fails; only the disk remains. Logs are opened again."""
        self.disk.crash_at = None
        self.disk = self.disk.crash(power_loss=power_loss)
        self.crashed(self.disk)
        self._start()

    def copy(self) -> Machine:
        """Another machine with the same files, for checks."""
        return Machine(self.clock, self.disk.crash(power_loss=False))

    def open(self, topic_partition: TopicPartition, config: LogConfig) -> Partition:
        """A partition's log after recovery, committed to its end; created if there is none."""
        path = f"{_ROOT}/{topic_partition}"
        if not self.disk.exists(path):
            create_partition_directory(self.disk, path, bytes(range(16)))
            self._directory.found[topic_partition] = str(topic_partition)
        request = self._directory.request_for(topic_partition, config)
        partition, _ = load(self._directory.storage, request, self.clock.wall_ms())
        partition.update_high_watermark(partition.log_end_offset)
        return partition


class _Node(Protocol):
    machine: Machine

    def next_at_ms(self) -> int | None: ...
    def expire(self) -> None: ...
    def turn(self) -> None: ...


class MachineWorld(Timeline):
    """A world with a network, and one node on one machine."""

    node: _Node
    network: Network

    def next_deadline_ms(self) -> int | None:
        return self.node.next_at_ms()

    def serve(self) -> None:
        self.node.machine.disk.now_ms = self.clock.wall_ms()
        self.node.expire()
        self.node.turn()

    def disk_operations(self) -> int:
        return self.node.machine.disk.operations
