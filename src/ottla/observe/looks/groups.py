"""Groups of all kinds: which there are, and what their coordinators say of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ottla.client.errors import ClientError, ResponseError
from ottla.client.groups import ListedGroup, try_describe, try_list
from ottla.health.facts import Group
from ottla.observe.coverage import lists_types
from ottla.observe.group_facts import group_fact, with_topic_ids
from ottla.observe.looks.parting import by_node, parted
from ottla.observe.memory import Moment
from ottla.observe.sighting import NODE_UNREACHABLE, Sighting, cannot_see, no_sight, sight
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode

__all__ = ["look_at_groups"]

DESCRIBED_EVERY_MS: Final = 60_000
GONE_MEANWHILE: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NOT_COORDINATOR})
KINDS: Final = frozenset({"classic", "consumer", "share", "streams"})


async def look_at_groups(at: Moment) -> list[Sighting]:
    lists, refused = parted(at, "group", by_node(await try_list(at.client)))
    listed = sorted(group for groups in lists.values() for group in groups)
    at.memory.groups = [each for each in listed if each.type in KINDS][: at.bounds.groups]
    gone = at.memory.groups_present.take(at.now_ms, {each.group_id for each in listed}, is_complete=not refused)
    return [*refused, *gone, *await _described(at), *_left_out(at, listed)]


async def _described(at: Moment) -> list[Sighting]:
    since_ms = at.memory.described_at_ms
    with_descriptions = since_ms is None or at.now_ms - since_ms >= DESCRIBED_EVERY_MS
    outcomes = await try_describe(at.client, at.memory.groups, with_descriptions=with_descriptions)
    if with_descriptions:
        at.memory.described_at_ms = at.now_ms
        at.memory.descriptions = {}
    ids = {name: uuid_text(topic.topic_id) for name, topic in at.memory.topics.items()}
    seen = []
    for name, outcome in outcomes.items():
        if not isinstance(outcome, ClientError):
            fact = _with_description(at, group_fact(*outcome))
            seen.append(sight(name, with_topic_ids(fact, ids) if fact.type == "classic" else fact))
        elif not (isinstance(outcome, ResponseError) and outcome.code in GONE_MEANWHILE):
            seen.append(no_sight("group", name, at.error_of(outcome)))
    return _told_once(seen)


def _with_description(at: Moment, fact: Group) -> Group:
    """What was said of a topology's description last; it is asked for once in a while only."""
    if fact.topology_description is not None:
        at.memory.descriptions[fact.group] = fact.topology_description
    known = at.memory.descriptions.get(fact.group)
    return msgspec.structs.replace(fact, topology_description=known) if known is not None else fact


def _told_once(seen: list[Sighting]) -> list[Sighting]:
    """While nobody answers, nothing is known of any group: that is said by the look as a whole."""
    return [each for each in seen if each.error not in {NODE_UNREACHABLE, "UNREACHABLE"}]


def _left_out(at: Moment, listed: list[ListedGroup]) -> Iterator[Sighting]:
    if len(listed) > at.bounds.groups:
        why = f"only {at.bounds.groups} of {len(listed)} groups are sampled, the first by name"
        yield cannot_see("group.rest", why)
    if not lists_types(at.memory.apis):
        yield cannot_see("group.types", "kind unknown: this cluster lists groups without types (before Kafka 3.8)")
