"""Probes of committed offsets and lag, and of the offsets of share groups.

The requests follow one another while offsets move. Log start offsets are requested before committed offsets, and end
offsets after them, so that no group seems to have lost records or to be ahead of the log.
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
from ottla.observe.memory import ProbeContext, RecordTime, by_coordinator, rounds
from ottla.observe.probe_result import ProbeResult, probe_result
from ottla.observe.probes.partial_results import PartialResults, split_errors
from ottla.wire import uuid_text

__all__ = ["probe_lag", "probe_share_offsets"]

TIMED_EVERY_MS: Final = 30_000
MAX_TIMESTAMP_VERSION: Final = 7
COMMITTING: Final = frozenset({"classic", "consumer", "streams"})


class Ends(NamedTuple):
    """A partition's offsets; None where the request failed."""

    log_start: int | None = None
    high_watermark: int | None = None
    last_stable: int | None = None
    max_ts: int | None = None


async def probe_lag(ctx: ProbeContext) -> list[ProbeResult]:
    groups = [each for each in ctx.memory.groups if each.type in COMMITTING]
    starts = await _asked(ctx, ctx.memory.committed_partitions, EARLIEST)
    committed, results = await _committed(ctx, groups)
    new = _partitions(committed) - starts.keys()
    if new:
        starts |= await _asked(ctx, new, EARLIEST)
        committed, results = await _committed(ctx, groups)
    ctx.memory.committed_partitions = _partitions(committed)
    ends = await _ends(ctx, ctx.memory.committed_partitions, starts)
    for name, offsets in committed.items():
        behind = {tp: each.offset - 1 for tp, each in offsets.items() if _is_behind(each.offset, ends[tp])}
        times = await _times(ctx, name, behind)
        results += [probe_result(f"{name}:{tp}", _lag(ctx, name, tp, each, ends[tp], times.get(tp)))
                 for tp, each in offsets.items()]  # fmt: skip
    return results


async def _committed(ctx: ProbeContext, groups: list[ListedGroup]) -> PartialResults[dict[TopicPartition, Committed]]:
    outcomes: dict[str, dict[TopicPartition, Committed] | ClientError] = {}
    for node_id, names in by_coordinator(groups):
        outcomes |= await try_committed(ctx.client, node_id, names)
    return split_errors(ctx, "lag", outcomes)


def _partitions(committed: Mapping[str, Mapping[TopicPartition, object]]) -> set[TopicPartition]:
    return {tp for offsets in committed.values() for tp in offsets}


def _lag(ctx: ProbeContext, group: str, tp: TopicPartition, each: Committed, ends: Ends, time_ms: int | None) -> Lag:
    return Lag(
        group=group,
        topic=tp.topic,
        partition=tp.partition,
        committed=each.offset,
        log_start=ends.log_start,
        high_watermark=ends.high_watermark,
        last_stable=ends.last_stable,
        committed_ts=time_ms,
        max_ts=ends.max_ts,
        leader_epoch=None if each.leader_epoch < 0 else each.leader_epoch,
        topic_id=_id(ctx, tp.topic),
    )


def _id(ctx: ProbeContext, topic: str) -> str | None:
    topic_id = ctx.memory.topic_id(topic)
    return None if topic_id is None else uuid_text(topic_id)


# --- ends -------------------------------------------------------------------------------------------------------------


async def _asked(ctx: ProbeContext, partitions: set[TopicPartition], which: int) -> dict[TopicPartition, int | None]:
    """The earliest or latest offsets of these partitions; None if there is no leader or no answer."""
    found: dict[TopicPartition, int | None] = dict.fromkeys(partitions)
    for some in _rounds(ctx, partitions):
        found |= await _offsets(ctx, some, which)
    return found


async def _ends(
    ctx: ProbeContext, partitions: set[TopicPartition], starts: Mapping[TopicPartition, int | None]
) -> dict[TopicPartition, Ends]:
    ends = {tp: Ends(starts.get(tp)) for tp in partitions}
    for some in _rounds(ctx, partitions):
        latest = await _offsets(ctx, some, LATEST)
        stable = await _offsets(ctx, some, LATEST, "read_committed")
        newest = await _newest(ctx, some)
        ends |= {tp: Ends(starts.get(tp), latest[tp], stable[tp], newest.get(tp)) for tp in some}
    return ends


def _rounds(ctx: ProbeContext, partitions: set[TopicPartition]) -> Iterator[list[TopicPartition]]:
    """The partitions that have a leader, in lists of the size that one request may name."""
    return rounds((tp for tp in partitions if _has_leader(ctx, tp)), ctx.bounds.partitions_per_round)


def _has_leader(ctx: ProbeContext, tp: TopicPartition) -> bool:
    topic = ctx.memory.topics.get(tp.topic)
    partition = None if topic is None else topic.partitions.get(tp.partition)
    return partition is not None and partition.leader >= 0


async def _offsets(
    ctx: ProbeContext, some: list[TopicPartition], which: int, isolation: Isolation = "read_uncommitted"
) -> Mapping[TopicPartition, int | None]:
    outcomes = await try_list_offsets(ctx.client, dict.fromkeys(some, which), isolation=isolation)
    return {tp: each.offset if isinstance(each, ListedOffset) else None for tp, each in outcomes.items()}


async def _newest(ctx: ProbeContext, some: list[TopicPartition]) -> Mapping[TopicPartition, int]:
    """The largest timestamps, which brokers know from Kafka 3.0 on."""
    if ctx.memory.apis.get("ListOffsets", 0) < MAX_TIMESTAMP_VERSION:
        return {}
    outcomes = await try_list_offsets(ctx.client, dict.fromkeys(some, MAX_TIMESTAMP))
    return {
        tp: each.timestamp_ms
        for tp, each in outcomes.items()
        if isinstance(each, ListedOffset) and each.timestamp_ms >= 0
    }


# --- times ------------------------------------------------------------------------------------------------------------


async def _times(ctx: ProbeContext, group: str, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The timestamps of these records, by which a group's lag in seconds is known; read at most every 30 s."""
    stale = {tp: offset for tp, offset in wanted.items() if _is_stale(ctx, group, tp, offset)}
    for some in rounds(stale, ctx.bounds.partitions_per_round):
        read = await times_at(ctx.client, {tp: stale[tp] for tp in some})
        for tp in some:
            time_ms = read.get(tp)
            timed = RecordTime(stale[tp], time_ms if isinstance(time_ms, int) else None, ctx.now_ms)
            ctx.memory.times.pop((group, tp))
            ctx.memory.times.touch((group, tp), lambda timed=timed: timed)  # type: ignore[misc]
    known = {tp: ctx.memory.times.get((group, tp)) for tp in wanted}
    return {tp: timed.time_ms for tp, timed in known.items()
            if timed is not None and timed.time_ms is not None and timed.offset == wanted[tp]}  # fmt: skip


def _is_behind(offset: int, ends: Ends) -> bool:
    is_kept = ends.log_start is not None and offset - 1 >= ends.log_start
    return is_kept and ends.high_watermark is not None and offset < ends.high_watermark


def _is_stale(ctx: ProbeContext, group: str, tp: TopicPartition, offset: int) -> bool:
    known = ctx.memory.times.get((group, tp))
    if known is None:
        return True
    is_other = known.offset != offset or known.time_ms is None
    return is_other and ctx.now_ms - known.read_at_ms >= TIMED_EVERY_MS


# --- share groups -----------------------------------------------------------------------------------------------------


async def probe_share_offsets(ctx: ProbeContext) -> list[ProbeResult]:
    groups = [each for each in ctx.memory.groups if each.type == "share"]
    outcomes: dict[str, dict[TopicPartition, ShareOffset] | ClientError] = {}
    for node_id, names in by_coordinator(groups):
        outcomes |= await try_describe_offsets(ctx.client, node_id, names)
    known, results = split_errors(ctx, "share_offsets", outcomes)
    ends = await _asked(ctx, _partitions(known), LATEST)
    for name, offsets in known.items():
        behind = {tp: each.start_offset for tp, each in offsets.items() if each.start_offset is not None and each.lag}
        times = await _times(ctx, name, behind)
        results += [probe_result(f"{name}:{tp}", _share(name, tp, each, ends[tp], times.get(tp)))
                    for tp, each in offsets.items()]  # fmt: skip
    return results


def _share(
    group: str, tp: TopicPartition, each: ShareOffset, high_watermark: int | None, time_ms: int | None
) -> ShareOffsets:
    return ShareOffsets(
        group=group,
        topic=tp.topic,
        partition=tp.partition,
        start=each.start_offset,
        start_ts=time_ms,
        lag=each.lag,
        high_watermark=high_watermark,
        leader_epoch=None if each.leader_epoch < 0 else each.leader_epoch,
        topic_id=uuid_text(each.topic_id),
    )
