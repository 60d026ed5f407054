"""Keys go where Java's clients send them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.partitioner import Sticky, murmur2, partition_of_key


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
