"""The hash over a group's topics, beside a value that Kafka's own hasher gave."""

from __future__ import annotations

from typing import NamedTuple

from ottla.core.groups.metadata_hash import group_hash, topic_hash


class FakeTopic(NamedTuple):
    name: str
    topic_id: bytes
    partition_count: int
    rack: str = "r1"

    def racks(self, partition: int) -> frozenset[str]:
        return frozenset((self.rack,))


ID = (1).to_bytes(8) + (2).to_bytes(8)


def test_a_topics_hash_is_kafkas():
    assert topic_hash(FakeTopic("foo", ID, 1)) == -5180361088533321687


def test_the_hash_changes_with_all_that_counts():
    one = FakeTopic("foo", ID, 1)
    others = [
        one._replace(name="bar"),
        one._replace(topic_id=ID[::-1]),
        one._replace(partition_count=2),
        one._replace(rack="r2"),
    ]
    assert len({topic_hash(each) for each in [one, *others]}) == 5


def test_a_groups_hash_does_not_depend_on_the_order_of_its_topics():
    topics = [FakeTopic("foo", ID, 1), FakeTopic("bar", ID[::-1], 2)]
    assert group_hash(topics) == group_hash(topics[::-1]) != 0
    assert group_hash([]) == 0
