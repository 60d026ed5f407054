"""Records of cores as the bytes that stand in the log."""

from __future__ import annotations

from ottla.core.coordinator.records import encode_record, record, tombstone
from ottla.wire.keyed import decode_keyed, encode_framed
from ottla.wire.types.group_classic import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from ottla.wire.types.transaction_log import TransactionLogKey, TransactionLogValue


def test_a_record_is_read_back_as_it_was_made() -> None:
    made = record(OffsetCommitKey("g", "t", 3), OffsetCommitValue(offset=7, metadata="m"), 4)
    key, value = encode_record(made)
    assert key[:2] == b"\x00\x01", "the type of the record"
    assert value is not None
    assert value[:2] == b"\x00\x04", "the version of the value"
    assert decode_keyed("__consumer_offsets", key, value) == made


def test_it_is_written_as_the_codec_writes_it() -> None:
    made = record(TransactionLogKey("x"), TransactionLogValue(producer_id=5), 1)
    assert encode_record(made) == (encode_framed(made.key, made.key_version), encode_framed(made.value, 1))


def test_a_tombstone_has_no_value() -> None:
    made = tombstone(GroupMetadataKey("g"))
    key, value = encode_record(made)
    assert value is None
    assert decode_keyed("__consumer_offsets", key, None) == made
