"""The start of a node's controller: reads the metadata log and the settings, makes the records of a new cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.broker.config.node_config import ListenerConfig, NodeConfig, StartError
from ottla.broker.controller.metadata_load import LoadedMetadata, load_metadata
from ottla.broker.replicas.partition_loader import tell
from ottla.core.metadata.bootstrap import bootstrap_records
from ottla.core.metadata.context import ControllerSettings
from ottla.core.metadata.features import levels_for_format, supported
from ottla.core.metadata.format import BOOTSTRAP_CHECKPOINT, read_bootstrap
from ottla.core.quorum.events import Destination, QuorumSettings
from ottla.core.quorum.stored import NOBODY
from ottla.core.quorum.voters import Listener, Voter, VoterSet
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.disk import Disk, read_all

if TYPE_CHECKING:
    from ottla.wire.keyed import Versioned

__all__ = ["bootstrap_servers", "controller_settings", "first_records", "own_voter", "quorum_settings", "read_metadata"]

log = logging.getLogger(__name__)


def read_metadata(config: NodeConfig, directory: LogDirectory, now_ms: int) -> LoadedMetadata:
    """Read snapshot and log. Raises StartError if a feature is at a level that this node does not know."""
    log_config = LogConfig(
        segment_bytes=config["metadata.log.segment.bytes"],
        segment_ms=config["metadata.log.segment.ms"],
        cleanup_policy=frozenset(),  # what snapshots hold is thrown away, and nothing else
    )
    configured = VoterSet(
        tuple(
            Voter(number, listeners=(Listener(config.controller_listener, *address),))
            for number, address in sorted(config.voters.items())
        )
    )
    loaded = load_metadata(directory, log_config, configured or None, config.node_id, now_ms)
    tell(loaded.report)
    for fault in loaded.replay.faults:
        log.warning("metadata log: %s", fault)
    for name, level in loaded.image.features.items():
        low, high = _supported_features(config)[name]
        if not low <= level <= high:
            raise StartError(
                f"{name} is at level {level}; this node runs with {low} to {high}, "
                f"unless unstable.feature.versions.enable is true"
            )
    return loaded


def _supported_features(config: NodeConfig) -> dict[str, tuple[int, int]]:
    return supported(is_unstable=config["unstable.feature.versions.enable"])


def own_voter(config: NodeConfig, directory: LogDirectory, advertised: Iterable[ListenerConfig]) -> Voter:
    """The node as a voter of the quorum."""
    names = config["controller.listener.names"]
    listeners = tuple(Listener(each.name, each.host, each.port) for each in advertised if each.name in names)
    return Voter(config.node_id, directory.properties.directory_id or bytes(16), listeners)


def quorum_settings(config: NodeConfig) -> QuorumSettings:
    prefix = "controller.quorum"
    return QuorumSettings(
        election_timeout_ms=config[f"{prefix}.election.timeout.ms"],
        fetch_timeout_ms=config[f"{prefix}.fetch.timeout.ms"],
        election_backoff_max_ms=config[f"{prefix}.election.backoff.max.ms"],
        request_timeout_ms=config[f"{prefix}.request.timeout.ms"],
        retry_backoff_ms=config[f"{prefix}.retry.backoff.ms"],
        fetch_max_bytes=config[f"{prefix}.fetch.max.bytes"],
        fetch_snapshot_max_bytes=config[f"{prefix}.fetch.snapshot.max.bytes"],
        auto_join=config[f"{prefix}.auto.join.enable"],
        has_controller_role=config.is_controller,
    )


def bootstrap_servers(config: NodeConfig) -> list[Destination]:
    """Controllers that can be asked for the leader: those of the configuration."""
    servers = [Destination(NOBODY, *address) for address in config.bootstrap_servers]
    return servers or [Destination(NOBODY, *address) for address in config.voters.values()]


def controller_settings(config: NodeConfig, cluster_id: str) -> ControllerSettings:
    return ControllerSettings(
        node_id=config.node_id,
        cluster_id=cluster_id,
        num_partitions=config["num.partitions"],
        default_replication_factor=config["default.replication.factor"],
        delete_topic_enable=config["delete.topic.enable"],
        min_insync_replicas=config["min.insync.replicas"],
        broker_session_timeout_ms=config["broker.session.timeout.ms"],
        rebalances_leaders=config["auto.leader.rebalance.enable"],
        leader_imbalance_check_interval_ms=1000 * config["leader.imbalance.check.interval.seconds"],
        unclean_election_interval_ms=config["unclean.leader.election.interval.ms"],
        token_secret_key=config["delegation.token.secret.key"],
        token_max_lifetime_ms=config["delegation.token.max.lifetime.ms"],
        token_expiry_time_ms=config["delegation.token.expiry.time.ms"],
        token_expiry_check_interval_ms=config["delegation.token.expiry.check.interval.ms"],
        supported_features=_supported_features(config),
    )


def first_records(config: NodeConfig, disk: Disk, directory: LogDirectory) -> list[Versioned]:
    """The first records in the metadata log of a new cluster."""
    path = f"{directory.path}/{BOOTSTRAP_CHECKPOINT}"
    if disk.exists(path):
        return list(read_bootstrap(read_all(disk, path)))
    return bootstrap_records(levels_for_format(is_dynamic_quorum=not config.voters))
