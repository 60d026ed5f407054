"""Offsets that many groups commit, and what a cluster shows of them."""

from __future__ import annotations

from ottla.client import Client, TopicPartition
from ottla.client import groups as client_groups
from ottla.client.group_offsets import Committed, commit, committed, delete_offsets

ORDERS = [TopicPartition("orders", index) for index in range(3)]

Found = tuple[dict[str, dict[TopicPartition, Committed]], list[tuple[str, str, str, str]]]


async def found(client: Client) -> Found:
    """The offsets of all groups, and what is listed of them."""
    listed = await client_groups.list_groups(client)
    offsets = {each.group_id: await committed(client, each.group_id) for each in listed}
    return offsets, [each[:4] for each in listed]


async def change(client: Client, round_: int) -> None:
    """Commits to many groups, some of them only to be deleted again."""
    for number in range(12):
        group = f"group-{number}"
        offsets = {at: Committed(10 * round_ + number + at.partition, 0, f"round {round_}") for at in ORDERS}
        outcomes = await commit(client, group, offsets)
        assert set(outcomes.values()) == {None}, outcomes
    await commit(client, f"gone-{round_}", dict.fromkeys(ORDERS, 5))
    await client_groups.delete(client, f"gone-{round_}")
    await delete_offsets(client, f"group-{round_}", ORDERS[:1])
