"""Share partitions that are getting state, and who waits for it.

Apache Kafka answers a heartbeat at once and lets the next one, five seconds later, tell what has become assignable.
Here a heartbeat that has state made, and a join while it is being made, wait for it, `WAIT_MS` at most, and are
answered with what follows from it: the records are the same, and the member starts at once. Where state takes longer
than that, the first answer leaves as it was decided, and the next heartbeat tells the rest. Administrators who change
or delete state wait until that has ended.

All of it is soft. What was being made when the coordinator was lost is asked for anew after loading.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any, Final, NamedTuple

from ottla.core.share.group.effects import InitializeState
from ottla.core.share.group.state_topics import SharePartitionId

__all__ = ["WAIT_MS", "Initializations", "Waiting"]

WAIT_MS: Final = 1_000


class Waiting(NamedTuple):
    """A request whose answer waits."""

    number: int
    token: Any
    group_id: str
    member_id: str
    """Of a heartbeat; "" for an administrator."""
    response: Any
    """A heartbeat's, if nothing comes of it; an administrator's, if all goes well."""


class Initializations:
    def __init__(self) -> None:
        self._numbers = count(1)
        self._since_ms: dict[tuple[str, bytes], int] = {}
        """When state was last asked for, by group and topic."""
        self._latest: dict[tuple[str, bytes, int], int] = {}
        """The number under which state was last asked for, by group and share partition."""
        self._under_way: dict[int, InitializeState] = {}
        self._waiting: dict[int, Waiting] = {}

    def next_number(self) -> int:
        return next(self._numbers)

    # --- what is under way --------------------------------------------------------------------------------------------

    def begin(self, effect: InitializeState, now_ms: int) -> None:
        self._under_way[effect.number] = effect
        for topic_id, partition, _ in effect.partitions:
            self._latest[effect.group_id, topic_id, partition] = effect.number
            self._since_ms[effect.group_id, topic_id] = now_ms

    def end(self, effect: InitializeState) -> list[SharePartitionId]:
        """Gives the share partitions for which nothing was asked since. For others this outcome counts no longer: the
        state that it tells of may have been deleted, and be made anew."""
        self._under_way.pop(effect.number, None)
        left_ids = {each.topic_id for other in self._of_group(effect.group_id) for each in other.partitions}
        latest = []
        for topic_id, partition, _ in effect.partitions:
            if self._latest.get((effect.group_id, topic_id, partition)) == effect.number:
                del self._latest[effect.group_id, topic_id, partition]
                latest.append((topic_id, partition))
            if topic_id not in left_ids:
                self._since_ms.pop((effect.group_id, topic_id), None)
        return latest

    def fresh_ids(self, group_id: str, topic_ids: Iterable[bytes], since_ms: int) -> frozenset[bytes]:
        """Those of these topics for which state was asked for since then."""
        return frozenset(each for each in topic_ids if self._since_ms.get((group_id, each), since_ms) > since_ms)

    def is_under_way(self, group_id: str, topic_ids: frozenset[bytes]) -> bool:
        """Whether something of these topics is about to get state."""
        return any(each.topic_id in topic_ids for effect in self._of_group(group_id) for each in effect.partitions)

    def _of_group(self, group_id: str) -> list[InitializeState]:
        return [effect for effect in self._under_way.values() if effect.group_id == group_id]

    # --- who waits ----------------------------------------------------------------------------------------------------

    def wait(self, waiting: Waiting) -> None:
        self._waiting[waiting.number] = waiting

    def has_member(self, number: int) -> bool:
        """Whether it is a member that waits under a number."""
        return number in self._waiting and bool(self._waiting[number].member_id)

    def take(self, number: int) -> Waiting | None:
        """Who waits under a number, and does so no longer."""
        return self._waiting.pop(number, None)

    def take_all(self, group_id: str) -> list[Waiting]:
        """All members who wait for state of a group."""
        taken = [each for each in self._waiting.values() if each.group_id == group_id and each.member_id]
        for each in taken:
            del self._waiting[each.number]
        return taken

    def tokens(self) -> list[Any]:
        return [each.token for each in self._waiting.values()]
