"""Decides which probe results become samples: some kinds are written only when they change, or once in a while.

Nothing here does input or output; the caller passes the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from ottla.health.facts import Gone, Topic
from ottla.health.series import LruDict
from ottla.observe.probe_result import ProbeResult, probe_result

__all__ = ["ChangeFilter", "Presence", "ToWrite"]

HEARTBEATS_MS: Final[dict[str, int]] = {"group": 60_000, "coverage": 60_000, "topic": 60_000, "configs": 600_000}
"""Kinds that are written when they change, and after this time although they did not."""

REMEMBERED: Final = 100_000
ABSENT_MS: Final = 5_000
"""How long a thing must be missing before it is gone: no node lists a group while it moves to another coordinator."""

_ENCODER: Final = msgspec.json.Encoder()


class ToWrite(NamedTuple):
    """A result that becomes a sample; a heartbeat says that nothing has changed."""

    result: ProbeResult
    is_heartbeat: bool = False


class _Written(NamedTuple):
    digest: int
    at_ms: int


class ChangeFilter:
    """Remembers what was last written of each entity, and leaves out what has not changed."""

    def __init__(self, room: int = REMEMBERED) -> None:
        self._written: LruDict[tuple[str, str], _Written] = LruDict(room)

    def select(self, now_ms: int, results: Iterable[ProbeResult]) -> list[ToWrite]:
        found = (self._select(now_ms, each) for each in results)
        return [each for each in found if each is not None]

    def _select(self, now_ms: int, result: ProbeResult) -> ToWrite | None:
        heartbeat_ms = HEARTBEATS_MS.get(result.kind)
        if heartbeat_ms is None:
            return ToWrite(result)
        key = (result.kind, result.entity)
        before = self._written.pop(key)
        if _needs_repeating(result):
            return ToWrite(result)
        now = _Written(_digest(result), now_ms)
        is_same = before is not None and before.digest == now.digest
        is_early = before is not None and now_ms - before.at_ms < heartbeat_ms
        self._written.touch(key, lambda: before if before is not None and is_same and is_early else now)
        return None if is_same and is_early else ToWrite(result, is_heartbeat=is_same)

    def forget(self, kind: str) -> None:
        """Write the next result of this kind, changed or not: the one before it is missing."""
        for key in self._written:
            if key[0] == kind:
                self._written.pop(key)


def _digest(result: ProbeResult) -> int:
    return hash((result.error, _ENCODER.encode(result.fact)))


def _needs_repeating(result: ProbeResult) -> bool:
    """A topic with partitions that lack a leader or replicas is written each time."""
    return isinstance(result.fact, Topic) and any(
        each.leader < 0 or len(each.isr) < len(each.replicas) or each.offline or each.adding
        for each in result.fact.partitions
    )


class Presence:
    """Remembers which groups, topics or transactions exist, and reports those that are gone."""

    def __init__(self, what: str, absent_ms: int = ABSENT_MS) -> None:
        self._what = what
        self._absent_ms = absent_ms
        self._missing_ms: dict[str, int | None] = {}

    def take(self, now_ms: int, names: Iterable[str], *, is_complete: bool) -> list[ProbeResult]:
        """Results for those that are gone; none, if the list of names is not complete."""
        present = set(names)
        gone = []
        for name, since_ms in list(self._missing_ms.items()) if is_complete else ():
            if name in present:
                continue
            self._missing_ms[name] = since_ms = now_ms if since_ms is None else since_ms
            if now_ms - since_ms >= self._absent_ms:
                del self._missing_ms[name]
                gone.append(probe_result(f"{self._what}:{name}", Gone(what=self._what, name=name)))
        self._missing_ms |= dict.fromkeys(present)
        return gone
