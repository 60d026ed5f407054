"""Rows in columns become the batches that `BatchBuilder` makes of the same records one by one, by both engines."""

from copy import deepcopy
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.wire.batch import BatchBuilder
from ottla.wire.engine import Engine
from ottla.wire.row_encoder import ByteColumn, HeaderLists, RowEncoder, Rows

ENGINES: list[Engine] = ["numba", "pure"]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
# Lengths around the edges of one-, two- and three-byte varints, beside the small ones.
BLOBS = st.none() | st.binary(max_size=20) | st.sampled_from([63, 64, 127, 128, 8191, 8192]).map(lambda n: b"\xa5" * n)
LISTS = st.none() | st.lists(
    st.fixed_dictionaries({"key": st.none() | st.text(max_size=5), "value": BLOBS}), max_size=2
)
ROWS = st.lists(st.tuples(BLOBS, BLOBS, LISTS, st.integers(0, 2)), max_size=8)
Row = tuple[bytes | None, bytes | None, list[dict[str, Any]] | None, int]


def columns_of(rows: list[Row], before: int) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The rows as Arrow arrays that do not begin where their buffers do."""
    filled = [(b"k", b"v", [{"key": "h", "value": b"x"}], 0)] * before + rows
    keys = pa.array([row[0] for row in filled], pa.binary())
    values = pa.array([row[1] for row in filled], pa.binary())
    headers = pa.array([row[2] for row in filled], HEADERS)
    return keys.slice(before), values.slice(before), headers.slice(before)


@given(
    st.lists(st.tuples(ROWS, st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2**44)), max_size=2),
    st.integers(0, 2),
    st.sampled_from([1, 100, 300, 2**20]),
)
def test_rows_become_the_batches_of_their_records(pieces: list[tuple[list[Row], int]], before: int, batch_bytes: int):
    expected: dict[int, list[BatchBuilder]] = {0: [], 1: [], 2: []}
    made: dict[Engine, dict[int, list[BatchBuilder]]] = {engine: {0: [], 1: [], 2: []} for engine in ENGINES}
    for rows, timestamp in pieces:
        for key, value, headers, partition in rows:
            batches = expected[partition] or [BatchBuilder()]
            record = timestamp, key, value, [(each["key"] or "", each["value"]) for each in headers or ()]
            if batches[-1].size_bytes + deepcopy(batches[-1]).append(*record) > batch_bytes and len(batches[-1]):
                batches.append(BatchBuilder())
            batches[-1].append(*record)
            expected[partition] = batches
        keys, values, lists = columns_of(rows, before)
        columns = Rows(ByteColumn.of(keys), ByteColumn.of(values), HeaderLists.of(lists))
        partitions = np.array([row[3] for row in rows], np.int32)
        for engine, queues in made.items():
            encoder = RowEncoder(columns, engine)
            for partition, batches in queues.items():
                encoder.append(batches, np.flatnonzero(partitions == partition), timestamp, batch_bytes)
    for queues in made.values():
        for partition, batches in queues.items():
            assert [len(each) for each in batches] == [len(each) for each in expected[partition]]
            assert [each.size_bytes for each in batches] == [each.size_bytes for each in expected[partition]]
            assert [each.build(producer_id=7) for each in batches] == [
                each.build(producer_id=7) for each in expected[partition]
            ]
