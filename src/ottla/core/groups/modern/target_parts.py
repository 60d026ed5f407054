"""What an assignor must know of a large group, gathered in parts. The group may change from one part to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ottla.core.coordinator.contract import Topic, Topics
from ottla.core.groups.assignors import Target
from ottla.core.groups.assignors.computation import ENTRIES_MAX, MemberInput, TopicInput, part_of

__all__ = ["GatheredMember", "gather"]


class GatheredMember(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    names: frozenset[str]
    """What it subscribes to. Members with the same subscription share one object."""
    target: Target | None
    """None if it has none yet."""


def gather(
    names: Iterable[str],
    members: Iterable[GatheredMember],
    topics: Topics,
    describe: Callable[[Topic], TopicInput | None],
) -> Iterator[bytes]:
    """`names` are those of all topics that somebody subscribes to; `describe` tells what is sent of one, None if it
    plays no part."""
    ids: dict[str, bytes] = {}
    yield from _topic_parts(names, topics, describe, ids)
    yield from _member_parts(members, ids)


def _topic_parts(
    names: Iterable[str], topics: Topics, describe: Callable[[Topic], TopicInput | None], ids: dict[str, bytes]
) -> Iterator[bytes]:
    found: list[TopicInput] = []
    entry_count = 0
    for name in names:
        topic = topics.by_name(name)
        told = None if topic is None else describe(topic)
        if told is not None:
            ids[name] = told[0]
            found.append(told)
            entry_count += len(told[3])  # racks take their time
        entry_count += 1
        if entry_count >= ENTRIES_MAX:
            yield part_of(topics=found)
            found, entry_count = [], 0
    yield part_of(topics=found)


def _member_parts(members: Iterable[GatheredMember], ids: dict[str, bytes]) -> Iterator[bytes]:
    numbers: dict[frozenset[str], int] = {}
    subscriptions: list[list[bytes]] = []
    found: list[MemberInput] = []
    entry_count = 0
    for member_id, instance_id, rack_id, names, target in members:
        if names not in numbers:
            numbers[names] = len(numbers)
            subscriptions.append([ids[name] for name in names if name in ids])
            entry_count += len(names)
        found.append((member_id, instance_id, rack_id, numbers[names], target))
        entry_count += 1 + len(target or ())
        if entry_count >= ENTRIES_MAX:
            yield part_of(subscriptions=subscriptions, members=found)
            subscriptions, found, entry_count = [], [], 0
    yield part_of(subscriptions=subscriptions, members=found)
