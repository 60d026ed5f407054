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
from time to time           the preferred leader leads again; without a leader, an unclean election, if allowed
==========================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import Enum
from itertools import chain

import msgspec

from ottla.core.metadata import features
from ottla.core.metadata.context import ControllerState, Steps
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
    """Who leads and who may, while it is worked out."""

    isr: tuple[int, ...]
    elr: tuple[int, ...]
    leader: int = NO_LEADER_CHANGE
    is_unclean: bool = False


def change_partition(
    topic_id: bytes, partition: PartitionImage, wanted: PartitionImage, terms: Terms
) -> Versioned | None:
    """The record that makes a partition what is wanted, with the leader that follows from it; None if nothing changes.

    `wanted` differs from the partition in its replicas, directories, ISR or recovery state. Leader, ELR and last known
    ELR are worked out here, and a reassignment ends as soon as its replicas are in sync.
    """
    target = _reassigned(wanted)
    outcome = _Outcome(target.isr, _target_elr(partition, target, terms))
    _elect(partition, target, outcome, terms)
    if outcome.is_unclean or not terms.elr_enabled:
        outcome.elr = ()
    change = _record(topic_id, partition, target, outcome, terms)
    if change == PartitionChangeRecord(partition_id=partition.partition_id, topic_id=topic_id):
        return None
    return Versioned(change, features.record_version("PartitionChangeRecord", terms.metadata_version))


# --- what happens to all partitions that it concerns


def broker_leaves(state: ControllerState, broker_id: int) -> Steps:
    """Changes when a broker is fenced or shuts down in order."""
    return _changes(state, lambda partition: broker_id in partition.isr, removed=broker_id)


def broker_stopped(state: ControllerState, broker_id: int, *, is_clean: bool) -> Steps:
    """Changes when a broker registers anew, so that its former process is known to have ended."""
    if is_clean or not state.image.elr_enabled:
        return broker_leaves(state, broker_id)
    return chain(
        _changes(state, lambda partition: broker_id in partition.isr, stopped_uncleanly=broker_id),
        _changes(state, lambda partition: broker_id in partition.elr, stopped_uncleanly=broker_id),
    )


def broker_unregistered(state: ControllerState, broker_id: int) -> Steps:
    """Changes when a broker is forgotten for good."""
    return chain(
        _changes(state, lambda partition: broker_id in partition.isr, removed=broker_id),
        _changes(state, lambda partition: broker_id in partition.elr, removed=broker_id),
    )


def broker_unfenced(state: ControllerState, broker_id: int) -> Steps:
    """Changes when a broker may lead again."""
    return _changes(state, lambda partition: partition.leader == NO_LEADER, added=broker_id)


def directory_failed(state: ControllerState, broker_id: int, directory: bytes) -> Steps:
    """Changes when a broker has lost one of its log directories."""
    return _changes(state, lambda partition: partition.directory_of(broker_id) == directory, removed=broker_id)


def replicas_lost(state: ControllerState, broker_id: int, partitions: Collection[tuple[bytes, int]]) -> Steps:
    """Changes when some replicas of a broker turn out to lie in a directory that has failed."""
    image = state.image
    topics = ((image.topics_by_id[topic_id], number) for topic_id, number in partitions)
    return _change_each(state, ((topic, topic.partitions[number]) for topic, number in topics), removed=broker_id)


def preferred_leaders(state: ControllerState, _: int) -> Steps:
    """Changes that give partitions back to their preferred leaders."""

    def is_imbalanced(partition: PartitionImage) -> bool:
        preferred = partition.replicas[0]
        return partition.leader != preferred and (preferred in partition.isr or partition.leader == NO_LEADER)

    return _changes(state, is_imbalanced, election=Election.PREFERRED)


def unclean_leaders(state: ControllerState, _: int) -> Steps:
    """Changes that give partitions without a leader any replica that lives, where their topics allow it."""
    return _changes(state, lambda partition: partition.leader == NO_LEADER, only=Election.UNCLEAN)


def topic_value(state: ControllerState, topic_name: str, key: str) -> str:
    """A setting of a topic as it is in force on this node."""
    image = state.image
    return state.rules.topic_value(
        key,
        image.configs(TOPIC, topic_name),
        image.configs(BROKER, str(state.settings.node_id)),
        image.configs(BROKER, CLUSTER_DEFAULT),
    )


def _changes(
    state: ControllerState,
    concerns: Callable[[PartitionImage], bool],
    *,
    removed: int = NOBODY,
    added: int = NOBODY,
    stopped_uncleanly: int = NOBODY,
    election: Election | None = None,
    only: Election | None = None,
) -> Steps:
    """Changes of the partitions concerned. Other partitions may change while they are worked out, by this walk only."""
    image = state.image
    return _change_each(
        state,
        (
            (image.topics_by_id[topic_id], partition) if concerns(partition) else None
            for topic_id in list(image.topics_by_id)
            for partition in list(image.topics_by_id[topic_id].partitions.values())
        ),
        removed=removed,
        added=added,
        stopped_uncleanly=stopped_uncleanly,
        election=election,
        only=only,
    )


def _change_each(
    state: ControllerState,
    partitions: Iterable[tuple[TopicImage, PartitionImage] | None],
    *,
    removed: int = NOBODY,
    added: int = NOBODY,
    stopped_uncleanly: int = NOBODY,
    election: Election | None = None,
    only: Election | None = None,
) -> Steps:
    leaving = (removed, stopped_uncleanly)
    terms_by_topic: dict[bytes, tuple[int, Election]] = {}
    for found in partitions:
        if found is None:
            yield None
            continue
        topic, partition = found
        if topic.topic_id not in terms_by_topic:
            terms_by_topic[topic.topic_id] = _terms_of_topic(state, topic)
        min_isr, usual = terms_by_topic[topic.topic_id]
        if only is not None and usual is not only:
            yield None
            continue
        may_lead = _leaders(state.image, partition, leaving, added)
        terms = _terms(state, min_isr, election or usual, may_lead, stopped_uncleanly=stopped_uncleanly)
        isr = tuple(replica for replica in partition.isr if replica not in leaving)
        yield change_partition(topic.topic_id, partition, msgspec.structs.replace(partition, isr=isr), terms)


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


def usual_election(state: ControllerState, topic: TopicImage) -> Election:
    """How far elections of a topic's partitions go when nobody asks for one."""
    is_unclean = topic_value(state, topic.name, "unclean.leader.election.enable") == "true"
    return Election.UNCLEAN if is_unclean else Election.ONLINE


def _terms_of_topic(state: ControllerState, topic: TopicImage) -> tuple[int, Election]:
    min_isr = int(topic_value(state, topic.name, "min.insync.replicas"))
    replication_factor = len(next(iter(topic.partitions.values())).replicas)
    return min(min_isr, replication_factor), usual_election(state, topic)


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


def _reassigned(wanted: PartitionImage) -> PartitionImage:
    """The partition without the replicas that go, if those that come are in sync; else as it is.

    If more go than come, all that stay must be in sync: the partition must not end with fewer than it could have.
    """
    coming, going = wanted.adding_replicas, wanted.removing_replicas
    if not wanted.is_reassigning:
        return wanted
    staying = [(replica, where) for replica, where in wanted.placed if replica not in going]
    replicas = tuple(replica for replica, _ in staying)
    isr = tuple(replica for replica in wanted.isr if replica not in going)
    needed = replicas if len(coming) < len(going) else coming
    if not replicas or not isr or not set(needed) <= set(isr):
        return wanted
    return msgspec.structs.replace(
        wanted,
        replicas=replicas,
        directories=tuple(where for _, where in staying),
        isr=isr,
        adding_replicas=(),
        removing_replicas=(),
    )


def _target_elr(partition: PartitionImage, target: PartitionImage, terms: Terms) -> tuple[int, ...]:
    if not terms.elr_enabled:
        return partition.elr
    if len(target.isr) >= terms.min_isr:
        return ()
    eligible = {*partition.elr, *partition.isr} - {*target.isr, terms.stopped_uncleanly}
    # A replica that is taken away loses its log: it must not count when it is put back.
    return tuple(sorted(eligible.intersection(target.replicas)))


def _elect(partition: PartitionImage, target: PartitionImage, outcome: _Outcome, terms: Terms) -> None:
    leader, is_unclean = _choose(partition, target.replicas, outcome, terms)
    if leader == partition.leader:
        return
    outcome.leader = leader
    outcome.is_unclean = is_unclean
    if leader in outcome.elr:
        outcome.isr = (leader,)
        outcome.elr = tuple(replica for replica in outcome.elr if replica != leader)
    if is_unclean:
        outcome.isr = (leader,)


def _choose(partition: PartitionImage, replicas: tuple[int, ...], outcome: _Outcome, terms: Terms) -> tuple[int, bool]:
    """The leader, and whether records may have been lost with this choice."""
    candidates = outcome.isr or outcome.elr
    preferred = replicas[:1] if terms.election is Election.PREFERRED else ()
    for replica in (*preferred, partition.leader, *replicas):
        if replica in candidates and terms.may_lead(replica):
            return replica, False
    if terms.elr_enabled and not candidates and len(partition.last_known_elr) == 1:
        last_leader = partition.last_known_elr[0]
        if terms.may_lead(last_leader):
            return last_leader, True
    if terms.election is Election.UNCLEAN:
        for replica in replicas:
            if terms.may_lead(replica):
                return replica, True
    return NO_LEADER, False


def _record(
    topic_id: bytes, partition: PartitionImage, target: PartitionImage, outcome: _Outcome, terms: Terms
) -> PartitionChangeRecord:
    # Without ELR somebody must stay in the ISR, be it only to say who may lead next.
    isr = outcome.isr if outcome.isr or terms.elr_enabled else partition.isr
    leader = outcome.leader
    if leader == NO_LEADER_CHANGE and _bumps_epoch(partition, target, isr, terms):
        leader = partition.leader
    recovery = target.leader_recovery_state
    if outcome.is_unclean and recovery == partition.leader_recovery_state:
        recovery = RECOVERING
    has_directories = terms.metadata_version >= features.DIRECTORIES_FROM
    return PartitionChangeRecord(
        partition_id=partition.partition_id,
        topic_id=topic_id,
        isr=isr if isr != partition.isr or outcome.is_unclean else None,
        leader=leader,
        replicas=_if_new(target.replicas, partition.replicas),
        removing_replicas=_if_new(target.removing_replicas, partition.removing_replicas),
        adding_replicas=_if_new(target.adding_replicas, partition.adding_replicas),
        leader_recovery_state=recovery if recovery != partition.leader_recovery_state else _NO_RECOVERY_CHANGE,
        directories=target.directories if has_directories and target.directories != partition.directories else None,
        eligible_leader_replicas=_if_new(outcome.elr, partition.elr),
        last_known_elr=_last_known_elr(partition, leader, terms),
    )


def _if_new(new: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if new == old else new


def _bumps_epoch(partition: PartitionImage, target: PartitionImage, isr: tuple[int, ...], terms: Terms) -> bool:
    """Whether the same leader goes on in a new epoch: followers that were taken away must not go on fetching."""
    if not set(partition.replicas) <= set(target.replicas):
        return True
    # Old brokers needed a new leader epoch to notice that the ISR had shrunk, too.
    is_old = terms.metadata_version < features.NO_EPOCH_BUMP_ON_ISR_SHRINK_FROM
    return is_old and not set(partition.isr) <= set(isr)


def _last_known_elr(partition: PartitionImage, leader: int, terms: Terms) -> tuple[int, ...] | None:
    """Set when the partition loses its leader, cleared when it has one again."""
    if not terms.elr_enabled:
        return None
    if leader == NO_LEADER != partition.leader and not partition.last_known_elr:
        return (partition.leader,)
    return () if leader >= 0 and partition.last_known_elr else None
