"""What of all that was seen is worth a sample: some things only when they change, or once in a while.

Facts in, facts out; the time comes with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from ottla.health.facts import Gone, Topic
from ottla.health.series import Shelf
from ottla.observe.sighting import Sighting, sight

__all__ = ["Changes", "Presence", "Worth"]

HEARTBEATS_MS: Final[dict[str, int]] = {"group": 60_000, "coverage": 60_000, "topic": 60_000, "configs": 600_000}
"""Kinds that are written when they change, and after this time although they did not."""

REMEMBERED: Final = 100_000
ABSENT_MS: Final = 5_000
"""A group that is moving to another coordinator is listed by nobody for a moment."""

_ENCODER: Final = msgspec.json.Encoder()


class Worth(NamedTuple):
    """A sighting that is to be written; a heartbeat says that nothing has changed."""

    sighting: Sighting
    is_heartbeat: bool = False


class _Written(NamedTuple):
    digest: int
    at_ms: int


class Changes:
    """Remembers what was written last of each thing."""

    def __init__(self, room: int = REMEMBERED) -> None:
        self._written: Shelf[tuple[str, str], _Written] = Shelf(room)

    def worth(self, now_ms: int, sightings: Iterable[Sighting]) -> list[Worth]:
        found = (self._worth(now_ms, each) for each in sightings)
        return [each for each in found if each is not None]

    def _worth(self, now_ms: int, seen: Sighting) -> Worth | None:
        heartbeat_ms = HEARTBEATS_MS.get(seen.kind)
        if heartbeat_ms is None:
            return Worth(seen)
        key = (seen.kind, seen.entity)
        before = self._written.pop(key)
        if _needs_repeating(seen):
            return Worth(seen)
        now = _Written(_digest(seen), now_ms)
        is_same = before is not None and before.digest == now.digest
        is_early = before is not None and now_ms - before.at_ms < heartbeat_ms
        self._written.touch(key, lambda: before if before is not None and is_same and is_early else now)
        return None if is_same and is_early else Worth(seen, is_heartbeat=is_same)

    def forget(self, kind: str) -> None:
        """There is a hole: whatever is seen of this kind next is news."""
        for key in self._written:
            if key[0] == kind:
                self._written.pop(key)


def _digest(seen: Sighting) -> int:
    return hash((seen.error, _ENCODER.encode(seen.fact)))


def _needs_repeating(seen: Sighting) -> bool:
    """What is wrong with partitions is told as long as it lasts."""
    return isinstance(seen.fact, Topic) and any(
        each.leader < 0 or len(each.isr) < len(each.replicas) or each.offline or each.adding
        for each in seen.fact.partitions
    )


class Presence:
    """Which things of a sort there are, to tell which are gone."""

    def __init__(self, what: str, absent_ms: int = ABSENT_MS) -> None:
        self._what = what
        self._absent_ms = absent_ms
        self._missing_ms: dict[str, int | None] = {}

    def take(self, now_ms: int, names: Iterable[str], *, is_complete: bool) -> list[Sighting]:
        """Those that are no longer there. A list that is not complete does not tell what is missing."""
        present = set(names)
        gone = []
        for name, since_ms in list(self._missing_ms.items()) if is_complete else ():
            if name in present:
                continue
            self._missing_ms[name] = since_ms = now_ms if since_ms is None else since_ms
            if now_ms - since_ms >= self._absent_ms:
                del self._missing_ms[name]
                gone.append(sight(f"{self._what}:{name}", Gone(what=self._what, name=name)))
        self._missing_ms |= dict.fromkeys(present)
        return gone
