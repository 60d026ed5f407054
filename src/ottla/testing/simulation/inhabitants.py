"""Groups and others that live in a world, by family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ottla.testing.simulation.clients.classic import ClassicMember
from ottla.testing.simulation.world import Inhabitant, World

__all__ = ["FAMILIES"]

_TOLD_TO_SKIP_FROM: Final = 9
"""The version of JoinGroup in which a static leader that comes back learns that it leads."""


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

    def unsettled(self) -> str | None:
        alive = [each for each in self.clients if each.is_alive]
        waiting = [f"{each.name} is {each.state}" for each in alive if not each.is_settled()]
        if waiting:
            return "; ".join(waiting)
        generations = {each.generation for each in alive}
        if len(generations) > 1:
            return f"members of {self.group_id} are in generations {sorted(generations)}"
        owned = [partition for each in alive for partition in each.owned]
        if any(each.instance_id is not None and each.version < _TOLD_TO_SKIP_FROM for each in alive):
            # A leader that came back is not told that it leads, so nobody may be watching the topics.
            return None if len(owned) == len(set(owned)) else f"{sorted(owned)} is given out"
        return _difference(self.group_id, owned, _all_partitions(self._world, alive))


def _some_topics(world: World) -> tuple[str, ...]:
    names = sorted(world.topics.names())
    return tuple(names) if world.random.random() < 0.7 else tuple(world.random.sample(names, 1))


def _all_partitions(world: World, members: Sequence[ClassicMember]) -> set[tuple[str, int]]:
    found = set()
    for name in {topic for each in members for topic in each.topics}:
        topic = world.topics.by_name(name)
        found |= {(name, partition) for partition in range(topic.partition_count if topic is not None else 0)}
    return found


def _difference(group_id: str, owned: list[tuple[str, int]], wanted: set[tuple[str, int]]) -> str | None:
    if sorted(owned) == sorted(wanted):
        return None
    return f"of {group_id}, {sorted(owned)} is given out where {sorted(wanted)} should be"


FAMILIES: Final[dict[str, Callable[[World, str], Inhabitant]]] = {"classic": ClassicGroup}
"""Family -> what makes a group of it."""
