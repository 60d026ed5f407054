"""The record browser: reads a topic from some place on, through a filter, as far as a scan may go.

It uses no group, so that nobody's position changes. `from` is what `ottla topics consume --from` takes, or where a scan
has stopped: `0:4133,2:88`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from ottla.client import Client, TopicPartition
from ottla.client.filters import Filter, FilterError, compile_filter
from ottla.client.offsets import Isolation, spans
from ottla.client.record_text import FORMS, RecordRow, decoded, record_row
from ottla.client.start_offsets import BEGINNING, StartOffsetError, start_offsets
from ottla.client.topics import TopicDescription
from ottla.console.addresses import href
from ottla.console.described import described_topic, known_topic
from ottla.console.html.navigation import Choice, Text, filter_form
from ottla.console.html.parts import Column, badge, byte_size, command, link, nothing, table, with_query
from ottla.console.html.records import content as content_of
from ottla.console.html.records import headers, record_time, typed_key
from ottla.console.html.topics import topic_tabs
from ottla.console.page import BadQueryError, Content, Degraded, Page, PageContext
from ottla.console.page_parts import load_records
from ottla.console.scan import BOUNDS, Bounds, Scan, SeenRecord, scan
from ottla.draw.markup import NOTHING, Markup, element, escaped, joined
from ottla.health.phrases import duration, number, plural, size, word

SHOWN_BYTES: Final = 4_096
"""Of each key, value and header."""
LIMIT_DEFAULT: Final = 50
FOLLOWED_RECORDS: Final = 1_000
RELOAD_S: Final = 2
ALL: Final = "all"
_CURSOR: Final = re.compile(r"\d{1,10}:\d{1,18}(?:,\d{1,10}:\d{1,18})*", re.ASCII)


class Records(msgspec.Struct, frozen=True):
    topic: str
    partition: int | None
    """None for all of them."""
    start: str = msgspec.field(name="from")
    rows: list[RecordRow]
    scanned: int
    matched: int
    bytes: int
    took_ms: int
    stopped: str
    """What ended the scan: end, limit, records, bytes or time."""
    partitions: int
    """How many partitions were read."""
    unfinished: int
    """How many of them were not read to their end."""
    cursor: str | None
    """The `from` that goes on where this stopped."""
    damaged: list[str]


class Wanted(NamedTuple):
    """The query; the same one is answered once for all who ask."""

    topic: str
    partition: int | None
    start: str
    filter: str
    is_committed: bool
    is_following: bool
    limit: int

    @property
    def isolation(self) -> Isolation:
        return "read_committed" if self.is_committed else "read_uncommitted"


class Found(NamedTuple):
    scan: Scan
    silent: list[TopicPartition]
    """Partitions whose leader does not say where they begin and end."""
    partitions: int


async def load(context: PageContext) -> Content[Records]:
    key_form, value_form = _forms(context)
    matches = _filter(context)
    asked = await described_topic(context)
    topic = known_topic(asked)
    wanted = _wanted(context, topic)

    async def work(client: Client) -> Found:
        return await find(client, topic, wanted, matches)

    try:
        found, at_ms = await load_records(context, "records", work, *wanted)
    except StartOffsetError as error:
        raise BadQueryError(f"from={wanted.start}: {error}") from None
    rows = [_row(each, key_form, value_form) for each in _shown(found.scan.found, wanted)]
    data = Records(
        topic=topic.name,
        partition=wanted.partition,
        start=wanted.start,
        rows=rows,
        scanned=found.scan.scanned,
        matched=len(found.scan.found),
        bytes=found.scan.bytes,
        took_ms=found.scan.took_ms,
        stopped=found.scan.stopped,
        partitions=found.partitions,
        unfinished=len(found.scan.rest),
        cursor=cursor_of(found.scan.rest),
        damaged=found.scan.damaged,
    )
    return Content(
        data,
        f"Records of {topic.name}",
        [*asked.sources, context.asked("records", at_ms)],
        [*asked.degraded, *_unread(topic, wanted, found.silent)],
        next=data.cursor,
        reload_s=RELOAD_S if wanted.is_following else None,
    )


# --- the query --------------------------------------------------------------------------------------------------------


def _forms(context: PageContext) -> tuple[str, str]:
    both = context.choice("decode", FORMS, "auto")
    return context.choice("key", FORMS, both), context.choice("value", FORMS, both)


def _filter(context: PageContext) -> Filter | None:
    text = context.query.get("filter", "").strip()
    try:
        return compile_filter(text) if text else None
    except FilterError as error:
        raise BadQueryError(f"filter: {error}") from None


def _wanted(context: PageContext, topic: TopicDescription) -> Wanted:
    is_following = context.choice("follow", ("0", "1")) == "1"
    start = context.query.get("from", "").strip() or BEGINNING
    return Wanted(
        topic.name,
        _partition(context, topic),
        f"-{max(1, FOLLOWED_RECORDS // max(1, len(topic.partitions)))}" if is_following else start,
        context.query.get("filter", "").strip(),
        context.choice("committed", ("0", "1")) == "1",
        is_following,
        context.number("limit", LIMIT_DEFAULT, 1, BOUNDS.matches),
    )


def _partition(context: PageContext, topic: TopicDescription) -> int | None:
    if context.query.get("partition") in (None, "", ALL):
        return None
    known = {each.partition for each in topic.partitions}
    partition = context.number("partition", 0, 0, 1 << 31)
    if partition not in known:
        there = plural(len(known), "partition")
        raise BadQueryError(f"topic {topic.name} has no partition {partition}; it has {there}, counted from 0")
    return partition


def cursor_of(rest: Mapping[int, int]) -> str | None:
    return ",".join(f"{partition}:{offset}" for partition, offset in rest.items()) or None


def read_cursor(text: str) -> dict[int, int] | None:
    """Where a scan stopped; None if the text is another kind of place."""
    if not _CURSOR.fullmatch(text):
        return None
    return {int(partition): int(offset) for partition, offset in (pair.split(":") for pair in text.split(","))}


# --- reading ----------------------------------------------------------------------------------------------------------


async def find(client: Client, topic: TopicDescription, wanted: Wanted, matches: Filter | None) -> Found:
    led = [
        TopicPartition(topic.name, each.partition)
        for each in topic.partitions
        if each.leader >= 0 and wanted.partition in (None, each.partition)
    ]
    told = await spans(client, led, isolation=wanted.isolation)
    known = {at: (start, end) for at, (start, end) in told.items() if start is not None and end is not None}
    begin = await _starts(client, known, wanted.start)
    limit = len(known) * FOLLOWED_RECORDS if wanted.is_following else wanted.limit
    result = await scan(
        client,
        begin,
        {at: known[at][1] for at in begin},
        matches=matches,
        is_committed=wanted.is_committed,
        bounds=Bounds(matches=max(1, limit)),
    )
    return Found(result, [at for at in led if at not in known], len(begin))


async def _starts(
    client: Client, known: Mapping[TopicPartition, tuple[int, int]], place: str
) -> dict[TopicPartition, int]:
    stopped = read_cursor(place)
    if stopped is None:
        return await start_offsets(client, known, place) if known else {}
    return {
        at: min(max(start, stopped[at.partition]), end) for at, (start, end) in known.items() if at.partition in stopped
    }


def _shown(found: list[SeenRecord], wanted: Wanted) -> list[SeenRecord]:
    """In the order in which they were read or, to follow, the newest first."""
    if not wanted.is_following:
        return found
    newest = sorted(found, key=lambda each: (each.record.timestamp_ms, each.record.offset), reverse=True)
    return newest[: wanted.limit]


def _row(seen: SeenRecord, key_form: str, value_form: str) -> RecordRow:
    record = seen.record
    row = record_row(record, key_form, value_form, longest=SHOWN_BYTES)
    if seen.control is not None:
        row = msgspec.structs.replace(row, key=decoded(record.key, "hex"), value=decoded(record.value, "hex"))
    parts = [record.key, record.value, *(part for name, value in record.headers for part in (name.encode(), value))]
    return msgspec.structs.replace(
        row,
        size=sum(len(each) for each in parts if each is not None),
        producer_id=seen.producer_id,
        txn=seen.is_transactional,
        control=seen.control,
    )


def _unread(topic: TopicDescription, wanted: Wanted, silent: list[TopicPartition]) -> list[Degraded]:
    leaderless = [
        each.partition for each in topic.partitions if each.leader < 0 and wanted.partition in (None, each.partition)
    ]
    troubles = (
        (leaderless, "have no leader and cannot be read"),
        ([each.partition for each in silent], "have a leader that does not report their offsets"),
    )
    return [Degraded(f"partitions {', '.join(map(str, some))}", why) for some, why in troubles if some]


# --- the page ---------------------------------------------------------------------------------------------------------

COLUMNS: Final = (
    Column("offset", is_named=True),
    Column("partition", is_number=True),
    Column("time (UTC)"),
    Column("key"),
    Column("value"),
    Column("headers", is_optional=True, is_detail=True),
    Column("size", is_number=True, about="key, value and headers", is_detail=True),
)
FORM_WORDS: Final = {"auto": "automatic", "utf8": "text", "json": "JSON", "int": "integer", "hex": "hex"}
STOPPED: Final = {
    "end": "read to the end",
    "limit": "there are more",
    "records": f"stopped after {number(BOUNDS.records)} records",
    "bytes": f"stopped after {size(BOUNDS.bytes)}",
    "time": f"stopped after {BOUNDS.seconds:g} s",
}


def render(content: Content[Records], context: PageContext) -> Markup:
    data = content.data
    parts = [topic_tabs(data.topic, "records"), _form(data, context), _quick(data, context), _summary(data, context)]
    parts += [element("p", f"● Damaged: {each}", class_="cut") for each in data.damaged]
    if data.rows:
        parts.append(table("Records", COLUMNS, [_cells(data.topic, each) for each in data.rows]))
    else:
        parts.append(_nothing(data))
    parts.append(_go_on(data, context))
    return joined(parts)


def _path(data: Records) -> str:
    return href("topics", data.topic, "records")


FIELDS = (
    Text("from", "From", "offset, time, end or -N", 20, "text"),
    Text("partition", "Partition", ALL, 4, "text"),
    Choice("key", "Key", FORM_WORDS),
    Choice("value", "Value", FORM_WORDS),
    Choice("committed", "Transactions", {"": "all records", "1": "only committed"}),
    Text("filter", "Filter", 'value.amount > 100 and key ~ "^eu-"', 35),
)


def _form(data: Records, context: PageContext) -> Markup:
    key_form, value_form = _forms(context)
    partition = "" if data.partition is None else str(data.partition)
    query = {**context.query, "partition": partition, "key": key_form, "value": value_form}
    return filter_form(_path(data), FIELDS, query, button="▶ Scan")


def _quick(data: Records, context: PageContext) -> Markup:
    kept = {key: text for key, text in context.query.items() if key not in ("from", "follow")}
    ways = {
        "oldest": {"from": BEGINNING},
        "newest": {"from": f"-{LIMIT_DEFAULT}"},
        "follow new ones": {"follow": "1"},
    }
    links = [element("a", words, href=with_query(_path(data), **kept, **more)) for words, more in ways.items()]
    return element("p", "Jump to: ", joined(links, " · "), class_="note")


def _summary(data: Records, context: PageContext) -> Markup:
    done = f"{plural(data.scanned, 'record')} of {plural(data.partitions, 'partition')} read"
    cost = f"{size(data.bytes)} in {duration(data.took_ms)}"
    matched = f", {number(data.matched)} match" if context.query.get("filter") else ""
    text = f"{done} ({cost}){matched}; {STOPPED[data.stopped]}."
    if context.query.get("follow") == "1":
        back = number(int(data.start.removeprefix("-")))
        stop = element("a", "Stop", href=with_query(_path(data), **{**context.query, "follow": ""}))
        return element(
            "p",
            f"Following: the last {back} of each partition, the newest first, refreshed every {RELOAD_S} s. ",
            stop,
            f". {text}",
            class_="lead",
        )
    return element("p", text, class_="note")


def _nothing(data: Records) -> Markup:
    if not data.scanned:
        example = command(f"ottla topics produce {word(data.topic)} hello")
        return element("p", "No records from there on. Write one: ", example, class_="nothing")
    finished = data.partitions - data.unfinished
    where = f"Scanned {finished} of {plural(data.partitions, 'partition')} to their end."
    return nothing(f"0 of {number(data.scanned)} records scanned match. {where}")


def _go_on(data: Records, context: PageContext) -> Markup:
    if data.cursor is None or context.query.get("follow") == "1":
        return NOTHING
    target = with_query(_path(data), **{**context.query, "from": data.cursor})
    return element("p", element("a", "Continue", href=target, rel="next"), class_="go-on")


def _cells(topic: str, row: RecordRow) -> tuple[Markup | int | None, ...]:
    return (
        link(f"{row.offset:,}", "topics", topic, "records", row.p, row.offset),
        escaped(str(row.p)),
        record_time(row.ts_ms),
        content_of(row.key) if row.value.record is None else typed_key(row.value.record),
        _value(row),
        headers(row),
        byte_size(row.size),
    )


def _value(row: RecordRow) -> Markup:
    if row.control is not None:
        return badge(f"control: {row.control}", "light")
    return element("div", content_of(row.value), badge("transactional")) if row.txn else content_of(row.value)


PAGE = Page(
    "records",
    "/topics/{topic}/records",
    Records,
    load,
    render,
    frozenset({"from", "partition", "filter", "decode", "key", "value", "committed", "follow", "limit"}),
    section="topics",
)
