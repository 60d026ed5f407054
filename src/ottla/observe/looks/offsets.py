"""How far groups have come, and where the partitions begin and end.

These are asked for one after the other while all of them move. So where a partition begins is asked before what was
committed, and where it ends after it: whatever happens meanwhile, no group seems to have lost records, or to be ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.client import EARLIEST, LATEST, ClientError, TopicPartition
from ottla.client.group_offsets import Committed, try_committed
from ottla.client.groups import ListedGroup
from ottla.client.lag import times_at
from ottla.client.offsets import MAX_TIMESTAMP, Isolation, ListedOffset, try_list_offsets
from ottla.client.share.offsets import ShareOffset, try_describe_offsets
from ottla.health.facts import Lag, ShareOffsets
from ottla.observe.looks.parting import Parted, parted
from ottla.observe.memory import Moment, Timed, by_coordinator, rounds
from ottla.observe.sighting import Sighting, sight
from ottla.wire import uuid_text

__all__ = ["look_at_lag", "look_at_share_offsets"]

TIMED_EVERY_MS: Final = 30_000
MAX_TIMESTAMP_VERSION: Final = 7
COMMITTING: Final = frozenset({"classic", "consumer", "streams"})


class Ends(NamedTuple):
    """A partition's offsets; None is what could not be found out."""

    log_start: int | None = None
    high_watermark: int | None = None
    last_stable: int | None = None
    max_ts: int | None = None


async def look_at_lag(at: Moment) -> list[Sighting]:
    groups = [each for each in at.memory.groups if each.type in COMMITTING]
    starts = await _asked(at, at.memory.committed_places, EARLIEST)
    committed, seen = await _committed(at, groups)
    new = _places(committed) - starts.keys()
    if new:
        starts |= await _asked(at, new, EARLIEST)
        committed, seen = await _committed(at, groups)
    at.memory.committed_places = _places(committed)
    ends = await _ends(at, at.memory.committed_places, starts)
    for name, offsets in committed.items():
        times = await _times(at, name, offsets, ends)
        seen += [sight(f"{name}:{place}", _lag(at, name, place, each, ends[place], times.get(place)))
                 for place, each in offsets.items()]  # fmt: skip
    return seen


async def _committed(at: Moment, groups: list[ListedGroup]) -> Parted[dict[TopicPartition, Committed]]:
    outcomes: dict[str, dict[TopicPartition, Committed] | ClientError] = {}
    for node_id, names in by_coordinator(groups):
        outcomes |= await try_committed(at.client, node_id, names)
    return parted(at, "lag", outcomes)


def _places(committed: Mapping[str, Mapping[TopicPartition, object]]) -> set[TopicPartition]:
    return {place for offsets in committed.values() for place in offsets}


def _lag(at: Moment, group: str, place: TopicPartition, each: Committed, ends: Ends, time_ms: int | None) -> Lag:
    return Lag(
        group=group,
        topic=place.topic,
        partition=place.partition,
        committed=each.offset,
        log_start=ends.log_start,
        high_watermark=ends.high_watermark,
        last_stable=ends.last_stable,
        committed_ts=time_ms,
        max_ts=ends.max_ts,
        leader_epoch=None if each.leader_epoch < 0 else each.leader_epoch,
        topic_id=_id(at, place.topic),
    )


def _id(at: Moment, topic: str) -> str | None:
    topic_id = at.memory.topic_id(topic)
    return None if topic_id is None else uuid_text(topic_id)


# --- ends -------------------------------------------------------------------------------------------------------------


async def _asked(at: Moment, places: set[TopicPartition], which: int) -> dict[TopicPartition, int | None]:
    """Where all these partitions begin, or end."""
    found: dict[TopicPartition, int | None] = dict.fromkeys(places)
    for some in _rounds(at, places):
        found |= await _offsets(at, some, which)
    return found


async def _ends(
    at: Moment, places: set[TopicPartition], starts: Mapping[TopicPartition, int | None]
) -> dict[TopicPartition, Ends]:
    ends = {place: Ends(starts.get(place)) for place in places}
    for some in _rounds(at, places):
        latest = await _offsets(at, some, LATEST)
        stable = await _offsets(at, some, LATEST, "read_committed")
        newest = await _newest(at, some)
        ends |= {place: Ends(starts.get(place), latest[place], stable[place], newest.get(place)) for place in some}
    return ends


def _rounds(at: Moment, places: set[TopicPartition]) -> Iterator[list[TopicPartition]]:
    """So many at a time as is allowed. Those of topics that are gone, or that have no leader, are not asked for."""
    return rounds((place for place in places if _has_leader(at, place)), at.bounds.partitions_per_round)


def _has_leader(at: Moment, place: TopicPartition) -> bool:
    topic = at.memory.topics.get(place.topic)
    partition = None if topic is None else topic.partitions.get(place.partition)
    return partition is not None and partition.leader >= 0


async def _offsets(
    at: Moment, some: list[TopicPartition], which: int, isolation: Isolation = "read_uncommitted"
) -> Mapping[TopicPartition, int | None]:
    outcomes = await try_list_offsets(at.client, dict.fromkeys(some, which), isolation=isolation)
    return {place: each.offset if isinstance(each, ListedOffset) else None for place, each in outcomes.items()}


async def _newest(at: Moment, some: list[TopicPartition]) -> Mapping[TopicPartition, int]:
    """The latest timestamps, where brokers can tell them (from 3.0 on)."""
    if at.memory.apis.get("ListOffsets", 0) < MAX_TIMESTAMP_VERSION:
        return {}
    outcomes = await try_list_offsets(at.client, dict.fromkeys(some, MAX_TIMESTAMP))
    return {
        place: each.timestamp_ms
        for place, each in outcomes.items()
        if isinstance(each, ListedOffset) and each.timestamp_ms >= 0
    }


# --- times ------------------------------------------------------------------------------------------------------------


async def _times(
    at: Moment, group: str, offsets: Mapping[TopicPartition, Committed], ends: Mapping[TopicPartition, Ends]
) -> dict[TopicPartition, int]:
    """When the last record that was committed had been written; read at most every 30 s, where the group is behind."""
    behind = {place: each.offset - 1 for place, each in offsets.items() if _is_behind(each.offset, ends[place])}
    stale = {place: offset for place, offset in behind.items() if _is_stale(at, group, place, offset)}
    for some in rounds(stale, at.bounds.partitions_per_round):
        read = await times_at(at.client, {place: stale[place] for place in some})
        for place in some:
            time_ms = read.get(place)
            timed = Timed(stale[place], time_ms if isinstance(time_ms, int) else None, at.now_ms)
            at.memory.times.pop((group, place))
            at.memory.times.touch((group, place), lambda timed=timed: timed)  # type: ignore[misc]
    known = {place: at.memory.times.get((group, place)) for place in behind}
    return {place: timed.time_ms for place, timed in known.items()
            if timed is not None and timed.time_ms is not None and timed.offset == behind[place]}  # fmt: skip


def _is_behind(offset: int, ends: Ends) -> bool:
    is_kept = ends.log_start is not None and offset - 1 >= ends.log_start
    return is_kept and ends.high_watermark is not None and offset < ends.high_watermark


def _is_stale(at: Moment, group: str, place: TopicPartition, offset: int) -> bool:
    known = at.memory.times.get((group, place))
    if known is None:
        return True
    is_other = known.offset != offset or known.time_ms is None
    return is_other and at.now_ms - known.read_at_ms >= TIMED_EVERY_MS


# --- share groups -----------------------------------------------------------------------------------------------------


async def look_at_share_offsets(at: Moment) -> list[Sighting]:
    groups = [each for each in at.memory.groups if each.type == "share"]
    outcomes: dict[str, dict[TopicPartition, ShareOffset] | ClientError] = {}
    for node_id, names in by_coordinator(groups):
        outcomes |= await try_describe_offsets(at.client, node_id, names)
    known, seen = parted(at, "share_offsets", outcomes)
    ends = await _asked(at, _places(known), LATEST)
    for name, offsets in known.items():
        seen += [sight(f"{name}:{place}", _share(name, place, each, ends[place])) for place, each in offsets.items()]
    return seen


def _share(group: str, place: TopicPartition, each: ShareOffset, high_watermark: int | None) -> ShareOffsets:
    return ShareOffsets(
        group=group,
        topic=place.topic,
        partition=place.partition,
        start=each.start_offset,
        lag=each.lag,
        high_watermark=high_watermark,
        leader_epoch=None if each.leader_epoch < 0 else each.leader_epoch,
        topic_id=uuid_text(each.topic_id),
    )
