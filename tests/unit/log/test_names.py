import pytest

from ottla.log.names import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    FileName,
    TopicPartition,
    file_name,
    marked_directory_name,
    parse_directory_name,
    parse_file_name,
)


def test_a_files_name_is_its_offset_in_twenty_digits():
    assert file_name(42, ".index") == "00000000000000000042.index"
    assert file_name(2**63 - 1, ".log", ".swap") == "09223372036854775807.log.swap"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("00000000000000000042.log", FileName(42, ".log", "")),
        ("00000000000000000042.timeindex.cleaned", FileName(42, ".timeindex", ".cleaned")),
        ("00000000000000000000.snapshot.deleted", FileName(0, ".snapshot", ".deleted")),
        ("leader-epoch-checkpoint", None),
        ("partition.metadata", None),
        ("00000000000000000100-0000000003.checkpoint", None),
        ("00000000000000000042.txt", None),
        ("00000000000000000042", None),
        ("٣.log", None),
    ],
)
def test_the_parts_of_a_files_name(name: str, parts: FileName | None):
    assert parse_file_name(name) == parts


@pytest.mark.parametrize(
    ("name", "partition", "mark"),
    [
        ("orders-0", TopicPartition("orders", 0), ""),
        ("a-b.c_d-17", TopicPartition("a-b.c_d", 17), ""),
        ("__cluster_metadata-0", TopicPartition("__cluster_metadata", 0), ""),
        ("orders-3.0123456789abcdef0123456789abcdef-delete", TopicPartition("orders", 3), "-delete"),
        ("orders-3.0123456789abcdef0123456789abcdef-stray", TopicPartition("orders", 3), "-stray"),
        ("a.b-3.0123456789abcdef0123456789abcdef-future", TopicPartition("a.b", 3), "-future"),
    ],
)
def test_whose_directory_it_is(name: str, partition: TopicPartition, mark: str):
    assert parse_directory_name(name) == (partition, mark)
    assert str(partition) in name


@pytest.mark.parametrize("name", ["orders", "-0", "orders-", "orders-x", "orders-1-delete", "foo", ""])
def test_directories_that_belong_to_no_partition(name: str):
    assert parse_directory_name(name) is None


def test_a_marked_name_is_cut_to_what_file_systems_take():
    partition = TopicPartition("t" * 249, 12)
    name = marked_directory_name(partition, "0" * 32, DELETE_SUFFIX)
    assert len(name) == 255
    assert parse_directory_name(name) == (TopicPartition("t" * 212, 12), DELETE_SUFFIX)


def test_a_moving_partition_keeps_its_name():
    partition = TopicPartition("t" * 249, 12)
    name = marked_directory_name(partition, "0" * 32, FUTURE_SUFFIX)
    assert parse_directory_name(name) == (partition, FUTURE_SUFFIX)
