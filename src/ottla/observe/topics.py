"""Reads samples from a topic."""

from __future__ import annotations

import msgspec

from ottla.client import EARLIEST, LATEST, Client, fetch
from ottla.client.offsets import list_offsets
from ottla.health.samples import Sample, decode

__all__ = ["read_topic"]


async def read_topic(client: Client, topic: str, since_ms: int | None = None) -> list[Sample]:
    """The samples that were taken since a moment, ordered by time. Other records are skipped, and so are duplicates."""

    partitions = (await client.topics([topic]))[topic].partitions
    which = EARLIEST if since_ms is None else since_ms
    starts = await list_offsets(client, {(topic, number): which for number in partitions})
    wanted = {at: each.offset for at, each in starts.items() if each.offset >= 0}
    found: dict[tuple[str, int], Sample] = {}
    async for record in fetch(client, wanted, until=LATEST):
        try:
            sample = decode(record.value or b"")
        except msgspec.MsgspecError:
            continue
        found.setdefault((sample.observer, sample.seq), sample)
    return sorted(found.values(), key=lambda each: (each.ts, each.observer, each.seq))
