"""Formats log directories as `kafka-storage format` does.

A directory counts as formatted once it has meta.properties, which is written last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.loop.randomness import Randomness
from ottla.core.metadata import features
from ottla.core.metadata.format import METADATA_DIR, format_files
from ottla.core.metadata.uuids import draw
from ottla.core.quorum.voters import Listener, Voter, VoterSet, voters_record
from ottla.log.disk import Disk, replace_file
from ottla.wire import uuid_text
from ottla.wire.keyed import Versioned
from ottla.wire.properties import META_PROPERTIES_FILE, MetaProperties

__all__ = ["format_directories", "is_empty", "is_formatted"]

_OWN_FILES = frozenset((".lock", "lost+found"))


def is_formatted(disk: Disk, path: str) -> bool:
    return disk.exists(f"{path}/{META_PROPERTIES_FILE}")


def is_empty(disk: Disk, path: str) -> bool:
    """Whether a directory holds nothing that formatting could damage."""
    return not disk.exists(path) or all(entry.name in _OWN_FILES for entry in disk.list_directory(path))


def format_directories(
    disk: Disk,
    config: NodeConfig,
    now_ms: int,
    *,
    cluster_id: str | None = None,
    levels: Mapping[str, int] | None = None,
    controller_port: int | None = None,
    voters: VoterSet | None = None,
    credentials: Sequence[Versioned] = (),
    randomness: Randomness = Randomness(),  # noqa: B008 - it has no state
) -> str:
    """Format all directories of a node that are not yet; gives the cluster's id.

    `levels` come from `features.levels_for_format`. `controller_port` is given where the configuration says 0. `voters`
    are the first of the quorum, none if others know them; by default the node is the only one, unless
    controller.quorum.voters has them. `credentials` are records of SCRAM users.
    """
    cluster_id = cluster_id or uuid_text(draw(randomness.uuid))
    is_dynamic = not config.voters
    if not config.is_controller:
        voters = VoterSet()
    levels = features.levels_for_format(is_dynamic_quorum=is_dynamic) if levels is None else levels
    for path in config.all_dirs:
        if is_formatted(disk, path):
            continue
        directory_id = draw(randomness.uuid)
        record = None
        if path == config.metadata_dir and is_dynamic:
            first = _standalone(config, directory_id, controller_port) if voters is None else voters
            directory_id = next(
                (each.directory_id for each in first.voters if each.voter_id == config.node_id), directory_id
            )
            record = voters_record(first) if first else None
        meta = MetaProperties(cluster_id, config.node_id, directory_id)
        files = format_files(meta, levels, now_ms, voters=record, credentials=credentials)
        disk.make_directory(f"{path}/{METADATA_DIR}" if record is not None else path)
        for name, content in files.items():
            replace_file(disk, f"{path}/{name}", content)
    return cluster_id


def _standalone(config: NodeConfig, directory_id: bytes, controller_port: int | None) -> VoterSet:
    """The voters of a quorum of one."""
    listener = config.advertised[config.controller_listener]
    port = controller_port if controller_port is not None and not listener.port else listener.port
    return VoterSet((Voter(config.node_id, directory_id, (Listener(listener.name, listener.host, port),)),))
