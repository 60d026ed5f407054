"""Record batches byte by byte: every field of the header and, if they are not compressed, of every record.

Only whole batches of magic 2 are opened. Anything else in a records field (a truncated last batch, message sets of old
brokers) stays one span.
"""

from __future__ import annotations

import struct

from ottla.explain.raw_span import RawSpan, value_text
from ottla.wire.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, BatchView, read_header
from ottla.wire.fault import WireError
from ottla.wire.varint import raw_varint, unfold

MAGIC_POSITION = 16
MAGIC = 2
HEADER_FIELDS = (
    ("BaseOffset", "int64", ">q"),
    ("BatchLength", "int32", ">i"),
    ("PartitionLeaderEpoch", "int32", ">i"),
    ("Magic", "int8", ">b"),
    ("Crc", "uint32", ">I"),
    ("Attributes", "int16", ">h"),
    ("LastOffsetDelta", "int32", ">i"),
    ("BaseTimestamp", "int64", ">q"),
    ("MaxTimestamp", "int64", ">q"),
    ("ProducerId", "int64", ">q"),
    ("ProducerEpoch", "int16", ">h"),
    ("BaseSequence", "int32", ">i"),
    ("RecordCount", "int32", ">i"),
)


def batch_spans(data: bytes, path: str) -> list[RawSpan]:
    """Spans that tile `data`, the content of the records field at `path`."""
    spans: list[RawSpan] = []
    at = index = 0
    while at < len(data):
        batch = _whole_batch(data, at)
        if batch is None:
            spans.append(RawSpan(at, len(data), path, "value", "records", f"{len(data) - at} bytes"))
            break
        spans += _batch(data, at, batch, f"{path}.Batch[{index}]")
        at += batch.size_bytes
        index += 1
    return spans


def _whole_batch(data: bytes, at: int) -> BatchView | None:
    """The batch at `at`; None if there is no whole batch of magic 2."""
    if len(data) - at < HEADER_BYTES or data[at + MAGIC_POSITION] != MAGIC:
        return None
    size = int.from_bytes(data[at + 8 : at + LOG_OVERHEAD_BYTES], "big", signed=True) + LOG_OVERHEAD_BYTES
    if size < HEADER_BYTES or at + size > len(data):
        return None
    try:
        return read_header(data, at)
    except WireError:
        return None


def _batch(data: bytes, at: int, batch: BatchView, path: str) -> list[RawSpan]:
    spans = []
    end = at + batch.size_bytes
    for name, kind, form in HEADER_FIELDS:
        size = struct.calcsize(form)
        (value,) = struct.unpack_from(form, data, at)
        text = f"{value:#010x}" if name == "Crc" else value_text(value, kind)
        spans.append(RawSpan(at, at + size, f"{path}.{name}", "value", kind, text))
        at += size
    if at == end:
        return spans
    if not batch.is_compressed:
        try:
            return spans + _Records(data, at, end, path).spans(batch.record_count)
        except (IndexError, OverflowError):
            pass  # damaged records stay one piece; the decoder has more to say about them
    kind = batch.compression.name.lower() if batch.is_compressed else "records"
    return [*spans, RawSpan(at, end, f"{path}.Records", "value", kind, f"{end - at} bytes")]


class _Records:
    """Labels the fields of records; raises IndexError or OverflowError where records are damaged."""

    def __init__(self, data: bytes, at: int, end: int, path: str) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.path = path
        self.found: list[RawSpan] = []

    def spans(self, count: int) -> list[RawSpan]:
        for index in range(count):
            self.record(f"{self.path}.Records[{index}]")
        if self.at != self.end:
            raise IndexError
        return self.found

    def record(self, path: str) -> None:
        self.varint(f"{path}.Length")
        self.label(1, f"{path}.Attributes", "value", "int8", str(self.data[self.at]))
        self.varint(f"{path}.TimestampDelta", bytes_max=10)
        self.varint(f"{path}.OffsetDelta")
        self.blob(f"{path}.Key")
        self.blob(f"{path}.Value")
        for index in range(self.varint(f"{path}.Headers", "count")):
            self.blob(f"{path}.Headers[{index}].Key")
            self.blob(f"{path}.Headers[{index}].Value")

    def label(self, size: int, path: str, role: str, kind: str, value: str) -> None:
        if self.at + size > self.end:
            raise IndexError
        self.found.append(RawSpan(self.at, self.at + size, path, role, kind, value))
        self.at += size

    def varint(self, path: str, role: str = "value", bytes_max: int = 5) -> int:
        raw, end = raw_varint(self.data, self.at, bytes_max)
        value = unfold(raw)
        self.label(end - self.at, path, role, "varint", str(value))
        return value

    def blob(self, path: str) -> None:
        size = self.varint(path, "length")
        if size < 0:
            self.found[-1] = self.found[-1]._replace(role="null")
        elif size:
            self.label(size, path, "value", "bytes", _blob_text(self.data[self.at : self.at + size]))


def _blob_text(raw: bytes) -> str:
    """Readable content in quotes, anything else as hex."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return f"0x{raw.hex()}"
    return f'"{text}"' if text.isprintable() else f"0x{raw.hex()}"
