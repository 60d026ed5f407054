"""Reads windows of share groups: from the inspect listeners of ottla brokers, or from records of
`__share_group_state`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from ottla.client import EARLIEST, LATEST, Client, ResponseError, TopicPartition, fetch
from ottla.client.inspect_listener import inspect_addresses, read_json, share_url
from ottla.core.coordinator.partitioner import partition_for
from ottla.core.share.state.kept import Kept, Key, of_snapshot, updated
from ottla.inflight.window import Window, live_windows, stored_window
from ottla.wire import WireError, uuid_text
from ottla.wire.keyed import SHARE_TOPIC, KeyedRecord, decode_keyed
from ottla.wire.types.share_state import ShareSnapshotValue, ShareUpdateValue

__all__ = ["windows"]


class _Stored(NamedTuple):
    kept: Kept
    written_ms: int


async def windows(
    client: Client,
    group_id: str,
    topic_ids: Mapping[TopicPartition, bytes],
    on_failure: Callable[[str], object],
) -> list[Window]:
    """The windows of these partitions, in order: live ones from brokers, else those from records.

    A source that cannot be read is told to `on_failure`, and the next one is tried.
    """
    live = {each.at: each for each in await _live(client, group_id, on_failure) if each.at in topic_ids}
    rest = {at: Key(group_id, each, at.partition) for at, each in topic_ids.items() if at not in live}
    stored = await _stored(client, rest, on_failure) if rest else {}
    return [live.get(at) or stored[at] for at in topic_ids]


# --- live -------------------------------------------------------------------------------------------------------------


async def _live(client: Client, group_id: str, on_failure: Callable[[str], object]) -> list[Window]:
    found: list[Window] = []
    for address in await inspect_addresses(client):
        url = share_url(address, group_id)
        try:
            found += live_windows(await read_json(client, url))
        except OSError as error:
            on_failure(f"{url} cannot be read: {error}")
    return found


# --- stored -----------------------------------------------------------------------------------------------------------


async def _stored(
    client: Client, keys: Mapping[TopicPartition, Key], on_failure: Callable[[str], object]
) -> dict[TopicPartition, Window]:
    try:
        found = await _replayed(client, set(keys.values()))
    except (ResponseError, WireError) as error:
        on_failure(f"{SHARE_TOPIC} cannot be read: {error}")
        found = {}
    return {at: stored_window(at, *found.get(key, (None, None))) for at, key in keys.items()}


async def _replayed(client: Client, keys: Collection[Key]) -> dict[Key, _Stored]:
    """The state of these keys, from the records of their partitions."""
    count = len((await client.topics([SHARE_TOPIC]))[SHARE_TOPIC].partitions)
    places = {partition_for(f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}", count) for key in keys}
    found: dict[Key, _Stored] = {}
    async for record in fetch(client, {(SHARE_TOPIC, place): EARLIEST for place in places}, until=LATEST):
        if record.key is not None:
            _replay(found, keys, decode_keyed(SHARE_TOPIC, record.key, record.value), record.timestamp_ms)
    return found


def _replay(found: dict[Key, _Stored], keys: Collection[Key], record: KeyedRecord, written_ms: int) -> None:
    told: Any = record.key
    key = Key(told.group_id, told.topic_id, told.partition)
    if key not in keys:
        return
    before = found.get(key)
    if isinstance(record.value, ShareSnapshotValue):
        found[key] = _Stored(of_snapshot(record.value), written_ms)
    elif isinstance(record.value, ShareUpdateValue):
        found[key] = _Stored(updated(None if before is None else before.kept, record.value), written_ms)
    else:
        found.pop(key, None)
