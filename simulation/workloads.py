"""The workloads of a world, by family: a group with its members, or other clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from simulation.clients.classic import ClassicMember
from simulation.clients.client import Client
from simulation.clients.consumer import ConsumerMember
from simulation.clients.other_clients import Administrator, LoneCommitter
from simulation.clients.streams import StreamsMember
from simulation.topology_descriptions import DescribingMember, description_law
from simulation.warmups import WarmupGroup
from simulation.world import Workload, World

__all__ = ["FAMILIES", "OtherClients"]

_TOLD_TO_SKIP_FROM: Final = 9
"""The first version of JoinGroup in which a returning static leader learns that it leads."""


class ClassicGroup:
    """A classic group whose members all use one strategy."""

    def __init__(self, world: World, group_id: str) -> None:
        self._world = world
        self.group_id = group_id
        cooperative = world.random.random() < 0.4
        self.clients: Sequence[ClassicMember] = [
            self._member(f"{group_id}-m{number}", cooperative) for number in range(world.random.randint(2, 5))
        ]

    def _member(self, name: str, cooperative: bool) -> ClassicMember:
        chance = self._world.random
        is_static = chance.random() < 0.3
        return ClassicMember(
            self._world,
            name,
            self.group_id,
            _some_topics(self._world),
            instance_id=f"i-{name}" if is_static else None,
            cooperative=cooperative,
            version=chance.choice((1, 2, 3, 4, 5, 6, 7, 9, 9)),
        )

    def unconverged(self) -> str | None:
        alive = [each for each in self.clients if each.is_alive]
        waiting = [f"{each.name} is {each.state}" for each in alive if not each.has_converged()]
        if waiting:
            return "; ".join(waiting)
        generations = {each.generation for each in alive}
        if len(generations) > 1:
            return f"members of {self.group_id} are in generations {sorted(generations)}"
        owned = [partition for each in alive for partition in each.owned]
        if any(each.instance_id is not None and each.version < _TOLD_TO_SKIP_FROM for each in alive):
            # A returning leader is not told that it leads, so perhaps no member watches the topics.
            return None if len(owned) == len(set(owned)) else f"{sorted(owned)} is given out"
        wanted = _all_partitions(self._world, {topic for each in alive for topic in each.topics})
        return _difference(self.group_id, owned, wanted)


class ConsumerGroup:
    """A group of the consumer protocol."""

    def __init__(self, world: World, group_id: str) -> None:
        self._world = world
        self.group_id = group_id
        self.clients: Sequence[ConsumerMember] = [
            self._member(f"{group_id}-m{number}") for number in range(world.random.randint(2, 5))
        ]

    def _member(self, name: str) -> ConsumerMember:
        chance = self._world.random
        has_regex = chance.random() < 0.2
        return ConsumerMember(
            self._world,
            name,
            self.group_id,
            () if has_regex else _some_topics(self._world),
            instance_id=f"i-{name}" if chance.random() < 0.3 else None,
            regex="t.*" if has_regex else None,
            assignor=chance.choice((None, "uniform", "range")),
            always_full=chance.random() < 0.2,
        )

    def unconverged(self) -> str | None:
        alive = [each for each in self.clients if each.is_alive]
        waiting = [f"{each.name} is in epoch {each.epoch}" for each in alive if not each.has_converged()]
        if waiting:
            return "; ".join(waiting)
        topics = self._world.topics
        owned = [(topics.name_of_id(topic) or "", partition) for each in alive for topic, partition in each.owned]
        wanted = _all_partitions(self._world, {topic for each in alive for topic in each.subscription()})
        return _difference(self.group_id, owned, wanted)


class MixedGroup:
    """A group that migrates from one protocol to the other, and back: some members use each of them."""

    def __init__(self, world: World, group_id: str) -> None:
        self._world = world
        self.group_id = group_id
        cooperative = world.random.random() < 0.5
        names = [f"{group_id}-m{number}" for number in range(world.random.randint(2, 6))]
        self.clients: Sequence[ClassicMember | ConsumerMember] = [
            self._classic(name, cooperative) if number % 2 else self._consumer(name)
            for number, name in enumerate(names)
        ]

    def _classic(self, name: str, cooperative: bool) -> ClassicMember:
        version = self._world.random.choice((4, 5, 7, 9, 9))
        return ClassicMember(
            self._world, name, self.group_id, _all_topics(self._world), cooperative=cooperative, version=version
        )

    def _consumer(self, name: str) -> ConsumerMember:
        return ConsumerMember(self._world, name, self.group_id, _all_topics(self._world))

    def unconverged(self) -> str | None:
        alive = [each for each in self.clients if each.is_alive]
        waiting = [f"{each.name} waits" for each in alive if not each.has_converged()]
        if waiting:
            return "; ".join(waiting)
        wanted = _all_partitions(self._world, _all_topics(self._world) if alive else ())
        return _difference(
            self.group_id, [unit for each in alive for unit in _owned_by_name(self._world, each)], wanted
        )


def _owned_by_name(world: World, member: ClassicMember | ConsumerMember) -> list[tuple[str, int]]:
    if isinstance(member, ClassicMember):
        return list(member.owned)
    return [(world.topics.name_of_id(topic_id) or "", partition) for topic_id, partition in member.owned]


def _all_topics(world: World) -> tuple[str, ...]:
    return tuple(name for name in ("t0", "t1") if world.topics.name_was_used(name))


class StreamsGroup:
    """A Kafka Streams application whose threads are the members. Half of them have internal topics of their own."""

    def __init__(self, world: World, group_id: str, member_counts: tuple[int, int] = (2, 5)) -> None:
        self._world = world
        self.group_id = group_id
        self.has_internal_topics = world.random.random() < 0.5
        self.source = "t0"
        if self.has_internal_topics:
            # Its internal topics have as many partitions as the source had, so the source must not change.
            self.source = f"source-of-{group_id}"
            world.put_topic(self.source, world.random.randint(1, 4) * max(1, member_counts[0] // 8))
        if world.random.random() < 0.5:
            world.environment.set_for_group(group_id, "streams.num.standby.replicas", "1")
        self.clients: Sequence[StreamsMember] = [
            self._member(f"{group_id}-m{number}") for number in range(world.random.randint(*member_counts))
        ]

    def _member(self, name: str) -> StreamsMember:
        return StreamsMember(
            self._world,
            name,
            self.group_id,
            self.source,
            has_internal_topics=self.has_internal_topics,
            process_id=f"p{self._world.random.randint(1, 3)}",
        )

    def unconverged(self) -> str | None:
        alive = [each for each in self.clients if each.is_alive]
        waiting = [f"{each.name} is in epoch {each.epoch}" for each in alive if not each.has_converged()]
        if waiting:
            return "; ".join(waiting)
        topic = self._world.topics.by_name(self.source)
        count = 0 if topic is None or not alive else topic.partition_count
        subtopologies = ("0", "1") if self.has_internal_topics else ("0",)
        wanted = {(subtopology, partition) for subtopology in subtopologies for partition in range(count)}
        return _difference(self.group_id, [unit for each in alive for unit in each.owned.active], wanted)


class DescribedGroup(StreamsGroup):
    """An application whose members describe their topology; one in three has an old version and cannot."""

    def __init__(self, world: World, group_id: str) -> None:
        self._undescribed = description_law(world, group_id)
        super().__init__(world, group_id, (1, 3))
        for member in self.clients:
            assert isinstance(member, DescribingMember)
            member.application = self.clients

    def _member(self, name: str) -> StreamsMember:
        member = DescribingMember(
            self._world,
            name,
            self.group_id,
            self.source,
            has_internal_topics=self.has_internal_topics,
            process_id=f"p{self._world.random.randint(1, 3)}",
        )
        member.version = 0 if self._world.random.random() < 0.3 else 1
        return member

    def unconverged(self) -> str | None:
        found = super().unconverged()
        if found is not None or not any(each.is_alive and each.version for each in self.clients):
            return found
        return self._undescribed()


def streams_crowd(world: World, group_id: str) -> StreamsGroup:
    """A streams group with hundreds of members."""
    return StreamsGroup(world, group_id, (100, 300))


class OtherClients:
    """A committer that is no member, and an administrator that deletes groups."""

    def __init__(self, world: World, groups: Iterable[str]) -> None:
        lone = "lone"
        self.clients: Sequence[Client] = (
            LoneCommitter(world, "lone-committer", lone),
            Administrator(world, "administrator", (*groups, lone)),
        )

    def unconverged(self) -> str | None:
        return None


def _some_topics(world: World) -> tuple[str, ...]:
    names = sorted(world.topics.names())
    return tuple(names) if world.random.random() < 0.7 else tuple(world.random.sample(names, 1))


def _all_partitions(world: World, topics: Iterable[str]) -> set[tuple[str, int]]:
    found = set()
    for name in topics:
        topic = world.topics.by_name(name)
        found |= {(name, partition) for partition in range(topic.partition_count if topic is not None else 0)}
    return found


def _difference(group_id: str, owned: list[tuple[str, int]], wanted: set[tuple[str, int]]) -> str | None:
    if sorted(owned) == sorted(wanted):
        return None
    return f"of {group_id}, {sorted(owned)} is given out where {sorted(wanted)} should be"


FAMILIES: Final[dict[str, Callable[[World, str], Workload]]] = {
    "classic": ClassicGroup,
    "consumer": ConsumerGroup,
    "mixed": MixedGroup,
    "streams": StreamsGroup,
    "streams-crowd": streams_crowd,
    "streams-warmups": WarmupGroup,
    "streams-described": DescribedGroup,
}
"""Family -> the function that makes its workload."""
