"""Rows whose arrays change their lengths from one to the next: the row memo must never show."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla import wire
from ottla.wire.types.metadata import MetadataResponse

Partition = MetadataResponse.MetadataResponsePartition
numbers = st.integers(-(1 << 31), (1 << 31) - 1)
# 126 and 127 elements are the last with a length of one byte and the first with one of two.
replicas = st.one_of(
    st.lists(numbers, max_size=4).map(tuple),
    st.sampled_from([0, 3, 126, 127, 128]).map(lambda size: tuple(range(size))),
)
partitions = st.builds(
    Partition,
    error_code=st.integers(-1, 136),
    partition_index=numbers,
    leader_id=numbers,
    leader_epoch=numbers,
    replica_nodes=replicas,
    isr_nodes=replicas,
    offline_replicas=st.one_of(st.just(()), replicas),
    unknown_tags=st.one_of(st.none(), st.none(), st.just({7: b"seven"})),
)


@given(st.lists(st.lists(partitions, max_size=6).map(tuple), max_size=4), st.sampled_from([7, 9, 12, 13]))
def test_rows_of_changing_lengths(topics: list[tuple[Partition, ...]], version: int) -> None:
    if version < 9:
        topics = [tuple(Partition(*astuple(row)[:-1]) for row in rows) for rows in topics]
    message = MetadataResponse(
        topics=tuple(MetadataResponse.MetadataResponseTopic(name="t", partitions=rows) for rows in topics)
    )
    assert wire.decode("MetadataResponse", version, wire.encode(message, version)) == message


def astuple(row: Partition) -> tuple[object, ...]:
    return tuple(getattr(row, attr) for attr in row.__struct_fields__)


@given(partitions, st.integers(1, 5))
def test_a_message_that_ends_right_behind_its_rows(row: Partition, count: int) -> None:
    topic = MetadataResponse.MetadataResponseTopic(name="t", partitions=(row,) * count)
    message = MetadataResponse(topics=(topic,))
    assert wire.decode("MetadataResponse", 12, wire.encode(message, 12)) == message
