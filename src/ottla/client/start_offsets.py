"""Where to begin to read: `beginning`, `end`, an offset, N records before the end, a time, or how long ago."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.client.client import Client
from ottla.client.metadata import TopicPartition
from ottla.client.offsets import list_offsets
from ottla.client.times import TimeTextError, parse_time_ms, time_ago_ms

__all__ = ["BEGINNING", "END", "StartOffsetError", "start_offsets"]

BEGINNING: Final = "beginning"
END: Final = "end"
PARTITIONS_NAMED_MAX: Final = 5
_DIGITS_MAX: Final = 18

Spans = Mapping[TopicPartition, tuple[int, int]]
"""Start and end offsets."""


class StartOffsetError(ValueError):
    """A text that is no place in these partitions, and what would be one."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}; {advice}")
        self.problem = problem
        self.advice = advice


async def start_offsets(client: Client, spans: Spans, place: str) -> dict[TopicPartition, int]:
    """The offset to begin at in each partition; partitions that do not have the place are left out."""
    if place == BEGINNING:
        return {at: start for at, (start, _) in spans.items()}
    if place == END:
        return {at: end for at, (_, end) in spans.items()}
    digits = place.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS_MAX:
        return _by_number(spans, int(digits), is_from_end=place.startswith("-"))
    return await _by_time(client, spans, _moment(place))


def _by_number(spans: Spans, wanted: int, *, is_from_end: bool) -> dict[TopicPartition, int]:
    if is_from_end:
        return {at: max(start, end - wanted) for at, (start, end) in spans.items()}
    chosen = {at: wanted for at, (start, end) in spans.items() if start <= wanted <= end}
    if not chosen:
        known = sorted(spans.items())[:PARTITIONS_NAMED_MAX]
        there = ", ".join(f"{at} has {start:,} to {end:,}" for at, (start, end) in known)
        raise StartOffsetError(f"no partition has the offset {wanted:,}", there)
    return chosen


async def _by_time(client: Client, spans: Spans, at_ms: int) -> dict[TopicPartition, int]:
    listed = await list_offsets(client, dict.fromkeys(spans, at_ms))
    return {at: each.offset if each.offset >= 0 else spans[at][1] for at, each in listed.items()}


def _moment(text: str) -> int:
    is_duration = text[-1:].isalpha() and text[:1].isdigit() and not text.endswith("Z")
    try:
        return time_ago_ms(text) if is_duration else parse_time_ms(text)
    except TimeTextError as error:
        raise StartOffsetError(error.problem, error.advice) from None
