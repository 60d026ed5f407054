"""Share groups: windows that do not move, and records that are delivered again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.history import History
from ottla.health.phrases import (
    clock,
    consume_since,
    duration,
    href,
    join,
    number,
    offsets,
    percent,
    plural,
    word,
)
from ottla.health.rule import Match, RuleContext, rule
from ottla.health.rules.partitions import SHARE_TOPIC
from ottla.health.series import Series
from ottla.health.share_history import BUCKET_MS, Archived, Bucket, Deliveries, ShareGroupHistory, SharePartitionHistory

MINUTE_MS: Final = 60_000
DEAD_LETTERS_FROM: Final = 2
"""The share.version with which a group may have a dead-letter topic (KIP-1191)."""
LISTED: Final = 1_000
"""How many offsets the evidence lists; its count is exact."""


def _partition(ctx: RuleContext) -> SharePartitionHistory | None:
    return ctx.history.share_partitions.get((ctx.scope[0], ctx.scope[1] or "", ctx.scope[2]))


def _subject(ctx: RuleContext) -> Subject:
    return Subject("group", ctx.scope[0], topic=ctx.scope[1], partition=ctx.scope[2])


def _setting(ctx: RuleContext, key: str) -> int:
    return ctx.history.configs.of_group(ctx.scope[0], key)


def _window_step(ctx: RuleContext, text: str) -> NextStep:
    group, topic, partition = ctx.scope
    where = href("groups", group, "window", topic, partition)
    return NextStep(text, f"ottla share inflight {word(group)} --topic {word(f'{topic}:{partition}')}", where)


def _record_step(text: str, topic: str, partition: int, offset: int | None) -> NextStep:
    command = f"ottla topics consume {word(topic)} --partition {partition} --from {offset} --max 1"
    return NextStep(text, command, href("topics", topic, "records", partition, offset))


def _tier(seen: SharePartitionHistory) -> Tier:
    return Tier.OTTLA if seen.window is not None else Tier.RECORDS


def _stalling_count(ctx: RuleContext, seen: SharePartitionHistory) -> int | None:
    """The delivery count of the record at the start offset, if it is near the limit."""
    count = seen.first_count
    return count if count is not None and count >= _setting(ctx, "share.delivery.count.limit") - 1 else None


@rule(
    "share-stalled-by-record", Severity.WARNING, Tier.RECORDS, on=["share_offsets", "share_state", "share_window"],
    scope=["group", "topic", "partition"], needs=["share_state|share_window", "share_offsets.lag"],
    condition="the start offset has not moved for 2 lock durations, there is lag, and the record at the start has "
    "been delivered as often as the limit allows, or one less",
    why="One record holds up the window.",
    limits={"locks": 2},
)  # fmt: skip
def share_stalled_by_record(ctx: RuleContext) -> Iterator[Match]:
    seen = _partition(ctx)
    if seen is None or seen.waiting_since is None:
        return
    count = _stalling_count(ctx, seen)
    still_ms = ctx.now_ms - seen.waiting_since
    if count is None or still_ms < ctx.limits["locks"] * _setting(ctx, "share.record.lock.duration.ms"):
        return
    _, topic, partition = ctx.scope
    limit = _setting(ctx, "share.delivery.count.limit")
    record = f"record {number(seen.start or 0)} (delivery {count} of {limit})"
    yield Match(
        subject=_subject(ctx), since_ms=seen.waiting_since, tier=_tier(seen),
        sentence=f"{topic}-{partition} is held up by {record}",
        past=f"{topic}-{partition} was held up by {record}",
        evidence={"offset": seen.start, "count": count, "limit": limit, "still_ms": still_ms, "lag": seen.lag},
        next=[_record_step("open the record", topic, partition, seen.start),
              _window_step(ctx, "reject it, or fix the worker that releases it")],
    )  # fmt: skip


@rule(
    "share-start-not-moving", Severity.WARNING, Tier.SAMPLES, on=["share_offsets"],
    scope=["group", "topic", "partition"], needs=["share_offsets.lag", "group"],
    condition="a share group has members and lag, and the start offset of a partition has not moved for 5 min",
    why="No record is completed there; without the state topic the reason is unknown.",
    limits={"hold_s": 300},
)  # fmt: skip
def share_start_not_moving(ctx: RuleContext) -> Iterator[Match]:
    seen = _partition(ctx)
    group = ctx.history.groups.get(ctx.scope[0])
    if seen is None or seen.waiting_since is None or group is None or not group.fact.members:
        return
    if ctx.now_ms - seen.waiting_since < ctx.ms("hold_s") or _stalling_count(ctx, seen) is not None:
        return
    name, topic, partition = ctx.scope
    yield Match(
        subject=_subject(ctx), since_ms=seen.waiting_since,
        sentence=f"{name} has completed no record of {topic}-{partition} since {clock(seen.waiting_since)}",
        past=f"{name} completed no record of {topic}-{partition} for {duration(ctx.now_ms - seen.waiting_since)}",
        evidence={"start": seen.start, "lag": seen.lag, "still_ms": ctx.now_ms - seen.waiting_since},
        next=[_window_step(ctx, "grant READ on __share_group_state to see why")],
    )  # fmt: skip


@rule(
    "share-window-full", Severity.WARNING, Tier.RECORDS, on=["share_offsets", "share_state", "share_window"],
    scope=["group", "topic", "partition"], needs=["share_state|share_window"],
    condition="the window has held 95 % of the records that may be in flight for 2 lock durations",
    why="No new records are delivered until earlier ones are completed.",
    limits={"percent": 95, "locks": 2},
)  # fmt: skip
def share_window_full(ctx: RuleContext) -> Iterator[Match]:
    seen = _partition(ctx)
    if seen is None or seen.start is None or seen.end is None:
        return
    held, room = seen.end - seen.start + 1, _setting(ctx, "share.partition.max.record.locks")
    if held < ctx.limits["percent"] / 100 * room:
        return
    _, topic, partition = ctx.scope
    window = f"The in-flight window of {topic}-{partition}"
    yield Match(
        subject=_subject(ctx), tier=_tier(seen),
        hold_ms=ctx.limits["locks"] * _setting(ctx, "share.record.lock.duration.ms"),
        sentence=f"{window} is full ({number(held)} records): no new records are delivered",
        past=f"{window} was full ({number(held)} records): no new records were delivered",
        evidence={"start": seen.start, "end": seen.end, "held": held, "room": room},
        next=[_window_step(ctx, f"check the oldest in-flight record, {number(seen.start)}")],
    )  # fmt: skip


def _is_hot(ctx: RuleContext, bucket: Bucket | None) -> bool:
    if bucket is None or bucket.redeliveries < ctx.limits["redeliveries"]:
        return False
    return bucket.redeliveries >= ctx.limits["percent"] / 100 * bucket.deliveries


def _last_full(ctx: RuleContext) -> int:
    """The start of the newest bucket that is complete, with some time for late records."""
    return (ctx.now_ms - ctx.ms("grace_s")) // BUCKET_MS * BUCKET_MS - BUCKET_MS


def _next_bucket(ctx: RuleContext) -> int | None:
    """When the next bucket is complete: it is checked then, even if no fact comes."""
    group = ctx.history.share_groups.get(ctx.scope[0])
    newest = max(group.deliveries.buckets, default=0) if group else 0
    if newest < _last_full(ctx) - BUCKET_MS:
        return None
    return _last_full(ctx) + 2 * BUCKET_MS + ctx.ms("grace_s")


@rule(
    "redelivery-storm", Severity.CRITICAL, Tier.RECORDS, on=["share_state", "share_metrics"], scope=["group"],
    needs=["share_state|share_metrics"], persists=True, wake=_next_bucket,
    condition="in 10 s, there are 20 or more redeliveries, and they are 30 % of all deliveries; twice within 60 s",
    why="Workers release records: work is repeated, and records approach their delivery limit.",
    limits={"redeliveries": 20, "percent": 30, "within_s": 60, "grace_s": 5},
)  # fmt: skip
def redelivery_storm(ctx: RuleContext) -> Iterator[Match]:
    group = ctx.history.share_groups.get(ctx.scope[0])
    if group is None:
        return
    last, buckets = _last_full(ctx), group.deliveries.buckets
    if not _is_hot(ctx, buckets.get(last)):
        return
    first = _first_hot(ctx, group.deliveries, last)
    if first < last or ctx.began(Subject("group", ctx.scope[0])) < ctx.now_ms:
        yield _storm(ctx, group, first, last)


def _first_hot(ctx: RuleContext, deliveries: Deliveries, last: int) -> int:
    """The first of the hot buckets that lead up to this one without a long gap."""
    first = last
    for start in range(last - BUCKET_MS, min(deliveries.buckets) - BUCKET_MS, -BUCKET_MS):
        if first - start > ctx.ms("within_s"):
            break
        if _is_hot(ctx, deliveries.buckets.get(start)):
            first = start
    return first


def _storm(ctx: RuleContext, group: ShareGroupHistory, first: int, last: int) -> Match:
    name, buckets = ctx.scope[0], group.deliveries.buckets
    storm = [bucket for start, bucket in buckets.items() if first <= start <= last]
    minute = [bucket for start, bucket in buckets.items() if last + BUCKET_MS - MINUTE_MS <= start <= last]
    redelivered, delivered = sum(each.redeliveries for each in minute), sum(each.deliveries for each in minute)
    peak = max(storm, key=lambda each: each.redeliveries / max(1, each.deliveries))
    worst = _worst(storm)
    share = f"{percent(redelivered, delivered)} % of its records"
    spread = f"Most redeliveries are in {join(worst)}" if worst else "Redeliveries are spread evenly over partitions"
    return Match(
        subject=Subject("group", name), since_ms=first, seen_ms=last + BUCKET_MS,
        tier=Tier.OTTLA if group.has_metrics else Tier.RECORDS,
        sentence=f"Share group {name} is redelivering {share} ({number(redelivered)} in the last minute)",
        past=f"Share group {name} redelivered {share} ({number(redelivered)} in one minute)",
        evidence={"redelivered": redelivered, "delivered": delivered, "worst": worst,
                  "peak_percent": percent(peak.redeliveries, peak.deliveries)},
        next=[NextStep(f"find out why workers release records: is a downstream service failing? {spread}",
                   f"ottla share describe {word(name)}", href("groups", name)),
              *_longer_locks(ctx, group, first)],
    )  # fmt: skip


def _longer_locks(ctx: RuleContext, group: ShareGroupHistory, from_ms: int) -> Iterator[NextStep]:
    """Longer locks help only if locks expire, which the records of the state do not tell apart from releases."""
    expired = _gained(group.expired, ctx.now_ms, ctx.now_ms - from_ms) if group.has_metrics else 0
    if expired > 0:
        yield _lock_step(
            ctx.scope[0], f"{plural(expired, 'lock')} expired: renew locks while working, or make them longer"
        )


def _lock_step(group: str, text: str) -> NextStep:
    return NextStep(text, f"ottla configs get group {word(group)} share.record.lock.duration.ms", href("groups", group))


def _worst(storm: list[Bucket]) -> list[str]:
    total: dict[tuple[str, int], int] = {}
    for bucket in storm:
        for where, count in bucket.where.items():
            total[where] = total.get(where, 0) + count
    return [f"{topic}-{partition}" for topic, partition in sorted(total, key=lambda each: -total[each])[:1]]


def _archived(ctx: RuleContext, *, at_limit: bool) -> list[Archived]:
    """The records that were archived since the finding opened, or lately."""
    group = ctx.history.share_groups.get(ctx.scope[0])
    limit = _setting(ctx, "share.delivery.count.limit")
    mine = [each for each in group.archived if (each.deliveries >= limit) is at_limit] if group else []
    if not mine or mine[-1].at_ms <= ctx.now_ms - ctx.ms("window_s"):
        return []
    began = min(ctx.began(Subject("group", ctx.scope[0])), ctx.now_ms - ctx.ms("window_s"))
    return [each for each in mine if each.at_ms >= began]


def _places(archived: list[Archived]) -> str:
    by_partition: dict[str, list[int]] = {}
    for each in archived:
        by_partition.setdefault(f"{each.topic}-{each.partition}", []).append(each.offset)
    return join(f"{where} {offsets(values)}" for where, values in sorted(by_partition.items()))


def _record_evidence(archived: list[Archived]) -> dict[str, object]:
    unique = sorted({(each.topic, each.partition, each.offset) for each in archived})
    return {"count": len(unique), "records": [list(each) for each in unique[:LISTED]]}


@rule(
    "poison-records", Severity.WARNING, Tier.RECORDS, on=["share_state"], scope=["group"], needs=["share_state"],
    persists=True,
    condition="in the last 15 min, a record was archived after as many deliveries as the limit allows",
    why="No worker could process it, and it will not be delivered again.",
    limits={"window_s": 900},
)  # fmt: skip
def poison_records(ctx: RuleContext) -> Iterator[Match]:
    archived = _archived(ctx, at_limit=True)
    if not archived:
        return
    name, limit = ctx.scope[0], _setting(ctx, "share.delivery.count.limit")
    evidence = _record_evidence(archived)
    records = _records_were(len({each[1:4] for each in archived}), name)
    sentence = f"{records} archived after {limit} deliveries: {_places(archived)}"
    yield Match(
        subject=Subject("group", name), since_ms=archived[0].at_ms, seen_ms=archived[-1].at_ms,
        until_ms=archived[-1].at_ms + ctx.ms("window_s"),
        sentence=sentence, past=sentence,
        evidence={**evidence, "limit": limit},
        next=[_first_step(archived), _dead_letters(ctx.history)],
    )  # fmt: skip


def _first_step(archived: list[Archived]) -> NextStep:
    first = archived[0]
    return _record_step(
        "open the first record" if len(archived) > 1 else "open the record", first.topic, first.partition, first.offset
    )


def _dead_letters(history: History) -> NextStep:
    fact = history.cluster.fact
    if fact is not None and (fact.finalized or {}).get("share.version", 0) >= DEAD_LETTERS_FROM:
        return NextStep("set errors.deadletterqueue.topic.name of the group to keep such records")
    return NextStep(
        f"a dead-letter topic keeps such records (needs share.version {DEAD_LETTERS_FROM})", "ottla quorum features"
    )


@rule(
    "rejected-records", Severity.NOTICE, Tier.RECORDS, on=["share_state", "share_metrics"], scope=["group"],
    needs=["share_state|share_metrics"], persists=True,
    condition="in the last 15 min, a record was archived before it reached the delivery limit",
    why="A worker rejected it as unprocessable; the state topic does not distinguish that from a gap.",
    limits={"window_s": 900},
)  # fmt: skip
def rejected_records(ctx: RuleContext) -> Iterator[Match]:
    group = ctx.history.share_groups.get(ctx.scope[0])
    if group is not None and group.has_metrics:
        yield from _counted_rejects(ctx, group)
        return
    archived = _archived(ctx, at_limit=False)
    if not archived:
        return
    name, evidence = ctx.scope[0], _record_evidence(archived)
    sentence = _rejected_or_gaps(len({each[1:4] for each in archived}), name)
    yield Match(
        subject=Subject("group", name), since_ms=archived[0].at_ms, seen_ms=archived[-1].at_ms,
        until_ms=archived[-1].at_ms + ctx.ms("window_s"),
        sentence=sentence, past=sentence,
        evidence=evidence,
        next=[_first_step(archived)],
    )  # fmt: skip


def _counted_rejects(ctx: RuleContext, group: ShareGroupHistory) -> Iterator[Match]:
    count = _gained(group.rejected, ctx.now_ms, ctx.ms("window_s"))
    rose_ms = _last_growth_ms(group.rejected)
    if count <= 0 or rose_ms is None:
        return
    since_ms = _before_growth_ms(group.rejected, ctx.now_ms - ctx.ms("window_s"))
    name = ctx.scope[0]
    sentence = f"{_records_were(count, name)} rejected"
    yield Match(
        subject=Subject("group", name), seen_ms=rose_ms, until_ms=rose_ms + ctx.ms("window_s"), tier=Tier.OTTLA,
        sentence=sentence, past=sentence,
        evidence={"count": count},
        next=[NextStep("in the state topic, batches with deliveryState 4 are archived records",
                   consume_since(SHARE_TOPIC, since_ms, "key.groupId", name), href("groups", name))],
    )  # fmt: skip


def _gained(series: Series, now_ms: int, back_ms: int) -> int:
    if not series.points:
        return 0
    before = series.at(now_ms - back_ms)
    return round(series.points[-1][1] - (series.points[0][1] if before is None else before))


def _last_growth_ms(series: Series) -> int | None:
    points = list(series.points)
    return next((new[0] for old, new in zip(points[-2::-1], points[:0:-1], strict=False) if new[1] > old[1]), None)


def _before_growth_ms(series: Series, from_ms: int) -> int:
    """The last time before the series first grew."""
    pairs = pairwise(series.points)
    return next((old[0] for old, new in pairs if new[0] > from_ms and new[1] > old[1]), from_ms)


@rule(
    "lock-expiries", Severity.WARNING, Tier.OTTLA, on=["share_metrics"], scope=["group"], needs=["share_metrics"],
    condition="10 or more locks expired in a minute, and more than 5 % of the acquisitions",
    why="Records are taken from workers that are still processing them.",
    limits={"expiries": 10, "percent": 5},
)  # fmt: skip
def lock_expiries(ctx: RuleContext) -> Iterator[Match]:
    group = ctx.history.share_groups.get(ctx.scope[0])
    if group is None:
        return
    expired = _gained(group.expired, ctx.now_ms, MINUTE_MS)
    delivered = _gained(group.delivered, ctx.now_ms, MINUTE_MS)
    if expired < ctx.limits["expiries"] or expired <= ctx.limits["percent"] / 100 * delivered:
        return
    name, lock_ms = ctx.scope[0], _setting(ctx, "share.record.lock.duration.ms")
    yield Match(
        subject=Subject("group", name),
        sentence=f"Workers of {name} exceed the lock duration ({duration(lock_ms)}): "
        f"{plural(expired, 'lock')} expired in the last minute",
        past=f"Workers of {name} exceeded the lock duration ({duration(lock_ms)}): "
        f"{plural(expired, 'lock')} expired in one minute",
        evidence={"expired": expired, "delivered": delivered, "lock_ms": lock_ms},
        next=[_lock_step(name, "renew locks while working, or make them longer")],
    )  # fmt: skip


def _records_were(count: int, group: str) -> str:
    return f"{plural(count, 'record')} of {group} {'was' if count == 1 else 'were'}"


def _rejected_or_gaps(count: int, group: str) -> str:
    return f"{_records_were(count, group)} rejected or {'was a gap' if count == 1 else 'were gaps'}"
