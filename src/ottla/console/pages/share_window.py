"""What a share group has in flight in one partition, range by range, and from where that is known.

An ottla broker tells everything. Records of `__share_group_state` tell what was accepted, archived and released, but
not what a member holds. All other clusters tell where the group starts and how much is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ottla.client import Client, ClientError, TopicPartition
from ottla.client.offsets import LATEST, ListedOffset, try_list_offsets
from ottla.client.share.offsets import ShareOffset, describe_offsets
from ottla.console.addresses import href
from ottla.console.group_lookup import ask_about_group, find_group_of
from ottla.console.html.groups import group_tabs
from ottla.console.html.lock_clock import Lock, lock_clocks, time_left, together
from ottla.console.html.parts import (
    Cell,
    Column,
    facts,
    link,
    nothing,
    numbers,
    offset,
    section,
    sparkline,
    table,
    with_query,
)
from ottla.console.html.window_plot import LOOKS, Piece, span, window_plot
from ottla.console.page import Content, Degraded, NotFoundError, Page, PageContext, path_number, why_not
from ottla.console.scan import BOUNDS
from ottla.console.share_pace import pace_of
from ottla.draw.forms import ago, identity, moment, number
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.facts import Group
from ottla.health.phrases import join, plural
from ottla.inflight.sources import windows
from ottla.inflight.window import Range, Window
from ottla.observe.series_history import Point

ROWS_MAX: Final = 1_000
LOCK: Final = "share.record.lock.duration.ms"
LIMIT: Final = "share.delivery.count.limit"
LOCKS: Final = "share.partition.max.record.locks"
LIVE, STORED, OFFSETS = "O", "R", "A"
TIERS: Final = {
    LIVE: "Live, from the leader of the partition.",
    STORED: "From records of __share_group_state, which do not contain acquired records: available records may be "
    "acquired, and unknown ones are new or in flight.",
    OFFSETS: "Only the start offset and the lag are known, as last written.",
}
COUNTERS: Final = ("delivered", "redelivered", "accepted", "released", "rejected", "lock_expiries")
"""Of ottla brokers."""
METRICS: Final = "ottla console --metrics URL"
NEEDED: Final = f"It takes READ on __share_group_state, or the metrics page of an ottla broker: {METRICS}."
FINISHED: Final = ("acknowledged", "archiving", "archived")


class RangeRow(msgspec.Struct, frozen=True):
    first: int
    last: int
    state: str
    """available, acquired, acknowledged, archiving, archived or unknown."""
    count: int | None
    """How often it was delivered."""
    member: str | None
    lock_ms: int | None
    """How long the member may keep it."""


class WindowPage(msgspec.Struct, frozen=True):
    group: str
    topic: str
    partition: int
    tier: str
    """O: an ottla broker told; R: records of __share_group_state; A: offsets only."""
    start: int | None
    end: int | None
    """The last offset of the window."""
    high_watermark: int | None
    lag: int | None
    delivery_complete: int | None
    delivery_limit: int | None
    lock_ms: int | None
    max_locks: int | None
    ranges: list[RangeRow]
    deliveries: dict[str, int]
    """How often delivered -> how many offsets that are not finished."""
    redelivered_per_min: int | None
    """In all partitions of the group, in the last minute; None if deliveries are not seen."""
    expired_per_min: int | None
    """Locks that ran out, likewise."""
    as_of_ms: int


class _Asked(NamedTuple):
    offsets: dict[TopicPartition, ShareOffset]
    window: Window | None
    end: int | None
    failures: list[str]


async def load(context: PageContext) -> Content[WindowPage]:
    group = (await find_group_of(context, "share", "a window")).fact
    at = _partition(context)
    asked, at_ms = await ask_about_group(
        context, lambda client: _ask(client, group.group, at, context.watcher.principal), "window", at
    )
    if at not in asked.offsets:
        raise NotFoundError("partition", f"{at}", last=f"The group has {join(sorted(asked.offsets), 'none')}.")
    data = _data(group, at, asked, context, at_ms)
    missing = [Degraded("window", each) for each in asked.failures]
    if data.tier == OFFSETS and not missing:
        missing = [Degraded("window", "needs an ottla broker with --inspect-port, or records of __share_group_state")]
    return Content(
        data, f"{at} of {group.group}", [context.asked("window", at_ms)], missing, live=(f"group:{group.group}",)
    )


def _partition(context: PageContext) -> TopicPartition:
    return TopicPartition(context.names["topic"], path_number(context, "partition"))


async def _ask(client: Client, group_id: str, at: TopicPartition, principal: str) -> _Asked:
    offsets = await describe_offsets(client, group_id)
    if at not in offsets:
        return _Asked(offsets, None, None, [])
    failures: list[str] = []
    try:
        (window,) = await windows(client, group_id, {at: offsets[at].topic_id}, failures.append)
    except ClientError as error:
        window = None
        failures.append(why_not(error, principal))
    end = (await try_list_offsets(client, {at: LATEST}))[at]
    return _Asked(offsets, window, end.offset if isinstance(end, ListedOffset) else None, failures)


def _data(group: Group, at: TopicPartition, asked: _Asked, context: PageContext, at_ms: int) -> WindowPage:
    told, window = asked.offsets[at], asked.window
    has_window = window is not None and window.start_offset is not None
    if window is None or not has_window:
        window = Window(at, told.start_offset, (), is_live=False)
    ranges = [_range(each) for each in window.ranges]
    configs = context.watcher.state.configs("group", group.group)
    pace = pace_of(context.watcher.state.share_history(group.group), context.now_ms)
    settings = {name: int(text) for name in (LOCK, LIMIT, LOCKS) if (text := configs.get(name)) and text.isdigit()}
    return WindowPage(
        group=group.group,
        topic=at.topic,
        partition=at.partition,
        tier=LIVE if window.is_live else STORED if has_window else OFFSETS,
        start=window.start_offset,
        end=max((each.last for each in ranges), default=None),
        high_watermark=asked.end,
        lag=told.lag,
        delivery_complete=window.finished,
        delivery_limit=window.delivery_limit or settings.get(LIMIT),
        lock_ms=settings.get(LOCK),
        max_locks=window.locks_max or settings.get(LOCKS),
        ranges=ranges,
        deliveries=_deliveries(ranges),
        redelivered_per_min=_last(pace.redelivered),
        expired_per_min=_last(pace.expired),
        as_of_ms=window.written_ms or at_ms,
    )


def _last(points: Sequence[Point] | None) -> int | None:
    return int(points[-1].value) if points else None


def _range(each: Range) -> RangeRow:
    return RangeRow(
        each.first_offset,
        each.last_offset,
        each.state.lower(),
        each.delivery_count,
        each.member_id or None,
        each.lock_ms,
    )


def _deliveries(ranges: list[RangeRow]) -> dict[str, int]:
    counts: Counter[int] = Counter()
    for each in ranges:
        if each.count is not None and each.state not in FINISHED:
            counts[each.count] += each.last - each.first + 1
    return {str(count): offsets for count, offsets in sorted(counts.items())}


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[WindowPage], context: PageContext) -> Markup:
    data = content.data
    members = {} if (seen := context.watcher.state.group(data.group)) is None else _clients(seen.fact)
    parts = [group_tabs(data.group, "share", "window"), _head(data), _tier(data, content)]
    if data.ranges:
        parts.append(_ranges(data, members, context.now_ms))
    elif data.tier != OFFSETS:
        parts.append(nothing("Nothing is in flight."))
    return joined([*parts, _pace(data, context)])


def _clients(group: Group) -> dict[str, str]:
    return {each.member: each.client for each in group.members}


def _head(data: WindowPage) -> Markup:
    size = sum(each.last - each.first + 1 for each in data.ranges)
    limit = "" if data.max_locks is None else f" of {data.max_locks:,}"
    return facts(
        {
            "topic": link(data.topic, "topics", data.topic),
            "partition": data.partition,
            "start": offset(data.start),
            "end of the window": offset(data.end),
            "high watermark": offset(data.high_watermark),
            "lag": number(data.lag),
            "window": None if data.tier == OFFSETS else f"{size:,}{limit}",
            "finished": number(data.delivery_complete),
            "delivery limit": number(data.delivery_limit),
            "lock": ago(data.lock_ms),
        }
    )


def _tier(data: WindowPage, content: Content[WindowPage]) -> Markup:
    written = joined([" Last written at ", moment(data.as_of_ms), "."]) if data.tier == STORED else NOTHING
    why = f" {content.degraded[0].why}." if data.tier == OFFSETS and content.degraded else ""
    return element("p", TIERS[data.tier], written, why, class_="tier")


def _ranges(data: WindowPage, members: Mapping[str, str], now_ms: int) -> Markup:
    since_ms = now_ms - data.as_of_ms
    pieces = [Piece(each.first, each.last, each.state, each.count) for each in data.ranges]
    title = f"{data.topic}-{data.partition}: {plural(len(pieces), 'range')} from {pieces[0].first:,}"
    columns = (
        Column("offsets", is_named=True),
        Column("state"),
        *numbers("deliveries"),
        Column("member"),
        Column("lock remaining", is_number=True),
    )
    shown = data.ranges[:ROWS_MAX]
    note = (
        f"the first {len(shown):,} of {len(data.ranges):,}; the JSON has all" if len(shown) < len(data.ranges) else ""
    )
    rows = (list(_cells(each, data, members, since_ms)) for each in shown)
    plot = window_plot(pieces, title, lambda piece: records_of(data, piece.first, piece.last))
    clocks = lock_clocks(together(_locks(data, members, since_ms)), data.lock_ms)
    return section("In flight", plot, _beyond(data), _counts(data), clocks, table("Ranges", columns, rows, note))


def _locks(data: WindowPage, members: Mapping[str, str], since_ms: int) -> Iterator[Lock]:
    for each in data.ranges:
        if each.lock_ms is not None and each.member is not None:
            name = members.get(each.member) or each.member
            yield Lock(each.lock_ms - since_ms, name, each.last - each.first + 1)


def records_of(data: WindowPage, first: int, last: int) -> str:
    """The address of the records of a range."""
    if first == last:
        return href("topics", data.topic, "records", data.partition, first)
    limit = min(last - first + 1, BOUNDS.matches)
    return with_query(href("topics", data.topic, "records"), partition=data.partition, **{"from": first}, limit=limit)


def _beyond(data: WindowPage) -> Markup:
    if data.end is None or data.high_watermark is None or data.high_watermark <= data.end + 1:
        return NOTHING
    rest = data.high_watermark - data.end - 1
    return element("p", f"{rest:,} more offsets, up to {data.high_watermark - 1:,}, are not delivered yet.")


def _counts(data: WindowPage) -> Markup:
    if not data.deliveries:
        return NOTHING
    told = [
        f"{offsets:,} " + (f"delivered {count}×" if count != "0" else "not delivered yet")
        for count, offsets in data.deliveries.items()
    ]
    return element("p", f"Not finished: {', '.join(told)}.")


def _cells(each: RangeRow, data: WindowPage, members: Mapping[str, str], since_ms: int) -> Iterator[Cell]:
    yield element("a", span(each.first, each.last), href=records_of(data, each.first, each.last))
    yield joined([element("span", LOOKS[each.state].letter, class_="letter-key"), " ", state_words(each, data.tier)])
    yield each.count
    if each.member is None:
        yield " " if data.tier == LIVE or each.state in FINISHED else None
    else:
        client = members.get(each.member)
        yield joined([identity(each.member), f" ({client})" if client else " (left the group)"])
    yield time_left(each.lock_ms - since_ms) if each.lock_ms is not None else " "


def state_words(each: RangeRow, tier: str) -> str:
    if each.state == "unknown":
        return "unknown (new or in flight)"
    return "available or acquired" if tier == STORED and each.state == "available" else each.state


def _pace(data: WindowPage, context: PageContext) -> Markup:
    """Redeliveries and expired locks of the whole group over the last hour, and what brokers have counted."""
    state = context.watcher.state
    pace = pace_of(state.share_history(data.group), context.now_ms)
    seen = [each.fact for each in state.share_metrics(data.group)]
    if not pace.redelivered:
        return section("Redeliveries", nothing(f"No delivery has been seen since the console started. {NEEDED}"))
    told: dict[str, Cell] = {
        "redelivered per minute": _trend(pace.redelivered, "redelivered per minute"),
        "locks expired per minute": _trend(pace.expired, "locks expired per minute"),
    }
    for name in COUNTERS if seen else ():
        told[f"{name.replace('_', ' ')} in all"] = sum(getattr(each, name) for each in seen)
    since = "counted since each broker started" if seen else "deliveries that have ended, from records"
    return section("Redeliveries", facts(told), note=f"for the whole group; {since}")


def _trend(points: Sequence[Point] | None, what: str) -> Markup:
    if not points:
        return element("span", "–", class_="unknown", title=f"needs the metrics page of an ottla broker: {METRICS}")
    return joined([number(points[-1].value), sparkline(points, what)])


PAGE = Page("share-window", "/groups/{group}/window/{topic}/{partition}", WindowPage, load, render, section="groups")
