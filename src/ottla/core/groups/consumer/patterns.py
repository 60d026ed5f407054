"""Subscriptions by pattern: RE2's language, matched against whole names of topics (KIP-848).

RE2 matches in time linear in the name, and a pattern whose program would be large is refused, so no pattern can hold up
the broker. There may be many topics and many patterns, though: they are resolved behind the request, in slices, one for
each time that the deadline of the group's resolution comes up. A group's patterns are resolved together, so that they
lead to one rebalance: when one is new, when topics have been created, and every
group.consumer.regex.refresh.interval.ms, but not twice within ten seconds.

Topics that the asking member may not describe are left out. What a pattern matches is kept for the group, by whoever
asked last; as in Kafka, where patterns are no means of keeping topics from members of one group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from ottla.core.coordinator.contract import Authorize
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.records import ResolvedRegex
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["Resolution", "check_regex", "refresh_at_ms"]

REFRESH_INTERVAL_MIN_MS: Final = 10_000
SLICE_MATCHES: Final = 500
"""How many names are matched in one go, over all patterns: half a millisecond, a few times that for the worst, and some
microseconds for each topic that is found."""
PROGRAM_BYTES_MAX: Final = 2 << 20
"""What a compiled pattern may take, and its automaton besides."""


@lru_cache(maxsize=256)
def _compile(regex: str) -> Callable[[str], object]:
    """What tells whether a pattern matches a whole name. Loads RE2 with the first pattern, which few groups have.

    A set of one pattern is asked, not the pattern: a set runs RE2's automaton alone and says yes or no, where a pattern
    also looks for where its parts match, which can take a thousand times as long.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = PROGRAM_BYTES_MAX
    try:
        re2.compile(regex, options)
        matcher = re2.Set.FullMatchSet(options)
        matcher.Add(regex)
        matcher.Compile()
    except re2.error as error:
        raise Reject(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"SubscribedTopicRegex is not a pattern of RE2: {_reason(error)}"
        ) from None
    matches: Callable[[str], object] = matcher.Match
    return matches


def _reason(error: Exception) -> str:
    reason = error.args[0]
    return (reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason))[:200]


def check_regex(regex: str) -> None:
    _compile(regex)


def refresh_at_ms(
    group: ConsumerGroup, regexes: Iterable[str], created_version: int, interval_ms: int, wall_ms: int
) -> float:
    """When the patterns of a group must be resolved, on the wall clock. `created_version` is that of the topics when
    one was last created."""
    wanted = set(regexes)
    if not wanted:
        return float("inf")
    known = next(iter(group.resolved.values()), None)
    if known is None or known.resolved_at_ms > wall_ms:
        return float("-inf")  # a clock that was set back must not keep new topics away
    if wanted != group.resolved.keys() or known.topics_version < created_version:
        return known.resolved_at_ms + REFRESH_INTERVAL_MIN_MS + 1
    return known.resolved_at_ms + max(interval_ms, REFRESH_INTERVAL_MIN_MS) + 1


class Resolution:
    """Patterns of a group that are being matched with the names of all topics."""

    def __init__(
        self,
        regexes: Iterable[str],
        names: Iterable[str],
        topics_version: int,
        wall_ms: int,
        authorize: Authorize,
        look_at: Callable[[str], object] = lambda name: None,
    ) -> None:
        """`look_at` is called with each name that is found, to spread what must be found out about many topics."""
        self._matchers = {regex: _compile(regex) for regex in sorted(regexes)}
        self._names: Sequence[str] = list(names)
        self._topics_version = topics_version
        self._began_at_ms = wall_ms
        self._authorize = authorize
        self._look_at = look_at
        self._found: dict[str, list[str]] = {regex: [] for regex in self._matchers}
        self._position = 0

    def step(self) -> Mapping[str, ResolvedRegex] | None:
        """Match some more names. When all are done: what the patterns match."""
        end = self._position + max(1, SLICE_MATCHES // len(self._matchers))
        for name in self._names[self._position : end]:
            matching = [regex for regex, matches in self._matchers.items() if matches(name)]
            if matching and self._authorize(Operation.DESCRIBE, ResourceType.TOPIC, name):
                self._look_at(name)
                for regex in matching:
                    self._found[regex].append(name)
        self._position = end
        if end < len(self._names):
            return None
        return {
            regex: ResolvedRegex(frozenset(names), self._topics_version, self._began_at_ms)
            for regex, names in self._found.items()
        }
