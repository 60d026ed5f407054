"""The tail of `__share_group_state`: what has become of records that share groups were given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ottla.client import LATEST, ClientError, ConsumerRecord, ResponseError, TopicPartition, fetch
from ottla.client.offsets import ListedOffset, try_list_offsets
from ottla.health.facts import Coverage, ShareState, StateBatch
from ottla.observe.memory import Moment
from ottla.observe.sighting import Sighting, cannot_see, sight
from ottla.wire import WireError, uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import decode_keyed
from ottla.wire.types.share_state import ShareSnapshotValue, ShareUpdateValue

__all__ = ["TOPIC", "look_at_share_state", "state_fact"]

TOPIC: Final = "__share_group_state"
RECORDS_PER_LOOK: Final = 5_000
DENIED: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})


async def look_at_share_state(at: Moment) -> list[Sighting]:
    topic = at.memory.topics.get(TOPIC)
    if topic is None:
        return [_absent(at)]
    places = [TopicPartition(TOPIC, number) for number, each in topic.partitions.items() if each.leader >= 0]
    try:
        ends = await _ends(at, places)
        records = await _read(at, ends)
    except ResponseError as error:
        if error.code not in DENIED:
            raise
        return [cannot_see("share_state", f"needs READ on {TOPIC} (answer: {at.error_of(error)})")]
    names = {known.topic_id: name for name, known in at.memory.topics.items()}
    facts = (state_fact(record, names) for record in records)
    return [sight("share_state", Coverage(what="share_state", visible=True)),
            *(sight(f"{each.group}:{each.topic or each.topic_id}-{each.partition}", each)
              for each in facts if each is not None)]  # fmt: skip


def _absent(at: Moment) -> Sighting:
    if any(each.type == "share" for each in at.memory.groups):
        return cannot_see("share_state", f"needs DESCRIBE and READ on {TOPIC}, which cannot be seen here")
    return sight("share_state", Coverage(what="share_state", visible=True))  # there are no share groups yet


async def _ends(at: Moment, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    outcomes = await try_list_offsets(at.client, dict.fromkeys(places, LATEST))
    ends = {place: each.offset for place, each in outcomes.items() if isinstance(each, ListedOffset)}
    failures = [each for each in outcomes.values() if isinstance(each, ClientError)]
    if failures and not ends:
        raise failures[0]
    return ends


async def _read(at: Moment, ends: dict[TopicPartition, int]) -> list[ConsumerRecord]:
    """What was written since the last look. A partition that is new to us is read from here on; one whose log was cut
    back meanwhile begins anew."""
    tail = at.memory.tail
    start = {place: tail[place] for place, end in ends.items() if tail.get(place, end) < end}
    records: list[ConsumerRecord] = []
    if start:
        async for record in fetch(at.client, start, until={place: ends[place] for place in start}):
            records.append(record)
            tail[TopicPartition(record.topic, record.partition)] = record.offset + 1
            if len(records) >= RECORDS_PER_LOOK:
                return records  # the rest comes with the next look
    tail.update(ends)
    return records


def state_fact(record: ConsumerRecord, names: dict[bytes, str]) -> ShareState | None:
    """What a record says; None for what is no record of a share group's state, or deletes one."""
    if record.key is None or record.value is None:
        return None
    try:
        decoded = decode_keyed(TOPIC, record.key, record.value)
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
