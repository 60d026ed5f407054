"""Finds the group that a page is about, and how far it is behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

import msgspec

from ottla.client import Client
from ottla.client.errors import ResponseError
from ottla.client.groups import described_by
from ottla.console.page import BadQueryError, NotFoundError, PageContext, Source
from ottla.health.facts import Group
from ottla.health.lag_history import lag_of
from ottla.health.phrases import clock, plural
from ottla.observe.cluster_state import ClusterState
from ottla.observe.group_facts import group_fact
from ottla.wire.errors import ErrorCode

__all__ = ["FoundGroup", "LagSum", "ask_about_group", "find_group", "find_group_of", "lag_sum"]

T = TypeVar("T")


class FoundGroup(NamedTuple):
    fact: Group
    source: Source


class LagSum(msgspec.Struct, frozen=True):
    """The lag of a group over its partitions."""

    records: int | None
    partitions: int
    unknown: int
    """In how many partitions the lag is not known."""


async def find_group(context: PageContext) -> FoundGroup:
    """The group as it was last seen; one that no sample has shown yet is asked for. NotFoundError if there is none."""
    name = context.names["group"]
    seen = context.watcher.state.group(name)
    if seen is not None:
        return FoundGroup(seen.fact, context.source("group"))
    described, at_ms = await ask_about_group(context, lambda client: described_by(client, name), "group")
    return FoundGroup(group_fact(*described), context.asked("group", at_ms))


async def ask_about_group(context: PageContext, work: Callable[[Client], Awaitable[T]], *key: object) -> tuple[T, int]:
    """Do some work for all who open a page of the group. NotFoundError if it has been deleted since it was seen."""
    name = context.names["group"]
    try:
        return await context.watcher.ask((*key, name), work)
    except ResponseError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        state = context.watcher.state
        raise NotFoundError("group", name, state.groups.keys() - {name}, _last_seen(state, name)) from None


async def find_group_of(context: PageContext, kind: str, what: str) -> FoundGroup:
    """The same of a group that must be of one kind to have what the page shows."""
    found = await find_group(context)
    if found.fact.type != kind:
        raise BadQueryError(f'"{found.fact.group}" is a {found.fact.type} group; only {kind} groups have {what}')
    return found


def _last_seen(state: ClusterState, name: str) -> str:
    last = state.group(name) or state.gone.get(("group", name))
    if last is None or not isinstance(last.fact, Group):
        return ""
    members = plural(len(last.fact.members), "member")
    return (
        f"It existed at {clock(last.at_ms)} but has been deleted or has expired. "
        f"It was last seen as a {last.fact.type} group, {last.fact.state}, with {members}."
    )


def lag_sum(state: ClusterState, group: Group) -> LagSum:
    lags = (
        [each.fact.lag for each in state.share_offsets(group.group).values()]
        if group.type == "share"
        else [lag_of(each.fact) for each in state.lags(group.group).values()]
    )
    known = [each for each in lags if each is not None]
    return LagSum(sum(known) if known else None, len(lags), len(lags) - len(known))
