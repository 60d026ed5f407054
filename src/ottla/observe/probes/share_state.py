"""The probe of share-group state: reads what was appended to `__share_group_state` since the last probe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ottla.client import LATEST, ClientError, ConsumerRecord, ResponseError, TopicPartition, fetch
from ottla.client.offsets import ListedOffset, try_list_offsets
from ottla.health.facts import Coverage, ShareState, StateBatch
from ottla.observe.memory import ProbeContext
from ottla.observe.probe_result import ProbeResult, not_visible, probe_result
from ottla.wire import WireError, uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import SHARE_TOPIC, decode_keyed
from ottla.wire.types.share_state import ShareSnapshotValue, ShareUpdateValue

__all__ = ["probe_share_state", "state_fact"]

RECORDS_PER_PROBE: Final = 5_000
DENIED: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})


async def probe_share_state(ctx: ProbeContext) -> list[ProbeResult]:
    topic = ctx.memory.topics.get(SHARE_TOPIC)
    if topic is None:
        return [_absent(ctx)]
    partitions = [TopicPartition(SHARE_TOPIC, number) for number, each in topic.partitions.items() if each.leader >= 0]
    try:
        ends = await _ends(ctx, partitions)
        records = await _read(ctx, ends)
    except ResponseError as error:
        if error.code not in DENIED:
            raise
        return [not_visible("share_state", f"needs READ on {SHARE_TOPIC} (error: {ctx.error_of(error)})")]
    names = {known.topic_id: name for name, known in ctx.memory.topics.items()}
    facts = (state_fact(record, names) for record in records)
    return [probe_result("share_state", Coverage(what="share_state", visible=True)),
            *(probe_result(f"{each.group}:{each.topic or each.topic_id}-{each.partition}", each)
              for each in facts if each is not None)]  # fmt: skip


def _absent(ctx: ProbeContext) -> ProbeResult:
    if any(each.type == "share" for each in ctx.memory.groups):
        return not_visible("share_state", f"needs DESCRIBE and READ on {SHARE_TOPIC}, which is not visible")
    return probe_result("share_state", Coverage(what="share_state", visible=True))  # there are no share groups yet


async def _ends(ctx: ProbeContext, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    outcomes = await try_list_offsets(ctx.client, dict.fromkeys(partitions, LATEST))
    ends = {tp: each.offset for tp, each in outcomes.items() if isinstance(each, ListedOffset)}
    failures = [each for each in outcomes.values() if isinstance(each, ClientError)]
    if failures and not ends:
        raise failures[0]
    return ends


async def _read(ctx: ProbeContext, ends: dict[TopicPartition, int]) -> list[ConsumerRecord]:
    """The records since the last probe. A partition that was not known before is read from its end on, and so is one
    whose log was truncated."""
    tail = ctx.memory.tail
    start = {tp: tail[tp] for tp, end in ends.items() if tail.get(tp, end) < end}
    records: list[ConsumerRecord] = []
    if start:
        async for record in fetch(ctx.client, start, until={tp: ends[tp] for tp in start}):
            records.append(record)
            tail[TopicPartition(record.topic, record.partition)] = record.offset + 1
            if len(records) >= RECORDS_PER_PROBE:
                return records  # the next probe reads the rest
    tail.update(ends)
    return records


def state_fact(record: ConsumerRecord, names: dict[bytes, str]) -> ShareState | None:
    """The fact in a record; None for a tombstone and for records of other types."""
    if record.key is None or record.value is None:
        return None
    try:
        decoded = decode_keyed(SHARE_TOPIC, record.key, record.value)
    except WireError:
        return None
    value: Any = decoded.value
    if not isinstance(value, ShareSnapshotValue | ShareUpdateValue):
        return None
    key: Any = decoded.key
    return ShareState(
        group=key.group_id,
        topic=names.get(key.topic_id),
        topic_id=uuid_text(key.topic_id),
        partition=key.partition,
        record=type(value).__name__.removesuffix("Value"),
        start=None if value.start_offset < 0 else value.start_offset,
        batches=tuple(_batches(value)),
        written_ms=record.timestamp_ms,
        offset=record.offset,
        delivery_complete=None if value.delivery_complete_count < 0 else value.delivery_complete_count,
    )


def _batches(value: ShareSnapshotValue | ShareUpdateValue) -> Iterator[StateBatch]:
    for each in value.state_batches:
        yield StateBatch(
            first=each.first_offset, last=each.last_offset, state=each.delivery_state, count=each.delivery_count
        )
