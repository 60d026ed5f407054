import pytest

from ottla.core.metadata.context import Result
from ottla.core.metadata.fault import MetadataFault, Reject, UnsupportedMetadataError
from ottla.core.metadata.records import BATCH_BYTES_MAX, build_batches, read_batch
from ottla.wire.batch import BatchBuilder, ControlRecordType, Header, build_control_batch, read_header
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned, encode_framed
from ottla.wire.types.cluster_metadata import ConfigRecord, NoOpRecord
from ottla.wire.types.control_records import SnapshotFooterRecord

NO_OP = Versioned(NoOpRecord(), 0)
# Written by Apache Kafka 4.3.1.
NO_OP_BATCH = bytes.fromhex(
    "000000000000000d0000003c0000000102e71c9a97000000000000000001a1dce10ea7000001a1dce10ea7"
    "ffffffffffffffffffffffffffff00000001140000000108011400 00 00".replace(" ", "")
)


def test_a_batch_is_apaches_byte_for_byte():
    (batch,) = build_batches(Result((NO_OP,), None), base_offset=13, epoch=1, timestamp_ms=0x1A1DCE10EA7)
    assert batch == NO_OP_BATCH
    assert read_batch(read_header(NO_OP_BATCH)) == [NO_OP]


def test_no_records_no_batch():
    assert build_batches(Result((), None), base_offset=0, epoch=1, timestamp_ms=0) == []


def test_what_may_come_in_pieces_does():
    result = Result((NO_OP,) * 25_000, None, is_atomic=False)
    batches = [read_header(batch) for batch in build_batches(result, base_offset=5, epoch=1, timestamp_ms=0)]
    assert [(batch.base_offset, batch.record_count) for batch in batches] == [
        (5, 10_000),
        (10_005, 10_000),
        (20_005, 5_000),
    ]


def test_what_must_not_is_refused():
    with pytest.raises(Reject) as refused:
        build_batches(Result((NO_OP,) * 10_001, None), base_offset=0, epoch=1, timestamp_ms=0)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


def test_what_no_record_can_hold_is_refused():
    long = Versioned(ConfigRecord(2, "t", "k" * 32_768, "v"), 0)
    with pytest.raises(Reject) as refused:
        build_batches(Result((NO_OP, long), None), base_offset=0, epoch=1, timestamp_ms=0)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_batches_are_bounded_in_bytes_too():
    large = Versioned(ConfigRecord(2, "t", "k", "x" * 32_000), 0)
    batches = build_batches(Result((large,) * 600, None, is_atomic=False), base_offset=0, epoch=1, timestamp_ms=0)
    assert [read_header(batch).record_count for batch in batches] == [261, 261, 78]
    assert all(len(batch) <= BATCH_BYTES_MAX for batch in batches)


VALUE = encode_framed(*NO_OP)


def batch_of(*records: tuple[int, bytes | None, bytes | None], headers: tuple[Header, ...] = ()) -> bytes:
    builder = BatchBuilder(7)
    for timestamp, key, value in records:
        builder.append(timestamp, key, value, headers)
    return builder.build()


@pytest.mark.parametrize(
    "batch",
    [
        batch_of((0, b"key", VALUE)),
        batch_of((0, None, None)),
        batch_of((0, None, b"")),
        batch_of((5, None, VALUE), (6, None, VALUE)),
        batch_of((0, None, VALUE), headers=(("h", b""),)),
        build_control_batch(
            [(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord())],
            base_offset=7,
            timestamp=0,
            partition_leader_epoch=1,
        ),
    ],
    ids=["key", "null", "empty", "timestamps", "headers", "control"],
)
def test_what_no_metadata_log_may_hold(batch: bytes):
    with pytest.raises(MetadataFault, match=r"offset [78]"):
        read_batch(read_header(batch))


@pytest.mark.parametrize(
    "value", [b"\x02\x14\x00\x00", b"\x01\x63\x00\x00", b"\x01\x14\x07\x00", b"\x01\x14", VALUE + b"\x00"]
)
def test_records_of_later_software(value: bytes):
    with pytest.raises(UnsupportedMetadataError, match="offset 7"):
        read_batch(read_header(batch_of((0, None, value))))
