"""One record: its fields, its bytes, and the batch that it is stored in."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from ottla.client import EARLIEST, LATEST, Client, Fetcher, TopicPartition, list_offsets
from ottla.client.fetcher import Fetched
from ottla.client.record_text import FORMS, RecordRow, record_row
from ottla.client.topics import TopicDescription
from ottla.console.addresses import href
from ottla.console.described import described_topic, known_topic
from ottla.console.html.navigation import Choice, filter_form
from ottla.console.html.parts import badge, byte_size, facts, link, nothing, offset, section, with_query
from ottla.console.html.records import content as content_of
from ottla.console.html.records import headers, hex_dump, record_time, typed_key
from ottla.console.html.topics import topic_tabs
from ottla.console.page import Content, NotFoundError, Page, PageContext, path_number
from ottla.console.page_parts import load_records
from ottla.console.scan import SeenRecord, seen_record
from ottla.draw.forms import UNKNOWN
from ottla.draw.markup import NOTHING, Markup, element, escaped, joined
from ottla.explain.dissect import dissect_batches
from ottla.explain.show_tree import tree_lines
from ottla.explain.tree import Node
from ottla.wire import WireError
from ottla.wire.aborted import AbortedTransactions
from ottla.wire.batch import AnyBatch, BatchView, Record, split_batches
from ottla.wire.keyed import FAMILIES

SHOWN_BYTES: Final = 4_096
WHOLE_BYTES: Final = 1 << 20
POLLS_MAX: Final = 8
DISSECTED_RECORDS_MAX: Final = 500
TREE_WIDTH: Final = 110


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a batch; what old formats do not have is None."""

    base_offset: int
    last_offset: int
    records: int | None = None
    size_bytes: int
    magic: int
    codec: str
    crc: str
    crc_fits: bool
    leader_epoch: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    transactional: bool = False
    control: bool = False
    delete_horizon_ms: int | None = None


class RecordPage(msgspec.Struct, frozen=True):
    topic: str
    record: RecordRow
    sequence: int | None
    transaction: str | None
    """committed, aborted or open, if it was written in one."""
    batch: Batch
    key_hex: str | None
    value_hex: str | None
    truncated: bool
    """Whether more bytes are there than are shown."""
    tree: list[str]
    """The fields of the bytes, for records of internal topics and those that brokers write."""
    before: int | None
    after: int | None
    """The offsets of the records before and after it, if there are any."""


class Found(NamedTuple):
    seen: SeenRecord
    batch: AnyBatch
    before: int | None
    after: int | None
    transaction: str | None


async def load(context: PageContext) -> Content[RecordPage]:
    key_form, value_form = (context.choice(each, FORMS, "auto") for each in ("key", "value"))
    longest = WHOLE_BYTES if context.choice("whole", ("0", "1")) == "1" else SHOWN_BYTES
    asked = await described_topic(context)
    topic = known_topic(asked)
    at = _place(context, topic)
    wanted = path_number(context, "offset")

    async def work(client: Client) -> Found:
        return await find(client, at, wanted)

    found, at_ms = await load_records(context, "record", work, *at, wanted)
    record = found.seen.record
    row = record_row(record, key_form, value_form, longest=longest)
    data = RecordPage(
        topic=topic.name,
        record=msgspec.structs.replace(
            row, producer_id=found.seen.producer_id, txn=found.seen.is_transactional, control=found.seen.control
        ),
        sequence=_sequence(found.batch, wanted),
        transaction=found.transaction,
        batch=_header(found.batch),
        key_hex=None if record.key is None else record.key[:longest].hex(),
        value_hex=None if record.value is None else record.value[:longest].hex(),
        truncated=any(each is not None and len(each) > longest for each in (record.key, record.value)),
        tree=_tree(topic.name, found),
        before=found.before,
        after=found.after,
    )
    title = f"{topic.name}, partition {at.partition}, offset {wanted:,}"
    return Content(data, title, [*asked.sources, context.asked("record", at_ms)], asked.degraded)


def _place(context: PageContext, topic: TopicDescription) -> TopicPartition:
    partition = path_number(context, "partition")
    if partition not in {each.partition for each in topic.partitions}:
        raise NotFoundError("partition", f"{topic.name}-{partition}")
    return TopicPartition(topic.name, partition)


# --- reading ----------------------------------------------------------------------------------------------------------


async def find(client: Client, at: TopicPartition, wanted: int) -> Found:
    """The record, and its neighbours: one answer from the offset before it on usually has all three."""
    start, end = await _listed(client, at, EARLIEST), await _listed(client, at, LATEST)
    if not start <= wanted < end:
        there = f"The partition has the offsets {start:,} to {end - 1:,}." if end > start else "The partition is empty."
        raise _no_record(at, wanted, there)
    stable = (await list_offsets(client, {at: LATEST}, isolation="read_committed"))[at].offset
    is_ended = wanted < stable
    reader = _Reader(at, start, wanted, is_ended=is_ended)
    async with Fetcher(
        client,
        {at: max(start, wanted - 1)},
        isolation="read_committed" if is_ended else "read_uncommitted",
        on_out_of_range=EARLIEST,
    ) as fetcher:
        for _ in range(POLLS_MAX):
            for fetched in await fetcher.poll():
                reader.take(fetched)
            if reader.after is not None or fetcher.positions.get(at, 0) >= (stable if is_ended else end):
                break
    return reader.found()


async def _listed(client: Client, at: TopicPartition, which: int) -> int:
    return (await list_offsets(client, {at: which}))[at].offset


class _Reader:
    """Looks for a record and its neighbours in what was fetched. `is_ended`: every transaction there has ended."""

    def __init__(self, at: TopicPartition, start: int, wanted: int, *, is_ended: bool) -> None:
        self._at = at
        self._start = start
        self._wanted = wanted
        self._is_ended = is_ended
        self._record: tuple[AnyBatch, Record, bool] | None = None
        self._damage = ""
        self.before: int | None = None
        self.after: int | None = None

    def take(self, fetched: Fetched) -> None:
        aborted = AbortedTransactions(fetched.aborted)
        for batch in split_batches(fetched.data):
            is_aborted = (
                isinstance(batch, BatchView)
                and batch.is_transactional
                and aborted.is_aborted(batch.producer_id, batch.last_offset, is_marker=batch.is_control)
            )
            for record in self._records(batch):
                self._look_at(batch, record, is_aborted=is_aborted)

    def _records(self, batch: AnyBatch) -> list[Record]:
        try:
            return batch.records()
        except WireError as error:
            self._damage = f"A batch there is damaged: {error}."
            return []

    def _look_at(self, batch: AnyBatch, record: Record, *, is_aborted: bool) -> None:
        if record.offset < self._start:
            return  # it was deleted, and others of its batch were not
        if record.offset < self._wanted:
            self.before = record.offset
        elif record.offset == self._wanted:
            self._record = batch, record, is_aborted
        elif self.after is None:
            self.after = record.offset

    def found(self) -> Found:
        if self._record is None:
            following = "" if self.after is None else f" The next record has the offset {self.after:,}."
            why = self._damage or "It was removed by compaction, or never held a record."
            raise _no_record(self._at, self._wanted, f"{why}{following}")
        batch, record, is_aborted = self._record
        seen = seen_record(self._at, batch, record)
        ended = "aborted" if is_aborted else "committed"
        transaction = (ended if self._is_ended else "open") if seen.is_transactional and not seen.control else None
        return Found(seen, batch, self.before, self.after, transaction)


def _no_record(at: TopicPartition, wanted: int, last: str) -> NotFoundError:
    return NotFoundError("record", f"{at} at offset {wanted:,}", last=last)


def _sequence(batch: AnyBatch, wanted: int) -> int | None:
    if not isinstance(batch, BatchView) or batch.base_sequence < 0:
        return None
    return batch.sequence_of(wanted)


def _header(batch: AnyBatch) -> Batch:
    header = Batch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        size_bytes=batch.size_bytes,
        magic=batch.magic,
        codec=batch.compression.name.lower(),
        crc=f"{batch.crc:#010x}",
        crc_fits=batch.is_valid,
    )
    if not isinstance(batch, BatchView):
        return header
    return msgspec.structs.replace(
        header,
        records=batch.record_count,
        leader_epoch=batch.partition_leader_epoch,
        producer_id=batch.producer_id if batch.has_producer_id else None,
        producer_epoch=batch.producer_epoch if batch.has_producer_id else None,
        base_sequence=batch.base_sequence if batch.base_sequence >= 0 else None,
        transactional=batch.is_transactional,
        control=batch.is_control,
        delete_horizon_ms=batch.delete_horizon_ms,
    )


def _tree(topic: str, found: Found) -> list[str]:
    """The bytes field by field, if we know what they mean; secrets are left out of it."""
    batch = found.batch
    is_known = topic in FAMILIES or batch.is_control
    if not is_known or not isinstance(batch, BatchView) or batch.record_count > DISSECTED_RECORDS_MAX:
        return []
    data = bytes(batch.data)
    for whole in dissect_batches(data, topic):
        records = whole.child("Records")
        for node in records.children if records is not None else ():
            if _offset_of(node) == found.seen.record.offset:
                return ["".join(piece.text for piece in line).rstrip() for line in tree_lines([node], data, TREE_WIDTH)]
    return []


def _offset_of(node: Node) -> object:
    child = node.child("Offset")
    return None if child is None else child.value


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[RecordPage], context: PageContext) -> Markup:
    data = content.data
    row = data.record
    key = content_of(row.key) if row.value.record is None else typed_key(row.value.record)
    return joined(
        [
            topic_tabs(data.topic, "records"),
            _neighbours(data),
            section("Record", facts(_fields(data))),
            section("Headers", headers(row)) if row.headers else NOTHING,
            _part("Key", row.key.bytes_len, key, data.key_hex),
            _part("Value", row.value.bytes_len, content_of(row.value), data.value_hex),
            _whole(data, context),
            _form(data, context),
            _annotated(data),
            section("Batch", facts(_batch_fields(data.batch))),
        ]
    )


def _neighbours(data: RecordPage) -> Markup:
    row = data.record
    links = [
        element("a", words, href=href("topics", data.topic, "records", row.p, place), rel=rel)
        for words, place, rel in (("◂ previous record", data.before, "prev"), ("next record ▸", data.after, "next"))
        if place is not None
    ]
    links.append(link("records from here", "topics", data.topic, "records", **{"from": f"{row.p}:{row.offset}"}))
    return element("p", joined(links, " · "), class_="note")


def _fields(data: RecordPage) -> dict[str, Markup | str | int | None]:
    row = data.record
    return {
        "partition": escaped(str(row.p)),
        "offset": offset(row.offset),
        "time (UTC)": record_time(row.ts_ms),
        "timestamp type": "of the broker" if row.ts_type == "LOG_APPEND_TIME" else "of the producer",
        "headers": len(row.headers),
        "producer id": offset(row.producer_id),
        "sequence": offset(data.sequence),
        "transaction": data.transaction or "none",
        "control": "no" if row.control is None else badge(row.control, "light"),
    }


def _part(title: str, length: int, text: Markup, data_hex: str | None) -> Markup:
    if data_hex is None:
        return section(title, nothing("null"))
    dump = hex_dump(bytes.fromhex(data_hex), f"{title} in hex") if data_hex else NOTHING
    return section(title, text, dump, note=f" {length:,} bytes")


def _whole(data: RecordPage, context: PageContext) -> Markup:
    if not data.truncated:
        return NOTHING
    if context.query.get("whole") == "1":
        return nothing(f"Only the first {WHOLE_BYTES:,} bytes are shown; 'ottla topics consume' shows all.")
    target = with_query(
        href("topics", data.topic, "records", data.record.p, data.record.offset), **{**context.query, "whole": "1"}
    )
    return element("p", f"Only the first {SHOWN_BYTES:,} bytes are shown. ", element("a", "Show all", href=target), ".")


def _form(data: RecordPage, context: PageContext) -> Markup:
    forms = {each: each for each in FORMS}
    path = href("topics", data.topic, "records", data.record.p, data.record.offset)
    query = {"key": "auto", "value": "auto", **context.query}
    return filter_form(path, (Choice("key", "Key as", forms), Choice("value", "Value as", forms)), query)


def _annotated(data: RecordPage) -> Markup:
    if not data.tree:
        return NOTHING
    note = " offsets are relative to the batch; in brackets, after decompression"
    text = element("pre", "\n".join(data.tree), class_="dump", tabindex="0", role="region", aria_label="Fields")
    return section("Field by field", text, note=note)


def _batch_fields(batch: Batch) -> dict[str, Markup | str | int | None]:
    fits = badge("✓ fits", "light ok") if batch.crc_fits else badge("▲ does not match", "light critical")
    return {
        "offsets": f"{batch.base_offset:,} to {batch.last_offset:,}",
        "records": offset(batch.records),
        "size": byte_size(batch.size_bytes),
        "compression": batch.codec,
        "format (magic)": str(batch.magic),
        "leader epoch": offset(batch.leader_epoch),
        "producer id": offset(batch.producer_id),
        "producer epoch": offset(batch.producer_epoch),
        "first sequence": offset(batch.base_sequence),
        "transactional": "yes" if batch.transactional else "no",
        "control": "yes" if batch.control else "no",
        "delete horizon": UNKNOWN if batch.delete_horizon_ms is None else record_time(batch.delete_horizon_ms),
        "checksum (CRC)": joined([element("code", batch.crc), " ", fits]),
    }


PAGE = Page(
    "record",
    "/topics/{topic}/records/{partition}/{offset}",
    RecordPage,
    load,
    render,
    frozenset({"key", "value", "whole"}),
    section="topics",
)
