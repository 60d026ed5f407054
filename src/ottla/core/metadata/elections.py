"""What becomes of partitions when brokers come and go: leaders, in-sync replicas, and eligible leader replicas.

Theory of operation (KIP-966). A partition's leader comes from its ISR. A replica that leaves the ISR while it falls
below min.insync.replicas still holds everything that is committed: it goes to the ELR, and when the ISR is empty a
leader may come from there, alone in the new ISR. A broker that stopped uncleanly may have lost what it had not
flushed, so it leaves the ELR, too. If nobody is left, the last known leader may be elected when it returns: the best
there is, marked as recovering. With unclean elections enabled any replica that lives may lead.

==========================  ======================================================================
what happens                what each affected partition gets
==========================  ======================================================================
a broker is fenced or       it leaves the ISR; below min ISR it enters the ELR; another leader, or none
shuts down in order
a broker comes back having  it leaves ISR and ELR; without ELR feature: as if fenced
stopped uncleanly
a broker is unfenced        partitions without a leader elect again
==========================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

import msgspec

from ottla.core.metadata import features
from ottla.core.metadata.context import ControllerState
from ottla.core.metadata.image import BROKER, CLUSTER_DEFAULT, TOPIC, MetadataImage
from ottla.core.metadata.topic_image import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    PartitionImage,
    TopicImage,
)
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import PartitionChangeRecord

NOBODY = -1
_NO_RECOVERY_CHANGE = -1


class Election(Enum):
    """How far an election may go."""

    ONLINE = "a leader that has lost nothing, the present one first"
    PREFERRED = "the same, but the first replica before the present leader"
    UNCLEAN = "whoever lives, if nobody else is left"


class Terms(msgspec.Struct, frozen=True):
    """What a partition's election depends on beside the partition."""

    metadata_version: int
    elr_enabled: bool
    min_isr: int
    may_lead: Callable[[int], bool]
    election: Election = Election.ONLINE
    stopped_uncleanly: int = NOBODY


class _Outcome(msgspec.Struct):
    """The partition as it is to become, while it is worked out."""

    isr: tuple[int, ...]
    elr: tuple[int, ...]
    leader: int = NO_LEADER_CHANGE
    is_unclean: bool = False


def change_partition(
    topic_id: bytes, partition: PartitionImage, target_isr: tuple[int, ...], terms: Terms
) -> Versioned | None:
    """The record that gives a partition another ISR and the leader that follows from it; None if nothing changes."""
    outcome = _Outcome(target_isr, _target_elr(partition, target_isr, terms))
    _elect(partition, outcome, terms)
    if outcome.is_unclean or not terms.elr_enabled:
        outcome.elr = ()
    change = _record(topic_id, partition, outcome, terms)
    if change == PartitionChangeRecord(partition_id=partition.partition_id, topic_id=topic_id):
        return None
    return Versioned(change, features.record_version("PartitionChangeRecord", terms.metadata_version))


def broker_leaves(state: ControllerState, broker_id: int) -> list[Versioned]:
    """Changes when a broker is fenced or shuts down in order."""
    affected = _in_isr(state.image, broker_id)
    return _changes(state, affected, removed=broker_id)


def broker_stopped(state: ControllerState, broker_id: int, *, is_clean: bool) -> list[Versioned]:
    """Changes when a broker registers anew, so that its former process is known to have ended."""
    if is_clean or not state.image.elr_enabled:
        return broker_leaves(state, broker_id)
    affected = [*_in_isr(state.image, broker_id), *_in_elr(state.image, broker_id)]
    return _changes(state, affected, stopped_uncleanly=broker_id)


def broker_unregistered(state: ControllerState, broker_id: int) -> list[Versioned]:
    """Changes when a broker is forgotten for good."""
    affected = [*_in_isr(state.image, broker_id), *_in_elr(state.image, broker_id)]
    return _changes(state, affected, removed=broker_id)


def broker_unfenced(state: ControllerState, broker_id: int) -> list[Versioned]:
    """Changes when a broker may lead again."""
    affected = [(topic, p) for topic, p in state.image.partitions() if p.leader == NO_LEADER]
    return _changes(state, affected, added=broker_id)


def directory_failed(state: ControllerState, broker_id: int, directory: bytes) -> list[Versioned]:
    """Changes when a broker has lost one of its log directories."""
    affected = [(t, p) for t, p in state.image.partitions() if p.directory_of(broker_id) == directory]
    return _changes(state, affected, removed=broker_id)


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    return any(partition.leader == broker_id for _, partition in image.partitions())


def topic_value(state: ControllerState, topic_name: str, key: str) -> str:
    """A setting of a topic as it is in force on this node."""
    image = state.image
    return state.rules.topic_value(
        key,
        image.configs(TOPIC, topic_name),
        image.configs(BROKER, str(state.settings.node_id)),
        image.configs(BROKER, CLUSTER_DEFAULT),
    )


Affected = Iterable[tuple[TopicImage, PartitionImage]]


def _in_isr(image: MetadataImage, broker_id: int) -> list[tuple[TopicImage, PartitionImage]]:
    return [(topic, partition) for topic, partition in image.partitions() if broker_id in partition.isr]


def _in_elr(image: MetadataImage, broker_id: int) -> list[tuple[TopicImage, PartitionImage]]:
    return [(topic, partition) for topic, partition in image.partitions() if broker_id in partition.elr]


def _changes(
    state: ControllerState,
    affected: Affected,
    *,
    removed: int = NOBODY,
    added: int = NOBODY,
    stopped_uncleanly: int = NOBODY,
) -> list[Versioned]:
    leaving = (removed, stopped_uncleanly)
    records = []
    terms_by_topic: dict[str, tuple[int, Election]] = {}
    for topic, partition in affected:
        if topic.name not in terms_by_topic:
            terms_by_topic[topic.name] = _terms_of_topic(state, topic)
        min_isr, election = terms_by_topic[topic.name]
        terms = _terms(
            state,
            min_isr,
            election,
            _leaders(state.image, partition, leaving, added),
            stopped_uncleanly=stopped_uncleanly,
        )
        target_isr = tuple(replica for replica in partition.isr if replica not in leaving)
        record = change_partition(topic.topic_id, partition, target_isr, terms)
        if record is not None:
            records.append(record)
    return records


def terms_for(
    state: ControllerState, topic: TopicImage, partition: PartitionImage, election: Election | None = None
) -> Terms:
    """What an election of this partition depends on when no broker comes or goes; as its topic has it, or as asked."""
    min_isr, usual = _terms_of_topic(state, topic)
    return _terms(state, min_isr, election or usual, _leaders(state.image, partition, (), NOBODY))


def _terms(
    state: ControllerState,
    min_isr: int,
    election: Election,
    may_lead: Callable[[int], bool],
    stopped_uncleanly: int = NOBODY,
) -> Terms:
    return Terms(
        metadata_version=state.image.metadata_version,
        elr_enabled=state.image.elr_enabled,
        min_isr=min_isr,
        may_lead=may_lead,
        election=election,
        stopped_uncleanly=stopped_uncleanly,
    )


def _terms_of_topic(state: ControllerState, topic: TopicImage) -> tuple[int, Election]:
    min_isr = int(topic_value(state, topic.name, "min.insync.replicas"))
    replication_factor = len(next(iter(topic.partitions.values())).replicas)
    is_unclean = topic_value(state, topic.name, "unclean.leader.election.enable") == "true"
    return min(min_isr, replication_factor), Election.UNCLEAN if is_unclean else Election.ONLINE


def _leaders(
    image: MetadataImage, partition: PartitionImage, leaving: tuple[int, ...], added: int
) -> Callable[[int], bool]:
    """Who may lead: active brokers and the one being unfenced, not those that leave, with the replica's disk online."""

    def may_lead(broker_id: int) -> bool:
        broker = image.brokers.get(broker_id)
        if broker is None or broker_id in leaving or not (broker_id == added or broker.is_active):
            return False
        return broker_id in partition.replicas and broker.has_online_dir(partition.directory_of(broker_id))

    return may_lead


def _target_elr(partition: PartitionImage, target_isr: tuple[int, ...], terms: Terms) -> tuple[int, ...]:
    if not terms.elr_enabled:
        return partition.elr
    if len(target_isr) >= terms.min_isr:
        return ()
    eligible = {*partition.elr, *partition.isr} - {*target_isr, terms.stopped_uncleanly}
    return tuple(sorted(eligible))


def _elect(partition: PartitionImage, outcome: _Outcome, terms: Terms) -> None:
    leader, is_unclean = _choose(partition, outcome, terms)
    if leader == partition.leader:
        return
    outcome.leader = leader
    outcome.is_unclean = is_unclean
    if leader in outcome.elr:
        outcome.isr = (leader,)
        outcome.elr = tuple(replica for replica in outcome.elr if replica != leader)
    if is_unclean:
        outcome.isr = (leader,)


def _choose(partition: PartitionImage, outcome: _Outcome, terms: Terms) -> tuple[int, bool]:
    """The leader, and whether records may have been lost with this choice."""
    candidates = outcome.isr or outcome.elr
    preferred = partition.replicas[:1] if terms.election is Election.PREFERRED else ()
    for replica in (*preferred, partition.leader, *partition.replicas):
        if replica in candidates and terms.may_lead(replica):
            return replica, False
    if terms.elr_enabled and not candidates and len(partition.last_known_elr) == 1:
        last_leader = partition.last_known_elr[0]
        if terms.may_lead(last_leader):
            return last_leader, True
    if terms.election is Election.UNCLEAN:
        for replica in partition.replicas:
            if terms.may_lead(replica):
                return replica, True
    return NO_LEADER, False


def _record(topic_id: bytes, partition: PartitionImage, outcome: _Outcome, terms: Terms) -> PartitionChangeRecord:
    # Without ELR somebody must stay in the ISR, be it only to say who may lead next.
    isr_changes = outcome.isr != partition.isr and (bool(outcome.isr) or terms.elr_enabled)
    leader = outcome.leader
    if leader == NO_LEADER_CHANGE and isr_changes and _bumps_epoch(partition, outcome, terms):
        leader = partition.leader
    starts_recovery = outcome.is_unclean and partition.leader_recovery_state != RECOVERING
    return PartitionChangeRecord(
        partition_id=partition.partition_id,
        topic_id=topic_id,
        isr=outcome.isr if isr_changes or outcome.is_unclean else None,
        leader=leader,
        leader_recovery_state=RECOVERING if starts_recovery else _NO_RECOVERY_CHANGE,
        eligible_leader_replicas=outcome.elr if outcome.elr != partition.elr else None,
        last_known_elr=_last_known_elr(partition, leader, terms),
    )


def _bumps_epoch(partition: PartitionImage, outcome: _Outcome, terms: Terms) -> bool:
    """Old brokers needed a new leader epoch to notice that the ISR had shrunk."""
    if terms.metadata_version >= features.NO_EPOCH_BUMP_ON_ISR_SHRINK_FROM:
        return False
    return not set(partition.isr) <= set(outcome.isr)


def _last_known_elr(partition: PartitionImage, leader: int, terms: Terms) -> tuple[int, ...] | None:
    """Set when the partition loses its leader, cleared when it has one again."""
    if not terms.elr_enabled:
        return None
    if leader == NO_LEADER and not partition.last_known_elr:
        return (partition.leader,)
    return () if leader >= 0 and partition.last_known_elr else None
