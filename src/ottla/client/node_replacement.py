"""Whether a node can be taken out of a running cluster without harm, and whether it has come back.

`read_state` asks the cluster; the other functions judge what it said, and give reasons: none means yes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client import configs
from ottla.client.client import Client
from ottla.client.cluster import BrokerDescription, QuorumDescription, describe, describe_quorum
from ottla.client.errors import ResponseError
from ottla.client.metadata import Partition, TopicPartition
from ottla.client.reassignments import list_reassignments

__all__ = ["ClusterState", "doubts", "is_ottla", "missing", "present", "read_state"]

_MIN_ISR: Final = "min.insync.replicas"
_OWN_PREFIX: Final = "ottla."
_EXAMPLES: Final = 3


class ClusterState(NamedTuple):
    """What matters for taking a node away."""

    brokers: Mapping[int, BrokerDescription]
    """All that are registered."""
    quorum: QuorumDescription
    partitions: Mapping[TopicPartition, Partition]
    min_isr: Mapping[str, int]
    """Topic -> replicas that must be in sync for acks=all."""
    moving: Collection[TopicPartition] = ()

    @property
    def node_ids(self) -> list[int]:
        """Brokers and controllers, with the leader of the quorum last."""
        found = {*self.brokers, *(each.node_id for each in self.quorum.voters)}
        return sorted(found, key=lambda node_id: (node_id == self.quorum.leader_id, node_id))

    def voters_behind(self) -> list[int]:
        """The voters that lack something committed."""
        return [each.node_id for each in self.quorum.voters if each.log_end_offset < self.quorum.high_watermark]


async def read_state(client: Client) -> ClusterState:
    """Ask the cluster. ClientError if it does not tell."""
    cluster = await describe(client, include_fenced=True)
    topics = await client.all_topics()
    resources = [configs.Resource(configs.ResourceType.TOPIC, name) for name in topics]
    found = await configs.try_describe(client, *resources, keys=[_MIN_ISR])
    for outcome in found.values():
        if isinstance(outcome, ResponseError):
            raise outcome
    return ClusterState(
        {each.node_id: each for each in cluster.brokers},
        await describe_quorum(client),
        {
            TopicPartition(topic.name, number): each
            for topic in topics.values()
            for number, each in topic.partitions.items()
        },
        {
            resource.name: int(entries[_MIN_ISR].value or 1)
            for resource, entries in found.items()
            if not isinstance(entries, ResponseError)
        },
        frozenset(await list_reassignments(client)),
    )


async def is_ottla(client: Client, broker_id: int) -> bool:
    """Whether a broker is ottla's: it has settings of its own then."""
    resource = configs.Resource(configs.ResourceType.BROKER, str(broker_id))
    return any(name.startswith(_OWN_PREFIX) for name in await configs.describe(client, resource))


def doubts(state: ClusterState, node_id: int, *, may_be_unavailable: bool = False) -> list[str]:
    """What speaks against taking a node away now."""
    if node_id not in state.node_ids:
        return [f"the cluster has no node {node_id}"]
    found = [f"broker {each.node_id} is fenced" for each in state.brokers.values() if each.is_fenced]
    found += [f"controller {each} is behind the leader of the quorum" for each in state.voters_behind()]
    found += _controller_doubts(state, node_id)
    found += _counted(_without_leader(state), "have no leader", "has no leader")
    found += _counted(_out_of_sync(state), "are not in sync", "is not in sync")
    found += _counted(state.moving, "are being moved", "is being moved")
    if not may_be_unavailable:
        text = f"be written to with acks=all while node {node_id} is away"
        found += _counted(_needed_at(state, node_id), f"could not {text}", f"could not {text}")
    return found


def _controller_doubts(state: ClusterState, node_id: int) -> list[str]:
    voters = [each.node_id for each in state.quorum.voters]
    left = [each for each in voters if each != node_id]
    if node_id not in voters or len(left) >= state.quorum.majority:
        return []
    return [f"without node {node_id} the controllers are no majority: {len(left)} of {len(voters)} would be left"]


def _without_leader(state: ClusterState) -> list[TopicPartition]:
    return [at for at, each in state.partitions.items() if each.leader < 0]


def _out_of_sync(state: ClusterState) -> list[TopicPartition]:
    return [at for at, each in state.partitions.items() if set(each.isr) != set(each.replicas)]


def _needed_at(state: ClusterState, node_id: int) -> list[TopicPartition]:
    """The partitions that need the replica of a node to have enough in sync."""
    return [
        at
        for at, each in state.partitions.items()
        if node_id in each.replicas
        and len(set(each.isr) - {node_id}) < max(1, min(state.min_isr.get(at.topic, 1), len(each.replicas)))
    ]


def present(state: ClusterState, node_id: int) -> list[str]:
    """Signs that a node which was stopped is still there."""
    broker = state.brokers.get(node_id)
    if broker is None:
        return []
    led = [at for at, each in state.partitions.items() if each.leader == node_id]
    return ([] if broker.is_fenced else [f"broker {node_id} is not fenced"]) + _counted(
        led, f"are led by node {node_id}", f"is led by node {node_id}"
    )


def missing(state: ClusterState, node_id: int, *, is_broker: bool, is_voter: bool) -> list[str]:
    """What is left to come back of a node which was started again."""
    found = []
    broker = state.brokers.get(node_id)
    if is_broker and (broker is None or broker.is_fenced):
        found.append(f"broker {node_id} is not registered" if broker is None else f"broker {node_id} is fenced")
    if is_voter and node_id not in {each.node_id for each in state.quorum.voters}:
        found.append(f"node {node_id} is no voter any more")
    if is_voter and node_id in state.voters_behind():
        found.append(f"controller {node_id} is behind the leader of the quorum")
    behind = [at for at, each in state.partitions.items() if node_id in each.replicas and node_id not in each.isr]
    return found + _counted(behind, f"are not in sync on node {node_id}", f"is not in sync on node {node_id}")


def _counted(partitions: Iterable[TopicPartition], several: str, one: str) -> list[str]:
    """One reason for all partitions that it holds for."""
    found: Sequence[TopicPartition] = sorted(partitions)
    if not found:
        return []
    if len(found) == 1:
        return [f"partition {found[0]} {one}"]
    shown = ", ".join(map(str, found[:_EXAMPLES])) + (", …" if len(found) > _EXAMPLES else "")
    return [f"{len(found)} partitions {several}: {shown}"]
