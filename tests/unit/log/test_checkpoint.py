import pytest

from ottla.log.checkpoint import (
    CheckpointError,
    format_epochs,
    format_offset_steps,
    format_offsets,
    format_partition_metadata,
    parse_epochs,
    parse_offsets,
    parse_partition_metadata,
)
from ottla.log.names import TopicPartition
from ottla.wire import uuid_bytes

OFFSETS = {TopicPartition("orders", 0): 7, TopicPartition("a.b-c", 12): 2**63 - 1}


def test_offsets_are_lines_after_a_version_and_a_count():
    data = format_offsets(OFFSETS)
    assert data == b"0\n2\norders 0 7\na.b-c 12 9223372036854775807\n"
    assert parse_offsets(data) == OFFSETS


def test_many_offsets_are_made_to_lines_in_steps():
    offsets = {TopicPartition("orders", number): number for number in range(1_200)}
    assert sum(1 for _ in format_offset_steps(offsets)) == 2
    assert parse_offsets(format_offsets(offsets)) == offsets


def test_epochs_are_lines_after_a_version_and_a_count():
    assert format_epochs([(0, 0), (3, 57)]) == b"0\n2\n0 0\n3 57\n"
    assert parse_epochs(b"0\n2\n0 0\n3 57\n") == [(0, 0), (3, 57)]


@pytest.mark.parametrize("data", [b"", b"0\n0\n", b"0\n0"])
def test_an_empty_checkpoint(data: bytes):
    assert parse_offsets(data) == {}
    assert parse_epochs(data) == []


@pytest.mark.parametrize(
    "data",
    [
        b"0\n",
        b"1\n0\n",
        b"0\n2\norders 0 7\n",
        b"0\n1\norders 0 7\norders 1 7\n",
        b"0\n1\n\norders 0 7\n",
        b"0\n1\norders 0\n",
        b"0\n1\norders zero 7\n",
        b"x\n1\norders 0 7\n",
        b"\xff\xfe",
        b"0\n1\n1 -5\n",
    ],
)
def test_what_is_no_checkpoint_is_refused(data: bytes):
    with pytest.raises(CheckpointError):
        parse_offsets(data)
    with pytest.raises(CheckpointError):
        parse_epochs(data)


def test_partition_metadata_has_no_newline_at_its_end():
    topic_id = uuid_bytes("dnBCA2kRSpSW6gLn6PBWoA")
    data = format_partition_metadata(topic_id)
    assert data == b"version: 0\ntopic_id: dnBCA2kRSpSW6gLn6PBWoA"
    assert len(data) == 43
    assert parse_partition_metadata(data) == topic_id


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 0\n",
        b"version: 1\ntopic_id: dnBCA2kRSpSW6gLn6PBWoA",
        b"version: 0\ntopic_id: dnBCA2kRSpSW6gLn6PBW",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"topic_id: dnBCA2kRSpSW6gLn6PBWoA",
    ],
)
def test_what_is_no_partition_metadata_is_refused(data: bytes):
    with pytest.raises(CheckpointError):
        parse_partition_metadata(data)
