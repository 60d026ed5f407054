"""How tasks of a streams group are coloured: by the member that has them, by its process, or by their lag.

A letter or a digit stands beside each colour, because colours repeat after eight and not everybody sees them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.console.group_members import TaskMark
from ottla.health.phrases import number

__all__ = ["WAYS", "TaskColours", "Tone", "by_lag", "by_member", "by_process"]

WAYS: Final = ("member", "process", "lag")
HUES: Final = 8
LAG_STEPS: Final = (1, 100, 10_000, 1_000_000)
"""Where each level of lag but the first begins."""
LAG_WORDS: Final = ("none behind", "up to 99", "up to 9,999", "up to 999,999", "a million or more")


class Tone(NamedTuple):
    letter: str
    hue: str
    """The class of its colour."""
    words: str
    """Whose colour it is, or what it says."""


UNKNOWN: Final = Tone("?", "", "not known")


class TaskColours(NamedTuple):
    of: Callable[[TaskMark], Tone]
    legend: Sequence[Tone]


def by_member(members: Sequence[tuple[str, str]]) -> TaskColours:
    """`members` are ids and names."""
    tones = {member: _tone(at, name) for at, (member, name) in enumerate(members)}
    return TaskColours(lambda mark: tones.get(mark.member, UNKNOWN), list(tones.values()))


def by_process(processes: Mapping[str, str | None]) -> TaskColours:
    """`processes` are members with the id of the process that each is a thread of."""
    known = list(dict.fromkeys(filter(None, processes.values())))
    tones = {process: _tone(at, f"process {process}") for at, process in enumerate(known)}
    return TaskColours(lambda mark: tones.get(processes.get(mark.member) or "", UNKNOWN), list(tones.values()))


def by_lag(lags: Mapping[str, int]) -> TaskColours:
    """`lags` are tasks with the records that they are behind."""

    def tone_of(mark: TaskMark) -> Tone:
        lag = lags.get(mark.task)
        if lag is None:
            return UNKNOWN
        level = bisect_right(LAG_STEPS, lag)
        return Tone(str(level), f"s{level}", f"{number(lag)} behind")

    return TaskColours(tone_of, [Tone(str(level), f"s{level}", words) for level, words in enumerate(LAG_WORDS)])


def _tone(at: int, name: str) -> Tone:
    """A to Z, then A2 and so on."""
    turn, place = divmod(at, 26)
    return Tone(chr(ord("A") + place) + (str(turn + 1) if turn else ""), f"h{at % HUES}", name)
