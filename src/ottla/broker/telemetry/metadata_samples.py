"""Numbers about the quorum, the controller and the metadata that a node has read, under Kafka's names.

What one loop cannot tell is left out: how long requests wait in the controller's queue, how idle the quorum's thread
is. A time without any commit or election has no latency.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

from ottla.core.quorum.states import Candidate, Follower, Leader, Prospective, QuorumState, Unattached
from ottla.core.quorum.stored import NOBODY

if TYPE_CHECKING:
    from ottla.broker.config.node_config import NodeConfig
    from ottla.broker.controller.active_controller import ActiveController
    from ottla.broker.controller.metadata_chores import MetadataChores
    from ottla.broker.controller.raft_log import RaftLog
    from ottla.broker.loop.clock import Clock
    from ottla.core.metadata.image import MetadataImage
    from ottla.core.quorum.quorum import Quorum
    from ottla.wire.exposition import Sample

__all__ = ["MetadataPorts", "metadata_samples"]

_RUNNING: Final = 3  # BrokerState


class MetadataPorts(Protocol):
    """What is needed of a node."""

    config: NodeConfig
    clock: Clock
    image: MetadataImage
    raft: RaftLog
    controller: ActiveController
    metadata_chores: MetadataChores
    metadata_error_count: int


def metadata_samples(node: MetadataPorts) -> Iterator[Sample]:
    yield from _raft_samples(node.raft, node.clock.monotonic_ms())
    yield from _loader_samples(node)
    if node.config.is_broker:
        yield "kafka_server_kafkaserver_brokerstate", {}, _RUNNING
        prefix = "kafka_server_broker_metadata_metrics_last_applied_record"
        yield f"{prefix}_offset", {}, node.image.last_offset
        yield f"{prefix}_timestamp", {}, node.raft.counts.committed_timestamp_ms
        for lag_ms in _lag_ms(node):
            yield f"{prefix}_lag_ms", {}, lag_ms
    if node.config.is_controller:
        yield from _controller_samples(node)
        yield from _cluster_samples(node.image)


# --- the quorum -------------------------------------------------------------------------------------------------------


def _raft_samples(raft: RaftLog, now_ms: int) -> Iterator[Sample]:
    prefix, quorum, counts = "kafka_server_raft_metrics", raft.quorum, raft.counts
    voters, state = quorum.control.voters, quorum.epoch_state
    yield f"{prefix}_current_state", {"state": _state_name(quorum)}, 1
    yield f"{prefix}_current_leader", {}, quorum.leader_id
    yield f"{prefix}_current_vote", {}, _vote(quorum, state)
    yield f"{prefix}_current_epoch", {}, quorum.epoch
    yield f"{prefix}_high_watermark", {}, quorum.high_watermark
    yield f"{prefix}_log_end_offset", {}, quorum.log.end_offset
    yield f"{prefix}_log_end_epoch", {}, quorum.log.last_epoch
    yield f"{prefix}_number_unknown_voter_connections", {}, sum(not each.listeners for each in voters.voters)
    yield f"{prefix}_number_of_voters", {}, len(voters)
    if isinstance(state, Leader):
        silent_since_ms = now_ms - quorum.settings.observer_session_ms
        observers = [
            key
            for key, each in state.progress.items()
            if voters.find(*key) is None and each.last_fetch_ms > silent_since_ms
        ]
        yield f"{prefix}_number_of_observers", {}, len(observers)
        yield f"{prefix}_uncommitted_voter_change", {}, int(state.change is not None)
    yield f"{prefix}_append_records_rate", {}, counts.appended.per_second(now_ms)
    yield f"{prefix}_fetch_records_rate", {}, counts.fetched.per_second(now_ms)
    for name, latency in (("commit", counts.commit_latency), ("election", counts.election_latency)):
        known = latency.average_and_max(now_ms)
        if known is not None:
            yield f"{prefix}_{name}_latency_avg", {}, known[0]
            yield f"{prefix}_{name}_latency_max", {}, known[1]


def _state_name(quorum: Quorum) -> str:
    """Kafka's word for the state. It has none for a leader that has resigned."""
    state = quorum.epoch_state
    if isinstance(state, Follower):
        return "follower" if quorum.is_voter else "observer"
    if isinstance(state, Unattached) and state.voted is not None:
        return "voted"
    names = {Leader: "leader", Candidate: "candidate", Prospective: "prospective"}
    return names.get(type(state), "unattached")


def _vote(quorum: Quorum, state: QuorumState) -> int:
    if isinstance(state, Leader | Candidate):
        return quorum.node.voter_id
    voted = state.voted if isinstance(state, Unattached | Prospective | Follower) else None
    return NOBODY if voted is None else voted.node_id


# --- the controller ---------------------------------------------------------------------------------------------------


def _controller_samples(node: MetadataPorts) -> Iterator[Sample]:
    prefix, counts = "kafka_controller_kafkacontroller", node.controller.counts
    image = node.controller.image or node.image
    yield f"{prefix}_activecontrollercount", {}, int(node.controller.is_active)
    yield f"{prefix}_newactivecontrollerscount", {}, node.raft.counts.leaders
    yield f"{prefix}_lastappliedrecordoffset", {}, image.last_offset
    yield f"{prefix}_lastcommittedrecordoffset", {}, node.raft.high_watermark - 1
    yield f"{prefix}_lastappliedrecordtimestamp", {}, node.raft.counts.committed_timestamp_ms
    for lag_ms in _lag_ms(node):
        yield f"{prefix}_lastappliedrecordlagms", {}, lag_ms
    yield f"{prefix}_eventqueueoperationsstartedcount", {}, counts.operations
    yield f"{prefix}_metadataerrorcount", {}, node.metadata_error_count
    stats = "kafka_controller_controllerstats"
    yield f"{stats}_electionfromeligibleleaderreplicas_total", {}, counts.elr_elections
    yield f"{stats}_uncleanleaderelections_total", {}, counts.unclean_elections


def _cluster_samples(image: MetadataImage) -> Iterator[Sample]:
    prefix, brokers = "kafka_controller_kafkacontroller", image.brokers.values()
    partitions = [partition for _, partition in image.partitions()]
    yield f"{prefix}_activebrokercount", {}, sum(each.is_active for each in brokers)
    yield f"{prefix}_fencedbrokercount", {}, sum(each.fenced for each in brokers)
    leaving = sum(each.in_controlled_shutdown and not each.fenced for each in brokers)
    yield f"{prefix}_controlledshutdownbrokercount", {}, leaving
    yield f"{prefix}_globaltopiccount", {}, len(image.topics_by_id)
    yield f"{prefix}_globalpartitioncount", {}, len(partitions)
    yield f"{prefix}_offlinepartitionscount", {}, sum(each.leader < 0 for each in partitions)
    yield f"{prefix}_preferredreplicaimbalancecount", {}, sum(each.leader != each.replicas[0] for each in partitions)


# --- what was read ----------------------------------------------------------------------------------------------------


def _loader_samples(node: MetadataPorts) -> Iterator[Sample]:
    loader, emitter, chores = "kafka_server_metadataloader", "kafka_server_snapshotemitter", node.metadata_chores
    yield f"{loader}_currentmetadataversion", {}, node.image.metadata_version
    yield f"{loader}_currentcontrollerid", {}, node.raft.quorum.leader_id
    yield f"{loader}_handleloadsnapshotcount", {}, node.raft.counts.snapshots_loaded
    age_ms = node.clock.wall_ms() - chores.snapshot_written_at_ms
    yield f"{emitter}_latestsnapshotgeneratedagems", {}, age_ms
    yield f"{emitter}_latestsnapshotgeneratedbytes", {}, chores.snapshot_bytes


def _lag_ms(node: MetadataPorts) -> list[int]:
    """The age of the last record. Where an idle controller writes none, it would not tell how far behind a node is."""
    if node.controller.is_active:
        return [0]
    if not node.config["metadata.max.idle.interval.ms"]:
        return []
    return [max(0, node.clock.wall_ms() - node.raft.counts.committed_timestamp_ms)]
