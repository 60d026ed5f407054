"""Keys go where Java's clients send them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.partitioner import Sticky, murmur2, partition_of_key, partitions_of_keys
from ottla.wire.engine import Engine
from ottla.wire.row_encoder import ByteColumn


# What org.apache.kafka.common.utils.Utils.murmur2 gives (4.3.1), with its sign.
@pytest.mark.parametrize(
    ("key", "hash_in_java"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
        (bytes.fromhex("fffe808190aaff"), 1845422538),
    ],
)
def test_the_hash_is_java_s(key: bytes, hash_in_java: int):
    assert murmur2(key) == hash_in_java % (1 << 32)
    assert murmur2(memoryview(key)) == murmur2(bytearray(key)) == murmur2(key)


@given(st.binary(), st.integers(1, 1000))
def test_a_key_has_one_partition(key: bytes, count: int):
    assert 0 <= partition_of_key(key, count) < count
    assert partition_of_key(key, count) == (murmur2(key) & 0x7FFFFFFF) % count


@given(st.lists(st.none() | st.binary(max_size=30), min_size=1, max_size=20), st.integers(1, 1000))
def test_keys_choose_the_same_partitions_in_columns(keys: list[bytes | None], count: int):
    column = ByteColumn.of(pa.array(keys, pa.binary())).take(np.arange(len(keys)))
    expected = [partition_of_key(key or b"", count) for key in keys]
    engines: list[Engine] = ["numba", "pure"]
    for engine in engines:
        assert partitions_of_keys(column, count, engine).tolist() == expected


def test_without_a_key_one_partition_is_kept_until_it_is_left():
    sticky = Sticky(random_below=lambda count: count - 1)
    assert [sticky.current("orders", [0, 1, 2]) for _ in range(3)] == [2, 2, 2]
    seen = []
    for _ in range(4):
        sticky.move_on("orders", [0, 1, 2])
        seen.append(sticky.current("orders", [0, 1, 2]))
    assert seen == [0, 1, 2, 0]


def test_topics_do_not_share_their_turn():
    sticky = Sticky(random_below=lambda _: 0)
    sticky.move_on("orders", [0, 1])
    assert (sticky.current("orders", [0, 1]), sticky.current("bills", [0, 1])) == (1, 0)


def test_a_partition_that_has_lost_its_leader_is_left():
    sticky = Sticky(random_below=lambda _: 0)
    assert sticky.current("orders", [3, 4]) == 3
    assert sticky.current("orders", [4, 5]) == 4


def test_many_records_are_spread_as_one_by_one():
    sticky = Sticky(random_below=lambda _: 0)
    sizes = np.array([40, 70, 10, 250, 10, 80])
    assert sticky.spread("orders", [0, 1, 5], sizes, 100).tolist() == [0, 0, 1, 1, 0, 0]
    assert sticky.spread("orders", [0, 1, 5], np.array([30, 50, 50]), 100).tolist() == [1, 1, 5]
    assert sticky.current("orders", [0, 1, 5]) == 5


def test_what_has_moved_on_begins_with_nothing():
    sticky = Sticky(random_below=lambda _: 0)
    sticky.spread("orders", [0, 1], np.array([90]), 100)
    sticky.move_on("orders", [0, 1])
    assert sticky.spread("orders", [0, 1], np.array([90, 90, 90]), 100).tolist() == [1, 1, 0]
