"""The compiled columns against the pure reader, on good batches and on damaged ones; Arrow; life without numba."""

import mmap
import pickle
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ottla.wire import WireError, columns, columns_kernels
from ottla.wire.batch import (
    BatchBuilder,
    Compression,
    Record,
    build_batch,
    build_end_txn_marker,
    split_batches,
)
from ottla.wire.columns import BATCH_FIELDS, BatchColumns, Columns, Engine, decode_columns
from ottla.wire.engine import _has_numba
from tests.unit.wire import batch_vectors as golden

ENGINES: list[Engine] = ["numba", "pure"]
RECORD_ARRAYS = ("offset", "timestamp", "key_length", "value_length", "header_count")


def outcome(data: bytes, engine: Engine, **options: Any) -> Columns | tuple[str, int | None, str]:
    try:
        return decode_columns(data, engine=engine, **options)
    except WireError as error:
        return error.path, error.byte_offset, error.reason


def all_records(found: Columns) -> list[Record]:
    return [found.record(row) for row in range(len(found))]


def assert_same(ours: Columns, reference: Columns) -> None:
    for name in RECORD_ARRAYS:
        assert getattr(ours, name).tolist() == getattr(reference, name).tolist(), name
        assert getattr(ours, name).dtype == getattr(reference, name).dtype, name
    assert ours.batches.table.tolist() == reference.batches.table.tolist()
    assert ours.batches.record_start.tolist() == reference.batches.record_start.tolist()
    assert ours.batches.control_type.tolist() == reference.batches.control_type.tolist()
    assert ours.batch_index.tolist() == reference.batch_index.tolist()
    assert ours.end_position == reference.end_position
    assert all_records(ours) == all_records(reference)
    assert ours.to_arrow().equals(reference.to_arrow())


@pytest.mark.parametrize("include_control", [False, True])
@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in golden.vectors()])
def test_engines_agree(vector: dict[str, Any], include_control: bool):
    data = golden.raw(vector)
    ours, reference = (outcome(data, engine, include_control=include_control) for engine in ENGINES)
    if isinstance(ours, Columns) and isinstance(reference, Columns):
        assert_same(ours, reference)
    else:
        assert ours == reference


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in golden.good()])
def test_columns_hold_the_records(vector: dict[str, Any], engine: Engine):
    data = golden.raw(vector)
    found = decode_columns(data, engine=engine, include_control=True)
    batches = list(split_batches(data))
    assert all_records(found) == [record for batch in batches for record in batch.records()]
    assert found.end_position == sum(batch.size_bytes for batch in batches)
    for name in set(BATCH_FIELDS) - {"batch_length"}:
        expected = [getattr(batch, name) for batch in batches if hasattr(batch, name)]
        if len(expected) == len(batches):
            assert found.batches.field(name).tolist() == expected, name
    assert found.batches.last_offset.tolist() == [batch.last_offset for batch in batches]
    assert found.batches.is_compressed.tolist() == [batch.is_compressed for batch in batches]
    assert found.batches.is_transactional.tolist() == [batch.is_transactional for batch in batches]


@pytest.mark.parametrize("engine", ENGINES)
def test_damaged_chunks_raise_what_the_views_raise(engine: Engine):
    refused = 0
    for vector in golden.damaged(refused=True):
        if vector["error"]["stage"] == "control":
            continue
        with pytest.raises(WireError):
            decode_columns(golden.raw(vector), engine=engine)
        refused += 1
    assert refused > 100


@pytest.mark.parametrize("engine", ENGINES)
def test_checksums_can_be_left_unchecked(engine: Engine):
    data = bytearray(build_batch([Record(0, 1, b"k", b"v")]))
    data[17] ^= 1
    with pytest.raises(WireError, match="crc"):
        decode_columns(data, engine=engine)
    assert len(decode_columns(data, engine=engine, check_crc=False)) == 1


def transaction(producer_id: int, offset: int, *, committed: bool) -> bytes:
    """Three records and their marker."""
    records = [Record(offset + i, 1000 + i, b"k%d" % i, b"v%d" % i) for i in range(3)]
    data = build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
    return data + build_end_txn_marker(
        committed=committed,
        coordinator_epoch=0,
        producer_id=producer_id,
        producer_epoch=0,
        timestamp=1003,
        base_offset=offset + 3,
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_control_batches_are_seen_but_not_read(engine: Engine):
    found = decode_columns(transaction(7, 0, committed=False) + transaction(8, 4, committed=True), engine=engine)
    assert found.offset.tolist() == [0, 1, 2, 4, 5, 6]
    assert found.batches.control_type.tolist() == [-1, 0, -1, 1]
    assert found.batches.is_control.tolist() == [False, True, False, True]
    assert found.batches.field("producer_id").tolist() == [7, 7, 8, 8]
    assert found.batches.record_start.tolist() == [0, 3, 3, 6, 6]
    assert found.batch_index.tolist() == [0, 0, 0, 2, 2, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_batches_can_be_left_out_by_their_headers(engine: Engine):
    def committed_only(batches: BatchColumns) -> Any:
        return batches.field("producer_id") != 7

    data = transaction(7, 0, committed=False) + transaction(8, 4, committed=True)
    assert decode_columns(data, engine=engine, keep_batches=committed_only).offset.tolist() == [4, 5, 6]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("compression", list(Compression))
def test_arrow_holds_copies(engine: Engine, compression: Compression):
    records = [
        Record(3, 100, None, b"v", (("a", b"1"), ("b", None))),
        Record(4, 101, b"", None),
        Record(9, 99, b"key", b"x" * 300, (("ü", b""),)),
    ]
    data = bytearray(build_batch(records, compression=compression))
    table = decode_columns(data, engine=engine).to_arrow()
    table.validate(full=True)
    data[:] = bytes(len(data))
    assert table.to_pydict() == {
        "offset": [3, 4, 9],
        "timestamp": [100, 101, 99],
        "key": [None, b"", b"key"],
        "value": [b"v", None, b"x" * 300],
        "headers": [
            [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
            [],
            [{"key": "ü", "value": b""}],
        ],
    }
    assert table.schema.field("key").type == pa.binary()
    assert table.schema.field("headers").type == pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))


@pytest.mark.parametrize("engine", ENGINES)
def test_header_keys_that_are_not_text_are_replaced(engine: Engine):
    vector = next(v for v in golden.vectors() if v["name"] == "invalid/header-key-not-utf8")
    table = decode_columns(golden.raw(vector), engine=engine).to_arrow()
    assert table.column("headers").to_pylist() == [[{"key": "\ufffd", "value": None}]]


@pytest.mark.parametrize("engine", ENGINES)
def test_arrow_without_headers_and_without_records(engine: Engine):
    assert decode_columns(b"", engine=engine).to_arrow().num_rows == 0
    assert decode_columns(b"\0" * 11, engine=engine).end_position == 0
    names = decode_columns(build_batch([Record(0, 1, None, None)]), engine=engine).to_arrow(headers=False).schema.names
    assert names == ["offset", "timestamp", "key", "value"]


@pytest.mark.parametrize("chunk", [bytes, bytearray, memoryview])
def test_positions_point_into_the_callers_buffer(chunk: Callable[[bytes], Any]):
    data = build_batch([Record(0, 1, b"key", b"value")])
    found = decode_columns(chunk(data), engine="numba")
    start = int(found.value_start[0])
    assert data[start : start + int(found.value_length[0])] == b"value"
    assert bytes(found.data) == data


def test_each_loop_is_compiled_once():
    batch = build_batch([Record(0, 1, b"k", b"v", (("h", b"v"),))])
    for chunk in (batch, bytearray(batch), build_batch([Record(0, 1, b"k", b"v")], compression=Compression.LZ4)):
        decode_columns(chunk, engine="numba").to_arrow()
    for name in columns_kernels.__all__:
        assert len(getattr(columns_kernels, name).signatures) == 1, name


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [2**31 - 1, 2**28, -1, -(2**31)])
def test_a_count_that_cannot_be_allocates_nothing(engine: Engine, count: int):
    builder = BatchBuilder()
    for number in range(1000):
        builder.append(number, b"key", b"value")
    data = bytearray(builder.build())
    data[57:61] = count.to_bytes(4, "big", signed=True)
    columns.warm_up()
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            decode_columns(data, engine=engine, check_crc=False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(data) + 1_000_000


@pytest.mark.parametrize("engine", ENGINES)
def test_one_bound_holds_for_all_compressed_batches_together(engine: Engine):
    batch = build_batch([Record(0, 1, None, bytes(100_000))], compression=Compression.ZSTD)
    assert len(decode_columns(batch * 5, engine=engine, max_decompressed_bytes=600_000)) == 5
    with pytest.raises(WireError, match="come out"):
        decode_columns(batch * 5, engine=engine, max_decompressed_bytes=400_000)


def test_chunks_are_smaller_than_positions_reach():
    with mmap.mmap(-1, 2**31) as space, pytest.raises(ValueError, match="at most"):
        decode_columns(memoryview(space))


@pytest.fixture
def no_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    _has_numba.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    yield
    _has_numba.cache_clear()


@pytest.mark.usefixtures("no_numba")
def test_without_numba_it_says_so_once_and_reads_on():
    data = build_batch([Record(0, 1, b"key", b"value", (("h", b"x"),))])
    with pytest.warns(UserWarning, match="numba is not installed"):
        found = decode_columns(data)
    assert all_records(found) == [Record(0, 1, b"key", b"value", (("h", b"x"),))]
    assert found.to_arrow().num_rows == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decode_columns(data)
        with pytest.raises(ModuleNotFoundError, match=r"ottla\[spark\]"):
            decode_columns(data, engine="numba")


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_can_be_sent_to_other_processes(engine: Engine):
    found = decode_columns(build_batch([Record(0, 1, b"k", b"v", (("h", b"x"),))]), engine=engine)
    again = pickle.loads(pickle.dumps(found))
    assert all_records(again) == all_records(found)
    assert again.to_arrow().equals(found.to_arrow())


def test_loops_compile_where_nothing_can_be_kept():
    namespace: dict[str, Any] = {}
    exec("def double(number):\n    return number * 2", namespace)  # no file, so numba finds no place beside it
    assert columns_kernels.compiled(namespace["double"])(21) == 42


def test_columns_have_the_promised_types():
    found = decode_columns(build_batch([Record(0, 1, b"k", b"v")]), engine="numba")
    assert found.offset.dtype == np.int64
    assert found.value_start.dtype == np.int32
    assert found.batches.table.shape == (len(BATCH_FIELDS), 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_cuts_records_and_leaves_batches_what_remains_of_them(engine: Engine):
    chunk = b"".join(
        build_batch([Record(first + i, first + i, b"k", b"v%d" % i) for i in range(4)]) for first in (0, 4, 8)
    )
    whole = decode_columns(chunk, engine=engine)
    part = whole.rows(3, 9)
    assert all_records(part) == all_records(whole)[3:9]
    assert part.batches.record_start.tolist() == [0, 1, 5, 6]
    assert part.batch_index.tolist() == [0, 1, 1, 1, 1, 2]
    assert part.to_arrow().equals(whole.to_arrow().slice(3, 6))


@pytest.mark.parametrize("engine", ENGINES)
def test_records_without_headers_have_null_if_asked(engine: Engine):
    chunk = build_batch([Record(0, 0, None, b"", (("h", None),)), Record(1, 0, None, b"")])
    found = decode_columns(chunk, engine=engine)
    assert found.header_lists().to_pylist() == [[{"key": "h", "value": None}], []]
    assert found.header_lists(empty_as_null=True).to_pylist() == [[{"key": "h", "value": None}], None]
