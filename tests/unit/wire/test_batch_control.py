"""Control records: what Java wrote comes out byte for byte when its messages are written again."""

import struct
from typing import Any

import pytest

from ottla.wire import WireError
from ottla.wire.batch import (
    BatchView,
    ControlRecordType,
    Record,
    build_batch,
    build_control_batch,
    build_end_txn_marker,
    read_control_batch,
    read_control_record,
    read_control_type,
    split_batches,
)
from tests.unit.wire import batch_vectors as golden

CONTROL = [vector for vector in golden.good() if vector["group"] == "control"]
MARKERS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)


def only(data: bytes) -> BatchView:
    (batch,) = split_batches(data, allow_partial_tail=False)
    assert isinstance(batch, BatchView)
    return batch


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in CONTROL])
def test_written_again_byte_for_byte(vector: dict[str, Any]):
    batch = only(golden.raw(vector))
    records = read_control_batch(batch)
    if records[0].type in MARKERS:
        again = build_end_txn_marker(
            committed=records[0].type is ControlRecordType.COMMIT,
            coordinator_epoch=records[0].message.coordinator_epoch,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            timestamp=batch.base_timestamp,
            base_offset=batch.base_offset,
            partition_leader_epoch=batch.partition_leader_epoch,
        )
    else:
        again = build_control_batch(
            [(record.type, record.message) for record in records],
            base_offset=batch.base_offset,
            timestamp=batch.base_timestamp,
            partition_leader_epoch=batch.partition_leader_epoch,
        )
    assert again == golden.raw(vector)


def test_all_types_occur():
    found = {record.type for vector in CONTROL for record in read_control_batch(only(golden.raw(vector)))}
    assert found == set(ControlRecordType) - {ControlRecordType.UNKNOWN}


def test_markers_as_messages_are_the_same_bytes():
    marker = only(golden.raw(next(v for v in CONTROL if v["name"] == "control/commit-0")))
    (record,) = read_control_batch(marker)
    data = build_control_batch([(record.type, record.message)], base_offset=0, timestamp=0, partition_leader_epoch=0)
    assert only(data).records()[0].value == marker.records()[0].value


@pytest.mark.parametrize(
    ("key", "reason"),
    [(None, "no bytes"), (b"", "0 bytes"), (b"\0\0\0", "3 bytes"), (b"\xff\xff\0\1", "below zero")],
)
def test_keys_that_name_no_type(key: bytes | None, reason: str):
    with pytest.raises(WireError, match=reason):
        read_control_type(key)


def test_later_versions_of_the_key_read_the_same():
    assert read_control_type(struct.pack(">hh", 9, 1) + b"more") == 1


def test_unknown_types_stay_closed():
    record = read_control_record(Record(5, 10, struct.pack(">hh", 0, 99), b"whatever"))
    assert (record.type, record.type_id, record.message) == (ControlRecordType.UNKNOWN, 99, None)
    assert (record.offset, record.timestamp) == (5, 10)
    negative = read_control_record(Record(5, 10, struct.pack(">hh", 0, -1), None))
    assert (negative.type, negative.type_id) == (ControlRecordType.UNKNOWN, -1)


@pytest.mark.parametrize("value", [None, b"", b"\0", struct.pack(">hi", -1, 3), struct.pack(">hh", 0, 1)])
@pytest.mark.parametrize("kind", [kind for kind in ControlRecordType if kind is not ControlRecordType.UNKNOWN])
def test_values_that_are_no_message(kind: ControlRecordType, value: bytes | None):
    with pytest.raises(WireError):
        read_control_record(Record(0, 0, struct.pack(">hh", 0, kind), value))


def test_later_markers_read_as_far_as_they_are_known():
    value = struct.pack(">hi", 3, 17) + b"later"
    assert read_control_record(Record(0, 0, struct.pack(">hh", 0, 1), value)).message.coordinator_epoch == 17


def test_data_batches_hold_no_control_records():
    with pytest.raises(WireError, match="no control records"):
        read_control_batch(only(build_batch([Record(0, 0, None, None)])))


def test_an_epoch_that_no_marker_holds():
    with pytest.raises(WireError, match="coordinator_epoch"):
        build_end_txn_marker(committed=True, coordinator_epoch=2**31, producer_id=1, producer_epoch=0, timestamp=0)
