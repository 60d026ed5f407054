"""Record batches: reading, building, changing them. This module exports the names of `ottla.wire.batch_*`.

::

    base_offset             int64   0   outside the checksum: the leader assigns it
    batch_length            int32   8   bytes after this field; the whole batch has 12 more
    partition_leader_epoch  int32  12   outside the checksum: the leader assigns it
    magic                   int8   16   2; message sets of magic 0 and 1 are in `ottla.wire.legacy`
    crc                     uint32 17   CRC-32C of everything that follows
    attributes              int16  21   bits 0-2 codec, 3 append time, 4 transactional, 5 control, 6 delete horizon
    last_offset_delta       int32  23   kept by compaction, also when the last record has gone
    base_timestamp          int64  27   the first record's; with bit 6 the delete horizon; -1 in an empty batch
    max_timestamp           int64  35   the largest of the records', or the time of the append
    producer_id             int64  43   -1: not idempotent
    producer_epoch          int16  51
    base_sequence           int32  53   after 2^31 - 1 comes 0
    record_count            int32  57
    records                        61   compressed as one piece if there is a codec

Reading:

    for batch in split_batches(data):       # views, nothing is copied; a truncated last batch is left out
        batch.check_crc()
        for record in batch.records():      # offset, timestamp, key, value, headers
            ...

Writing: `build_batch(records, compression=Compression.ZSTD)`, or a `BatchBuilder`, which knows its present size.
For brokers: `stamp` assigns offsets in place, `recompress_batch` and `filter_batch` serve `compression.type` and
compaction. Control records, from transaction markers to the quorum's voters, are built and opened here, too. Many
batches at once become columns in `ottla.wire.columns`.

Damage raises `WireError`; its byte offset counts from the start of the given buffer. Only `check_crc` (and
`iterate_records`) verify the checksum, as in Java, where the caller decides.
"""

from ottla.wire.batch_build import BatchBuilder, build_batch, filter_batch, recompress_batch, stamp
from ottla.wire.batch_control import (
    ControlRecord,
    ControlRecordType,
    build_control_batch,
    build_end_txn_marker,
    read_control_batch,
    read_control_record,
    read_control_type,
)
from ottla.wire.batch_record import Header, Record, TimestampType
from ottla.wire.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    AnyBatch,
    BatchView,
    crc32c,
    decrement_sequence,
    increment_sequence,
    iterate_records,
    read_header,
    split_batches,
)
from ottla.wire.compress import DEFAULT_MAX_BYTES, Compression, compress, decompress
from ottla.wire.legacy import LegacyBatch

__all__ = [
    "DEFAULT_MAX_BYTES",
    "HEADER_BYTES",
    "LOG_OVERHEAD_BYTES",
    "AnyBatch",
    "BatchBuilder",
    "BatchView",
    "Compression",
    "ControlRecord",
    "ControlRecordType",
    "Header",
    "LegacyBatch",
    "Record",
    "TimestampType",
    "build_batch",
    "build_control_batch",
    "build_end_txn_marker",
    "compress",
    "crc32c",
    "decompress",
    "decrement_sequence",
    "filter_batch",
    "increment_sequence",
    "iterate_records",
    "read_control_batch",
    "read_control_record",
    "read_control_type",
    "read_header",
    "recompress_batch",
    "split_batches",
    "stamp",
]
