"""Questions about log directories, for tests of a node that has two of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ottla.log.disk import Buffer, OsDisk, OsFile
from ottla.wire.types.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.types.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.component.broker.raw_client import RawClient, RunningNode, running_node

ATTEMPTS_MAX = 100_000
BROKER = 4
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


class Held(NamedTuple):
    """A partition in a directory."""

    size_bytes: int
    lag: int
    is_future: bool


@contextmanager
def two_dirs(directory: Path, **settings: object) -> Iterator[RunningNode]:
    """A node with the directories `a` and `b`; `a` has the metadata."""
    settings.setdefault("log_dirs", f"{directory}/a,{directory}/b")
    with running_node(directory / "a", **settings) as running:  # type: ignore[arg-type]
        yield running


def describe(
    client: RawClient, *topics: str, version: int = 5, numbers: tuple[int, ...] = (0,)
) -> dict[str, dict[Any, Held]]:
    """Name of a directory -> topic and partition -> what is held of it."""
    kind = DescribeLogDirsRequest
    asked = tuple(kind.DescribableLogDirTopic(topic, numbers) for topic in topics) or None
    answer = client.ask(kind(asked), version)
    assert answer.error_code == 0
    return {
        Path(result.log_dir).name: {
            (topic.name, each.partition_index): Held(each.partition_size, each.offset_lag, each.is_future_key)
            for topic in result.topics
            for each in topic.partitions
        }
        for result in answer.results
    }


def move(client: RawClient, path: Path | str, topic: str, *numbers: int, version: int = 2) -> list[int]:
    """The codes of the partitions."""
    kind = AlterReplicaLogDirsRequest
    asked = kind.AlterReplicaLogDir(str(path), (kind.AlterReplicaLogDirTopic(topic, numbers or (0,)),))
    answer = client.ask(kind((asked,)), version)
    return [each.error_code for result in answer.results for each in result.partitions]


def place_of(client: RawClient, topic: str, number: int = 0) -> str:
    """The directory that holds a partition for good."""
    found = describe(client, topic, numbers=(number,))
    (place,) = [name for name, held in found.items() for each in held.values() if not each.is_future]
    return place


def arrival(client: RawClient, topic: str, place: str, number: int = 0) -> None:
    """Wait until a partition is in a directory and nowhere else."""
    for _ in range(ATTEMPTS_MAX):
        found = describe(client, topic, numbers=(number,))
        if [name for name, held in found.items() if held] == [place]:
            return
    raise AssertionError(f"{topic} does not arrive in {place}: {found}")


def other(place: str) -> str:
    return "b" if place == "a" else "a"


def limit_rate(client: RawClient, bytes_per_second: int | None) -> None:
    """How fast partitions may be moved; None for as fast as can be."""
    kind = IncrementalAlterConfigsRequest
    change = kind.AlterableConfig(RATE, 1 if bytes_per_second is None else 0, str(bytes_per_second or ""))
    answer = client.ask(kind((kind.AlterConfigsResource(BROKER, "1", (change,)),)), 1)
    assert [each.error_code for each in answer.responses] == [0], answer


class CopyingDisk(OsDisk):
    """Keeps what a process that is killed leaves behind: all directories as they are after each thing that is done."""

    def __init__(self, root: Path, kept: Path) -> None:
        super().__init__(durable=False)
        self._root, self._kept = root, kept
        self.is_watching = False
        self.images: list[Path] = []

    def keep(self) -> None:
        if self.is_watching:
            image = self._kept / str(len(self.images))
            shutil.copytree(self._root, image)
            self.images.append(image)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        file = super().open(path, create=create)
        if not self.is_watching or not any(each in path for each in ("__cluster_metadata", "-future")):
            return file
        watched = CopyingFile(os.dup(file.fileno()))
        watched.owner = self
        file.close()
        return watched

    def rename(self, source: str, target: str) -> None:
        self.keep()  # what was written to files that were open before counts, too
        super().rename(source, target)
        self.keep()

    def make_directory(self, path: str) -> None:
        super().make_directory(path)
        self.keep()

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self.keep()


class CopyingFile(OsFile):
    owner: CopyingDisk

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        super().write(buffers, position)
        self.owner.keep()
