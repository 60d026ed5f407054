"""Records of internal topics with what is stored before them."""

from __future__ import annotations

import pytest

from ottla import wire
from ottla.wire import WireError, keyed
from tests.unit.wire.message_vectors import raw, vectors

TOPICS = {
    "kafka-group-coordinator 4.3.1": "__consumer_offsets",
    "kafka-transaction-coordinator 4.3.1": "__transaction_state",
    "kafka-share-coordinator 4.3.1": "__share_group_state",
    "kafka-metadata 4.3.1": "__cluster_metadata",
    "kafka-storage 4.3.1": "__remote_log_metadata",
}


@pytest.mark.parametrize("name", sorted(vectors()))
def test_framing_is_kafkas(name: str) -> None:
    for case in vectors()[name]:
        assert keyed.framing(name) == case.get("framing")
        message = wire.decode(name, case["version"], raw(case))
        if "framedHex" in case:
            assert keyed.encode_framed(message, case["version"]).hex() == case["framedHex"]


@pytest.mark.parametrize("name", sorted(name for name, cases in vectors().items() if "framedHex" in cases[0]))
def test_framed_bytes_are_read_back_to_their_type(name: str) -> None:
    for case in vectors()[name]:
        framed = bytes.fromhex(case["framedHex"])
        message = wire.decode(name, case["version"], raw(case))
        if case["framing"] == "type16":
            assert keyed.decode_keyed(TOPICS[case["source"]], framed, None) == (message, 0, None, -1)
        elif case["framing"] == "frame-varints":
            assert keyed.decode_metadata(TOPICS[case["source"]], framed) == (message, case["version"])
        else:
            assert keyed.decode_versioned(name, framed) == (message, case["version"])


def test_a_key_and_its_value() -> None:
    types = wire.types
    key = keyed.encode_framed(types.ConsumerGroupMetadataKey("g"), 0)
    value = keyed.encode_framed(types.ConsumerGroupMetadataValue(epoch=7), 0)
    record = keyed.decode_keyed("__consumer_offsets", key, value)
    assert (record.key.group_id, record.value.epoch, record.value_version) == ("g", 7, 0)


@pytest.mark.parametrize(
    ("topic", "key", "reason"),
    [
        ("__consumer_offsets", b"\x00", "cut off"),
        ("__consumer_offsets", b"\x03\xe7", "no record type 999"),
        ("orders", b"\x00\x00", "is not an internal topic"),
    ],
)
def test_a_key_of_no_known_type_is_refused(topic: str, key: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        keyed.decode_keyed(topic, key, None)


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "cut off"), (b"\x02\x00\x00", "frame version 2"), (b"\x01\x7f\x00", "no record type 127")],
)
def test_a_metadata_record_of_no_known_type_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        keyed.decode_metadata("__cluster_metadata", data)


def test_a_value_too_short_for_its_version_is_refused() -> None:
    with pytest.raises(WireError, match="cut off"):
        keyed.decode_versioned("EndTxnMarker", b"\x00")
