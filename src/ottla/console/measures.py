"""Offsets and sizes of the partitions that a page shows, asked of their leaders: one request for each and question.

A cluster may have so many leaders that a page cannot ask them everything. Then it leaves the last questions out.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ottla.client import EARLIEST, LATEST, Client, ClientError, TopicPartition
from ottla.client.leaders import Outcomes
from ottla.client.offsets import Isolation, try_list_offsets
from ottla.client.sizes import try_leader_sizes
from ottla.console.page import Degraded, PageContext, Source, why_not
from ottla.console.page_parts import load_part

__all__ = ["ENDS", "REQUESTS_MAX", "SIZES", "STARTS", "Measures", "leaders_in", "measure"]

REQUESTS_MAX: Final = 36
ENDS: Final = "end offsets"
STARTS: Final = "start offsets"
SIZES: Final = "sizes"
STABLE_ENDS: Final = "last stable offsets"

Known = Mapping[TopicPartition, int]
NONE: Final[Known] = MappingProxyType({})
Question = Callable[[Client, Known], Coroutine[Any, Any, Outcomes[int]]]


class Measures(NamedTuple):
    """What is known of partitions; those of which something is not known are missing there."""

    ends: Known = NONE
    starts: Known = NONE
    sizes: Known = NONE
    stable_ends: Known = NONE
    sources: tuple[Source, ...] = ()
    degraded: tuple[Degraded, ...] = ()

    def records(self, partitions: Iterable[TopicPartition]) -> int | None:
        """End minus start, summed up; None if that of one is not known."""
        places = list(partitions)
        if not all(at in self.ends and at in self.starts for at in places):
            return None
        return sum(self.ends[at] - self.starts[at] for at in places)

    def size(self, partitions: Iterable[TopicPartition]) -> int | None:
        places = list(partitions)
        return sum(self.sizes[at] for at in places) if all(at in self.sizes for at in places) else None


def _offset(which: int, isolation: Isolation = "read_uncommitted") -> Question:
    async def listed(client: Client, leaders: Known) -> Outcomes[int]:
        outcomes = await try_list_offsets(client, dict.fromkeys(leaders, which), isolation=isolation)
        return {at: each if isinstance(each, ClientError) else each.offset for at, each in outcomes.items()}

    return listed


QUESTIONS: Final[Mapping[str, Question]] = {
    ENDS: _offset(LATEST),
    STARTS: _offset(EARLIEST),
    SIZES: try_leader_sizes,
    STABLE_ENDS: _offset(LATEST, "read_committed"),
}
"""The most important first, in the order of the fields of `Measures`."""


async def measure(
    context: PageContext, leaders: Known, wanted: Sequence[str] = tuple(QUESTIONS), requests_max: int = REQUESTS_MAX
) -> Measures:
    """The answers to some of the questions. `leaders` are the partitions that have one, with its id."""
    if not leaders:
        return Measures()
    affordable = requests_max // leaders_in(leaders)
    asked_for = wanted[:affordable]
    left_out = [Degraded(what, "there are too many leaders for one page") for what in wanted[affordable:]]

    async def work(client: Client) -> list[Outcomes[int]]:
        return await client.together(QUESTIONS[what](client, leaders) for what in asked_for)

    key = ("offsets and sizes", tuple(sorted(leaders)), tuple(asked_for))
    asked = await load_part(context, "offsets and sizes", key, work)
    outcomes = dict(zip(asked_for, asked.value or (), strict=False))
    ends, starts, sizes, stable = (_known(outcomes.get(what, {})) for what in QUESTIONS)
    _remember(context, ends, asked.sources)
    troubles = [
        Degraded(what, why) for what in outcomes if (why := _trouble(context, what, outcomes[what])) is not None
    ]
    trouble = (*asked.degraded, *troubles, *left_out)
    return Measures(ends, starts, sizes, stable, tuple(asked.sources), trouble)


def leaders_in(leaders: Known) -> int:
    """How many requests a question takes."""
    return len(set(leaders.values()))


def _remember(context: PageContext, ends: Known, sources: Sequence[Source]) -> None:
    """Ends of whole topics tell how fast they grow."""
    state = context.watcher.state
    topics = {at.topic: seen for at in ends if (seen := state.topic(at.topic)) is not None}
    counts = {name: len(seen.fact.partitions) for name, seen in topics.items()}
    for each in sources:
        context.watcher.ends.take(context.now_ms - (each.age_ms or 0), ends, counts)


def _known(outcomes: Outcomes[int]) -> Known:
    return {at: each for at, each in outcomes.items() if not isinstance(each, ClientError) and each >= 0}


def _trouble(context: PageContext, what: str, outcomes: Outcomes[int]) -> str | None:
    """Why some are missing: the first reason, and of how many."""
    errors = {at: each for at, each in outcomes.items() if isinstance(each, ClientError)}
    for at, error in errors.items():
        others = f" (and {len(errors) - 1} other partitions)" if len(errors) > 1 else ""
        right = "DESCRIBE on the cluster" if what == SIZES else f'DESCRIBE on Topic "{at.topic}"'
        return f"{at}{others}: {why_not(error, context.watcher.principal, right)}"
    return None
