"""The probe of groups of all types: lists them, and asks their coordinators to describe them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ottla.client.errors import ClientError, ResponseError
from ottla.client.groups import ListedGroup, try_describe, try_list
from ottla.health.facts import Group
from ottla.observe.coverage import lists_types
from ottla.observe.group_facts import group_fact, with_topic_ids
from ottla.observe.memory import ProbeContext
from ottla.observe.probe_result import NODE_UNREACHABLE, ProbeResult, not_visible, probe_error, probe_result
from ottla.observe.probes.partial_results import by_node, split_errors
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode

__all__ = ["probe_groups"]

DESCRIBED_EVERY_MS: Final = 60_000
GONE_MEANWHILE: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NOT_COORDINATOR})
KINDS: Final = frozenset({"classic", "consumer", "share", "streams"})


async def probe_groups(ctx: ProbeContext) -> list[ProbeResult]:
    lists, refused = split_errors(ctx, "group", by_node(await try_list(ctx.client)))
    listed = sorted(group for groups in lists.values() for group in groups)
    ctx.memory.groups = [each for each in listed if each.type in KINDS][: ctx.bounds.groups]
    gone = ctx.memory.groups_present.take(ctx.now_ms, {each.group_id for each in listed}, is_complete=not refused)
    return [*refused, *gone, *await _described(ctx), *_left_out(ctx, listed)]


async def _described(ctx: ProbeContext) -> list[ProbeResult]:
    since_ms = ctx.memory.described_at_ms
    with_descriptions = since_ms is None or ctx.now_ms - since_ms >= DESCRIBED_EVERY_MS
    outcomes = await try_describe(ctx.client, ctx.memory.groups, with_descriptions=with_descriptions)
    if with_descriptions:
        ctx.memory.described_at_ms = ctx.now_ms
        ctx.memory.descriptions = {}
    ids = {name: uuid_text(topic.topic_id) for name, topic in ctx.memory.topics.items()}
    results = []
    for name, outcome in outcomes.items():
        if not isinstance(outcome, ClientError):
            fact = _with_description(ctx, group_fact(*outcome))
            results.append(probe_result(name, with_topic_ids(fact, ids) if fact.type == "classic" else fact))
        elif not (isinstance(outcome, ResponseError) and outcome.code in GONE_MEANWHILE):
            results.append(probe_error("group", name, ctx.error_of(outcome)))
    return _without_outages(results)


def _with_description(ctx: ProbeContext, fact: Group) -> Group:
    """Add the last known topology description, which is requested only once in a while."""
    if fact.topology_description is not None:
        ctx.memory.descriptions[fact.group] = fact.topology_description
    known = ctx.memory.descriptions.get(fact.group)
    return msgspec.structs.replace(fact, topology_description=known) if known is not None else fact


def _without_outages(results: list[ProbeResult]) -> list[ProbeResult]:
    """Leave out groups whose coordinator does not answer: the probe of the cluster reports the outage once."""
    return [each for each in results if each.error not in {NODE_UNREACHABLE, "UNREACHABLE"}]


def _left_out(ctx: ProbeContext, listed: list[ListedGroup]) -> Iterator[ProbeResult]:
    if len(listed) > ctx.bounds.groups:
        why = f"only {ctx.bounds.groups} of {len(listed)} groups are sampled, the first by name"
        yield not_visible("group.rest", why)
    if not lists_types(ctx.memory.apis):
        yield not_visible(
            "group.types", "group types are unknown: this cluster lists groups without them (before Kafka 3.8)"
        )
