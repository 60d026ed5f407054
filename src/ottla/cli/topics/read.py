"""Where commands begin to read a topic, and which records they want."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.cli.failure import Failure
from ottla.cli.topics.find import ends_of

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.filters import Filter
    from ottla.client.topics import TopicDescription


def compiled_filter(text: str | None) -> Filter | None:
    """The filter of --filter."""
    if text is None:
        return None
    from ottla.client.filters import FilterError, compile_filter

    try:
        return compile_filter(text)
    except FilterError as error:
        raise Failure(f"--filter: {error}", "for example 'value.amount > 100 and key ~ \"^eu-\"'") from None


async def first_offsets(
    client: Client, topic: TopicDescription, partitions: tuple[int, ...], place: str
) -> dict[TopicPartition, int]:
    """Where to begin in each partition, or in the named ones. `place` is the value of --from."""
    from ottla.client.start_offsets import StartOffsetError, start_offsets

    there = {each.partition for each in topic.partitions}
    absent = next((each for each in partitions if each not in there), None)
    if absent is not None:
        raise Failure(f"topic '{topic.name}' has no partition {absent}", f"it has {len(there)}, counted from 0")
    ends = await ends_of(client, [topic])
    spans = {
        at: (start, end)
        for at, (start, end) in ends.items()
        if start is not None and end is not None and (not partitions or at.partition in partitions)
    }
    try:
        return await start_offsets(client, spans, place)
    except StartOffsetError as error:
        raise Failure(error.problem, error.advice) from None
