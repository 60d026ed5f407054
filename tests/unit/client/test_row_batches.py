"""Rows in columns go where the same records would go one by one."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from ottla.client.metadata import Partition, Topic, TopicPartition
from ottla.client.partitioner import partition_of_key
from ottla.client.row_batches import UNNAMED, RowBatches, places_by_value
from ottla.wire import engine, row_kernels
from ottla.wire.batch import BatchBuilder, BatchView, split_batches
from ottla.wire.row_encoder import ByteColumn, HeaderLists, Rows


def topic_of(name: str = "orders", leaders: Sequence[int] = (1, 1, 1, 1)) -> Topic:
    return Topic(name, bytes(16), False, {number: Partition(number, each, 0) for number, each in enumerate(leaders)})


def rows_of(values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None) -> Rows:
    key_column = ByteColumn.nulls(len(values)) if keys is None else ByteColumn.of(pa.array(keys, pa.binary()))
    return Rows(key_column, ByteColumn.of(pa.array(values, pa.binary())), HeaderLists.none(len(values)))


def written(batches: dict[TopicPartition, list[BatchBuilder]]) -> dict[TopicPartition, list[bytes]]:
    """The values of each partition."""
    found: dict[TopicPartition, list[bytes]] = {}
    for at, some in batches.items():
        for view in split_batches(b"".join(each.build() for each in some)):
            assert isinstance(view, BatchView)
            view.check_crc()
            found.setdefault(at, []).extend(bytes(record.value or b"") for record in view.records())
    return found


def numbers(count: int) -> list[bytes]:
    return [b"%03d" % number for number in range(count)]


def test_keys_choose_partitions_and_rows_stay_in_order():
    batches, topic = RowBatches(batch_bytes=200), topic_of()
    keys = [b"%d" % (number % 7) for number in range(60)]
    for first in (0, 30):
        rows = rows_of(numbers(60)[first : first + 30], keys[first : first + 30])
        batches.add(rows, [(topic, np.arange(30))])
    expected: dict[TopicPartition, list[bytes]] = {}
    for key, value in zip(keys, numbers(60), strict=True):
        expected.setdefault(TopicPartition("orders", partition_of_key(key, 4)), []).append(value)
    taken = batches.take()
    assert written(taken) == expected
    assert all(each.size_bytes < 200 + 20 for some in taken.values() for each in some)


def test_a_row_that_would_make_a_batch_too_large_begins_another():
    batches, topic = RowBatches(batch_bytes=1000), topic_of(leaders=[1])
    for values in ([b"small", b"small"], [b"v" * 920, b"small"], [b"v" * 2000, b"small"]):
        batches.add(rows_of(values, [b"k"] * 2), [(topic, np.arange(2))])
    (taken,) = batches.take().values()
    assert [len(each) for each in taken] == [2, 1, 1, 1, 1]
    assert [each.size_bytes > 1000 for each in taken] == [False, False, False, True, False]


def test_a_named_partition_wins_and_rows_without_a_key_share_one():
    batches, topic = RowBatches(batch_bytes=1000), topic_of(leaders=(-1, 1, -1, -1))
    named = np.array([3, UNNAMED, UNNAMED, 3])
    batches.add(rows_of(numbers(4), [b"k", None, b"k", None]), [(topic, np.arange(4))], named)
    found = written(batches.take())
    assert found.pop(TopicPartition("orders", 3))[:2] == [b"000", b"003"]
    assert b"001" in found[TopicPartition("orders", 1)]


def test_topics_have_their_own_rows():
    batches = RowBatches(batch_bytes=1000)
    topics = [(topic_of("a", [1]), np.array([0, 2])), (topic_of("b", [1]), np.array([1]))]
    batches.add(rows_of(numbers(3)), topics)
    assert written(batches.take()) == {
        TopicPartition("a", 0): [b"000", b"002"],
        TopicPartition("b", 0): [b"001"],
    }


def test_what_is_taken_is_gone_and_the_next_begins_elsewhere():
    batches, topic = RowBatches(batch_bytes=1000), topic_of()
    seen = []
    for _ in range(4):
        batches.add(rows_of([b"v"]), [(topic, np.arange(1))])
        assert batches.size_bytes == 8
        seen += [at.partition for at in batches.take()]
        assert batches.size_bytes == 0
    assert sorted(seen) == [0, 1, 2, 3]
    assert batches.take() == {}


def test_values_are_found_with_their_places():
    found = {value: places.tolist() for value, places in places_by_value(np.array([5, -1, 5, 2]))}
    assert found == {-1: [1], 2: [3], 5: [0, 2]}
    assert list(places_by_value(np.array([], np.int64))) == []


def test_without_numba_the_rows_are_the_same(monkeypatch: pytest.MonkeyPatch):
    found = []
    for has_numba in (True, False):
        monkeypatch.setattr(engine, "_has_numba", lambda answer=has_numba: answer)
        batches = RowBatches(batch_bytes=100)
        batches.add(rows_of(numbers(40), [b"%d" % number for number in range(40)]), [(topic_of(), np.arange(40))])
        taken = batches.take()
        found.append(({at: [len(each) for each in some] for at, some in taken.items()}, written(taken)))
    assert found[0] == found[1]


def test_each_loop_is_compiled_once():
    headers = pa.array(
        [[{"key": "h", "value": b"x"}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    mutable = pa.array([b"v", None], pa.binary()).take(pa.array([1]))
    column = ByteColumn.of(pa.array([b"v"], pa.binary()))
    for rows in (
        rows_of([b"v"]),
        rows_of([b"v"], [b"k"]),
        rows_of([None], [b"k"])._replace(values=ByteColumn.of(mutable)),
        Rows(column, column, HeaderLists.of(headers)),
    ):
        RowBatches(100).add(rows, [(topic_of(), np.arange(1))])
    for name in row_kernels.__all__:
        assert len(getattr(row_kernels, name).signatures) == 1, name
