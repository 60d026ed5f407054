"""Reads windows from the inspect listeners of ottla brokers, or from the records of `__share_group_state`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.share.window import Window, live_windows, stored_window

if TYPE_CHECKING:
    from ottla.cli.share.find import Standing
    from ottla.client import Client, TopicPartition
    from ottla.core.share.state.kept import Kept, Key
    from ottla.wire.keyed import KeyedRecord

STATE_TOPIC: Final = "__share_group_state"


async def windows(client: Client, group_id: str, standings: Iterable[Standing]) -> list[Window]:
    """The windows of these partitions, in order: live ones from brokers, else those from records."""
    wanted = {each.at: each for each in standings}
    live = {each.at: each for each in await _live(client, group_id) if each.at in wanted}
    rest = [each for at, each in wanted.items() if at not in live]
    stored = await _stored(client, group_id, rest) if rest else {}
    return [live.get(at) or stored[at] for at in wanted]


# --- live -------------------------------------------------------------------------------------------------------------


async def _live(client: Client, group_id: str) -> list[Window]:
    from ottla.client.inspect_listener import inspect_addresses, read_json, share_url

    found: list[Window] = []
    for address in await inspect_addresses(client):
        url = share_url(address, group_id)
        try:
            found += live_windows(await read_json(client, url))
        except OSError as error:
            click.echo(f"ottla: {url} cannot be read: {error}", err=True)
    return found


# --- stored -----------------------------------------------------------------------------------------------------------


async def _stored(client: Client, group_id: str, standings: list[Standing]) -> dict[TopicPartition, Window]:
    from ottla.client import ResponseError
    from ottla.core.share.state.kept import Key

    keys = {each.at: Key(group_id, each.topic_id, each.at.partition) for each in standings}
    try:
        kept = await _replayed(client, set(keys.values()))
    except ResponseError as error:
        click.echo(f"ottla: {STATE_TOPIC} cannot be read: {error}", err=True)
        kept = {}
    return {at: stored_window(at, kept.get(key)) for at, key in keys.items()}


async def _replayed(client: Client, keys: set[Key]) -> dict[Key, Kept]:
    """The state of these keys, from the records of their partitions."""
    from ottla.client import EARLIEST, LATEST, fetch
    from ottla.core.coordinator.partitioner import partition_for
    from ottla.wire import uuid_text
    from ottla.wire.keyed import decode_keyed

    count = len((await client.topics([STATE_TOPIC]))[STATE_TOPIC].partitions)
    places = {partition_for(f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}", count) for key in keys}
    kept: dict[Key, Kept] = {}
    async for record in fetch(client, {(STATE_TOPIC, place): EARLIEST for place in places}, until=LATEST):
        if record.key is not None:
            _replay(kept, keys, decode_keyed(STATE_TOPIC, record.key, record.value))
    return kept


def _replay(kept: dict[Key, Kept], keys: set[Key], record: KeyedRecord) -> None:
    from ottla.core.share.state.kept import Key, of_snapshot, updated
    from ottla.wire.types.share_state import ShareSnapshotValue, ShareUpdateValue

    told: Any = record.key
    key = Key(told.group_id, told.topic_id, told.partition)
    if key not in keys:
        return
    if isinstance(record.value, ShareSnapshotValue):
        kept[key] = of_snapshot(record.value)
    elif isinstance(record.value, ShareUpdateValue):
        kept[key] = updated(kept.get(key), record.value)
    else:
        kept.pop(key, None)
