"""Views of record batches: the header unpacked, the rest left where it is.

`split_batches` splits a buffer into `BatchView`s (and `LegacyBatch`es). A view keeps the caller's buffer; nothing is
copied and only the header is read. Splitting checks only lengths and magic, in the order of Kafka's Java reader: a
batch that claims more bytes than there are is a truncated tail (usual in fetch responses), not damage. The layout is in
`ottla.wire.batch`.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from ottla.wire.batch_record import Record, Section, TimestampType, read_records, walk_records
from ottla.wire.compress import DEFAULT_MAX_BYTES, Compression, decompress
from ottla.wire.fault import WireError
from ottla.wire.legacy import LegacyBatch, read_legacy_batch
from ottla.wire.varint import wrap_int32, wrap_int64

__all__ = [
    "HEADER_BYTES",
    "LOG_OVERHEAD_BYTES",
    "AnyBatch",
    "BatchView",
    "Buffer",
    "crc32c",
    "decrement_sequence",
    "increment_sequence",
    "iterate_records",
    "read_header",
    "split_batches",
]

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
# Offset and length come before what `batch_length` counts, in every magic.
LOG_OVERHEAD_BYTES: Final = 12
ATTRIBUTES_POSITION: Final = 21

CODEC_BITS: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

_LENGTH: Final = struct.Struct(">i")
_LENGTH_MIN: Final = 14  # the smallest message of magic 0
_MAGIC_POSITION: Final = 16
_SEQUENCE_MAX: Final = (1 << 31) - 1

Buffer = bytes | bytearray | memoryview


@functools.cache
def _crc32c_function() -> Callable[[Buffer, int], int]:
    # Imported when a checksum is needed, and without the package's own __init__, which reads the versions of installed
    # packages and sets up a command line in 60 ms.
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    package = PathFinder.find_spec("crc32c")
    spec = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if not spec or spec.loader is None:  # packaged in another way, for example frozen
        from crc32c import crc32c as function

        return function
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.crc32c  # type: ignore[no-any-return]


def crc32c(data: Buffer, crc: int = 0) -> int:
    """CRC-32C of `data`, continuing from `crc`."""
    return _crc32c_function()(data, crc)


class BatchView(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The header of one batch, and the buffer that holds the batch at `position`.

    It is a snapshot: after changing the bytes (see `ottla.wire.batch_build.stamp`), make a new view.
    """

    buffer: memoryview
    position: int
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    def __repr__(self) -> str:
        return (
            f"BatchView(offsets={self.base_offset}-{self.last_offset}, record_count={self.record_count}, "
            f"size_bytes={self.size_bytes}, attributes={self.attributes:#x}, position={self.position})"
        )

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())

    @property
    def size_bytes(self) -> int:
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def data(self) -> memoryview:
        """The whole batch, including the header."""
        return self.buffer[self.position : self.position + self.size_bytes]

    @property
    def body(self) -> memoryview:
        """The records as they are stored, compressed or not."""
        return self.buffer[self.position + HEADER_BYTES : self.position + self.size_bytes]

    @property
    def last_offset(self) -> int:
        return wrap_int64(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> int:
        return wrap_int64(self.last_offset + 1)

    @property
    def compression(self) -> Compression:
        try:
            return Compression(self.attributes & CODEC_BITS)
        except ValueError:
            reason = f"compression {self.attributes & CODEC_BITS} does not exist"
            raise WireError("RecordBatch.attributes", self.position + ATTRIBUTES_POSITION, reason) from None

    @property
    def is_compressed(self) -> bool:
        return self.attributes & CODEC_BITS != 0

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the cleaner may drop the batch's tombstones or marker; None if it has not processed them yet."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > -1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == -1:
            return -1
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    def sequence_of(self, offset: int) -> int:
        """The sequence number of the record with this offset; -1 if the batch has none."""
        if self.base_sequence < 0:
            return -1
        return increment_sequence(self.base_sequence, wrap_int32(offset - self.base_offset))

    @property
    def is_valid(self) -> bool:
        return self.crc == self.compute_crc()

    def compute_crc(self) -> int:
        start = self.position + ATTRIBUTES_POSITION
        return crc32c(self.buffer[start : self.position + self.size_bytes])

    def check_crc(self) -> None:
        """Raise WireError if the checksum is wrong."""
        computed = self.compute_crc()
        if computed != self.crc:
            raise WireError(
                "RecordBatch.crc", self.position + 17, f"{self.crc:#010x} is stored, {computed:#010x} computed"
            )

    def section(self, *, copy: bool = True, max_decompressed_bytes: int = DEFAULT_MAX_BYTES) -> Section:
        """The records' bytes, decompressed; a view of the caller's buffer if not `copy` and there is no codec."""
        start = self.position + HEADER_BYTES
        path = "RecordBatch.records"
        if not self.is_compressed:
            return Section(bytes(self.body) if copy else self.body, path, start, was_compressed=False)
        plain = decompress(self.compression, self.body, max_bytes=max_decompressed_bytes, path=path, byte_offset=start)
        return Section(plain if copy else memoryview(plain), path, start, was_compressed=True)

    def records(
        self,
        *,
        copy: bool = True,
        stored_timestamps: bool = False,
        max_decompressed_bytes: int = DEFAULT_MAX_BYTES,
    ) -> list[Record]:
        """All records. Raises WireError for damage; the checksum is not verified.

        Keys and values are `bytes`, or memoryviews if not `copy`. In a batch with log append time every record has that
        time; `stored_timestamps` gives the producer's timestamps instead, which the bytes still hold.
        """
        if self.record_count == 0:
            return []
        section = self.section(copy=copy, max_decompressed_bytes=max_decompressed_bytes)
        use_append_time = self.attributes & LOG_APPEND_TIME_BIT and not stored_timestamps
        append_time = self.max_timestamp if use_append_time else None
        records = read_records(section.data, self.record_count, self.base_offset, self.base_timestamp, append_time)
        if records is None:
            return walk_records(section, self.record_count, self.base_offset, self.base_timestamp, append_time)
        return records


AnyBatch = BatchView | LegacyBatch


def read_header(buffer: Buffer, position: int = 0) -> BatchView:
    """The view of a batch; `buffer` need only hold the 61 bytes of its header."""
    view = memoryview(buffer)
    if len(view) - position < HEADER_BYTES:
        reason = f"{max(len(view) - position, 0)} bytes are no header of {HEADER_BYTES}"
        raise WireError("RecordBatch", position, reason)
    batch = BatchView(view, position, *HEADER.unpack_from(view, position))
    if batch.magic != 2:
        raise WireError("RecordBatch.magic", position + _MAGIC_POSITION, f"{batch.magic} instead of 2")
    if batch.size_bytes < HEADER_BYTES:
        reason = f"{batch.batch_length} bytes are fewer than a header has"
        raise WireError("RecordBatch.batch_length", position + 8, reason)
    return batch


def split_batches(buffer: Buffer, *, position: int = 0, allow_partial_tail: bool = True) -> Iterator[AnyBatch]:
    """Each batch from `position` on, of any magic.

    A truncated last one is left out, or raises WireError if that is not allowed.
    """
    view = memoryview(buffer)
    while True:
        size = _next_size(view, position)
        if size is None:
            break
        magic = view[position + _MAGIC_POSITION]
        yield read_header(view, position) if magic == 2 else read_legacy_batch(view, position)
        position += size
    if position < len(view) and not allow_partial_tail:
        raise WireError("RecordBatch", position, f"the last {len(view) - position} bytes are not a whole batch")


def _next_size(view: memoryview, position: int) -> int | None:
    """The size of the batch at `position`.

    None if it is not whole. The order of the checks is that of the Java reader.
    """
    rest = len(view) - position
    if rest < LOG_OVERHEAD_BYTES:
        return None
    (length,) = _LENGTH.unpack_from(view, position + 8)
    if length < _LENGTH_MIN:
        raise WireError("RecordBatch.batch_length", position + 8, f"{length} bytes are fewer than any batch has")
    if rest <= _MAGIC_POSITION:
        return None
    magic = view[position + _MAGIC_POSITION]
    if magic > 2:
        raise WireError("RecordBatch.magic", position + _MAGIC_POSITION, f"{magic} is none of 0, 1 and 2")
    size: int = length + LOG_OVERHEAD_BYTES
    return size if size <= rest else None


def iterate_records(
    buffer: Buffer, *, check_crc: bool = True, include_control: bool = False, copy: bool = True
) -> Iterator[Record]:
    """The records of all batches in a buffer, with checksums verified, and without control records."""
    for batch in split_batches(buffer):
        if check_crc:
            batch.check_crc()
            if isinstance(batch, LegacyBatch):
                batch.check_inner_crcs()
        if include_control or not batch.is_control:
            yield from batch.records(copy=copy)


def increment_sequence(sequence: int, increment: int) -> int:
    """`increment` steps ahead; after 2^31 - 1 comes 0. Computed in 32 bits like Java, also for invalid numbers."""
    if sequence > wrap_int32(_SEQUENCE_MAX - increment):
        return wrap_int32(increment - (_SEQUENCE_MAX - sequence) - 1)
    return wrap_int32(sequence + increment)


def decrement_sequence(sequence: int, decrement: int) -> int:
    """`decrement` steps back; before 0 comes 2^31 - 1."""
    if sequence < decrement:
        return _SEQUENCE_MAX - (decrement - sequence) + 1
    return sequence - decrement
