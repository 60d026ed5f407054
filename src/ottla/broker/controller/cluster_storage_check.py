"""The check of the log directories of several nodes: whether their nodes, started together, are a cluster again.

Each directory is checked by itself first (`storage_check`). What only all of them together can tell:

===============================================  =====================================================================
what                                             what a start makes of it
===============================================  =====================================================================
directories of different clusters                their nodes refuse each other
a directory and its copy                         two nodes with one identity
voters here are no majority                      the nodes wait for the others for ever
a voter is behind the others in the metadata     it catches up
a registered broker or a log directory missing   its replicas stay out of sync, or the node does not find them
a replica that may lead and ends too early       if it leads, acknowledged records are lost
a partition without a replica in sync            it has no leader until one of them is back
===============================================  =====================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ottla.broker.controller.metadata_replay import MetadataReplay
from ottla.broker.controller.storage_check import StorageCheck, check_partitions, check_storage
from ottla.core.metadata.image import MetadataImage
from ottla.log.directory import LogDirectory
from ottla.log.disk import Disk
from ottla.log.names import HIGH_WATERMARK_CHECKPOINT, TopicPartition
from ottla.wire import uuid_text

__all__ = ["check_cluster_storage"]


def check_cluster_storage(
    disk: Disk, paths: Sequence[str], *, is_deep: bool = False, progress: Callable[[str], object] = str
) -> tuple[list[StorageCheck], StorageCheck]:
    """Check directories. Gives what was found in each, and what was found in all of them together."""
    checks = [check_storage(disk, path, is_deep=is_deep, progress=progress) for path in paths]
    together = StorageCheck(", ".join(paths))
    directories = [each.directory for each in checks if each.directory is not None]
    _check_identities(together, directories)
    newest = _newest(checks)
    if newest is not None and not together.has_problems:
        for each in checks:
            if each.directory is not None and each.metadata is None and not each.has_problems:
                check_partitions(each, each.directory, newest.image, is_deep=is_deep, progress=progress)
        _check_voters(together, directories, newest)
        _check_metadata(together, checks, newest)
        _check_brokers(together, directories, newest.image)
        _check_replicas(together, checks, newest.image)
    return checks, together


def _newest(checks: Sequence[StorageCheck]) -> MetadataReplay | None:
    """The metadata that an election would choose."""
    found = [each.metadata for each in checks if each.metadata is not None]
    return max(found, key=lambda each: (each.image.last_epoch, each.image.last_offset), default=None)


def _check_identities(together: StorageCheck, directories: Sequence[LogDirectory]) -> None:
    clusters = {each.properties.cluster_id for each in directories}
    if len(clusters) > 1:
        together.problem(f"the directories belong to different clusters: {', '.join(sorted(clusters))}")
    ids = Counter(each.properties.directory_id for each in directories if each.properties.directory_id is not None)
    for directory_id, count in ids.items():
        if count > 1:
            paths = " and ".join(each.path for each in directories if each.properties.directory_id == directory_id)
            together.problem(f"{paths} have the same directory id, {uuid_text(directory_id)}: one is a copy")


def _check_voters(together: StorageCheck, directories: Sequence[LogDirectory], newest: MetadataReplay) -> None:
    voters = newest.control.voters
    here = {each.properties.node_id for each in directories}
    missing = [each for each in voters.ids if each not in here]
    if missing and len(voters) - len(missing) < voters.majority:
        together.problem(
            f"voters {_listed(voters.ids)} form the quorum, and the directories of {_listed(missing)} are not here: "
            f"without a majority there is no controller"
        )
    elif missing:
        together.note(f"not here are the directories of these voters: {_listed(missing)}; the others are a majority")


def _check_metadata(together: StorageCheck, checks: Sequence[StorageCheck], newest: MetadataReplay) -> None:
    end = newest.image.last_offset
    for each in checks:
        if each.metadata is not None and each.directory is not None and each.metadata.image.last_offset < end:
            together.note(
                f"node {each.directory.properties.node_id} has the metadata up to offset "
                f"{each.metadata.image.last_offset}, another one up to {end}; it catches up"
            )


def _check_brokers(together: StorageCheck, directories: Sequence[LogDirectory], image: MetadataImage) -> None:
    given = {(each.properties.node_id, each.properties.directory_id) for each in directories}
    here = {node_id for node_id, _ in given}
    for broker in sorted(image.brokers.values(), key=lambda each: each.broker_id):
        if broker.broker_id not in here:
            together.note(f"broker {broker.broker_id} is registered, and has no directory here")
            continue
        for directory_id in broker.log_dirs:
            if (broker.broker_id, directory_id) not in given:
                together.note(f"broker {broker.broker_id} has another log directory, {uuid_text(directory_id)}")


def _check_replicas(together: StorageCheck, checks: Sequence[StorageCheck], image: MetadataImage) -> None:
    here = {each.directory.properties.node_id for each in checks if each.directory is not None}
    ends = _log_ends(checks)
    committed = _committed(checks)
    for topic, partition in image.partitions():
        key = TopicPartition(topic.name, partition.partition_id)
        may_lead = sorted({*partition.isr, *partition.elr})
        if not here.intersection(may_lead):
            together.note(f"{key} has no replica in sync here; those in sync are on {_listed(may_lead) or 'no broker'}")
        for broker_id in sorted(here.intersection(may_lead)):
            end = ends.get((broker_id, key), 0)
            if end < committed.get(key, 0):
                together.problem(
                    f"{key} on broker {broker_id} ends at offset {end}, and offset {committed[key] - 1} is committed: "
                    f"if that broker leads, acknowledged records are lost"
                )


def _log_ends(checks: Sequence[StorageCheck]) -> dict[tuple[int, TopicPartition], int]:
    return {
        (each.directory.properties.node_id, key): end
        for each in checks
        if each.directory is not None
        for key, end in each.log_ends.items()
    }


def _committed(checks: Sequence[StorageCheck]) -> dict[TopicPartition, int]:
    """The highest offset of each partition that any node knows to be committed."""
    found: dict[TopicPartition, int] = {}
    for each in checks:
        if each.directory is not None:
            for key in each.directory.found:
                found[key] = max(found.get(key, 0), each.directory.offset(HIGH_WATERMARK_CHECKPOINT, key) or 0)
    return found


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
