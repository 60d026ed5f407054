"""Batches of any records:

what is built reads the same, by all readers; what is damaged raises WireError and nothing else.
"""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.wire import WireError
from ottla.wire.batch import (
    BatchView,
    Compression,
    Header,
    Record,
    build_batch,
    crc32c,
    filter_batch,
    read_control_record,
    recompress_batch,
    split_batches,
    stamp,
)
from ottla.wire.columns import Columns, Engine, decode_columns
from tests.unit.wire import batch_vectors as golden

INT64 = st.integers(-(2**63), 2**63 - 1)
# Lengths around the edges of one-, two- and three-byte varints, beside the small ones.
LENGTHS = st.one_of(st.integers(0, 40), st.sampled_from([63, 64, 65, 127, 128, 8191, 8192]))
BLOBS = st.none() | st.binary(max_size=40) | LENGTHS.map(lambda size: b"\xa5" * size)
HEADERS: st.SearchStrategy[tuple[Header, ...]] = st.lists(st.tuples(st.text(max_size=8), BLOBS), max_size=3).map(tuple)
CONTENTS = st.lists(
    st.tuples(st.integers(1, 200) | st.just(1), st.integers(0, 2**44) | INT64, BLOBS, BLOBS, HEADERS), max_size=12
)
CODECS = st.sampled_from(list(Compression))
HEADER_VALUES = st.fixed_dictionaries(
    {
        "partition_leader_epoch": st.integers(-1, 2**31 - 1),
        "producer_id": st.integers(-1, 2**63 - 1),
        "producer_epoch": st.integers(-1, 2**15 - 1),
        "base_sequence": st.integers(-1, 2**31 - 1),
        "is_transactional": st.booleans(),
    }
)


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    offset = draw(st.integers(0, 2**40))
    made = []
    for step, timestamp, key, value, headers in draw(CONTENTS):
        made.append(Record(offset, timestamp, key, value, headers))
        offset += step
    return made


def only(data: bytes | bytearray) -> BatchView:
    (batch,) = split_batches(data, allow_partial_tail=False)
    assert isinstance(batch, BatchView)
    batch.check_crc()
    return batch


@given(records(), CODECS, HEADER_VALUES)
def test_what_is_built_reads_the_same(made: list[Record], codec: Compression, values: dict[str, int]):
    batch = only(build_batch(made, compression=codec, **values))  # type: ignore[arg-type]
    assert batch.records() == made
    assert [tuple(map(freeze, fields(record))) for record in batch.records(copy=False)] == [
        tuple(map(freeze, fields(record))) for record in made
    ]
    for name, value in values.items():
        assert getattr(batch, name) == value
    for engine in ENGINES:
        found = decode_columns(batch.data, engine=engine)
        assert [found.record(row) for row in range(len(found))] == made


ENGINES: list[Engine] = ["numba", "pure"]


def fields(record: Record) -> tuple[object, ...]:
    return (
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        *(part for pair in record.headers for part in pair),
    )


def freeze(value: object) -> object:
    return bytes(value) if isinstance(value, memoryview) else value


@given(records(), CODECS, CODECS, st.integers(0, 2**62), st.integers(-1, 2**31 - 1))
def test_brokers_changes_keep_the_records(
    made: list[Record], codec: Compression, other: Compression, offset: int, epoch: int
):
    data = bytearray(recompress_batch(only(build_batch(made, compression=codec)), other))
    before = only(data)
    stamp(data, base_offset=offset, partition_leader_epoch=epoch)
    after = only(data)
    assert (after.base_offset, after.partition_leader_epoch) == (offset, epoch)
    moved = [(r.offset - before.base_offset, r.timestamp, r.key, r.value, r.headers) for r in before.records()]
    assert [(r.offset - offset, r.timestamp, r.key, r.value, r.headers) for r in after.records()] == moved


@given(records(), CODECS, st.integers(0, 7), st.none() | st.integers(0, 2**44))
def test_filtering_keeps_what_it_should(made: list[Record], codec: Compression, rest: int, horizon: int | None):
    batch = only(build_batch(made, compression=codec, producer_id=5, base_sequence=9))
    kept = only(filter_batch(batch, lambda record: record.offset % 3 != rest, delete_horizon_ms=horizon))
    assert kept.records() == [record for record in made if record.offset % 3 != rest]
    assert (kept.base_offset, kept.last_offset, kept.last_sequence) == (
        batch.base_offset,
        batch.last_offset,
        batch.last_sequence,
    )


# --- damage -----------------------------------------------------------------------------------------------------------

SMALL = [golden.raw(vector) for vector in golden.vectors() if len(vector["hex"]) < 3000]
EDGES = st.sampled_from([0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF]) | st.integers(0, 255)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A batch with bytes changed, put in or taken out.

    Its lengths and checksums often follow, so that readers get deep.
    """
    data = bytearray(draw(st.sampled_from(SMALL)))
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["set", "set", "insert", "delete", "cut"]))
        if kind == "set" and data:
            data[position] = draw(EDGES)
        elif kind == "insert":
            data[position:position] = bytes(draw(st.lists(EDGES, min_size=1, max_size=5)))
        elif kind == "delete":
            del data[position : position + draw(st.integers(1, 5))]
        elif kind == "cut" and draw(st.booleans()):
            del data[position:]
    if draw(st.booleans()) and len(data) > 30:
        struct.pack_into(">i", data, 8, len(data) - 12)
    return mend(data) if draw(st.integers(0, 9)) else bytes(data)


def mend(data: bytearray) -> bytes:
    """Put right the checksums of all whole batches."""
    position = 0
    while len(data) - position > 16:
        (length,) = struct.unpack_from(">i", data, position + 8)
        end = position + 12 + length
        if length < 14 or end > len(data):
            break
        if data[position + 16] == 2 and length >= 49:
            struct.pack_into(">I", data, position + 17, crc32c(data[position + 21 : end]))
        elif data[position + 16] < 2:
            struct.pack_into(">I", data, position + 12, zlib.crc32(data[position + 16 : end]))
        position = end
    return bytes(data)


def read_everything(data: bytes) -> None:
    for batch in split_batches(data):
        batch.check_crc()
        for record in batch.records(max_decompressed_bytes=1 << 20):
            if batch.is_control:
                read_control_record(record)


@given(damaged())
def test_damage_raises_only_wire_errors(data: bytes):
    try:
        read_everything(data)
    except WireError as error:
        assert error.byte_offset is None or 0 <= error.byte_offset <= len(data)  # noqa: PT017


@given(damaged(), st.booleans())
def test_both_engines_judge_damage_alike(data: bytes, include_control: bool):
    compiled, pure = (outcome(data, engine, include_control) for engine in ENGINES)
    if isinstance(compiled, Columns) and isinstance(pure, Columns):
        assert len(compiled) == len(pure)
        assert [compiled.record(i) for i in range(len(compiled))] == [pure.record(i) for i in range(len(pure))]
        assert compiled.batches.table.tolist() == pure.batches.table.tolist()
    else:
        assert compiled == pure


def outcome(data: bytes, engine: Engine, include_control: bool) -> Columns | tuple[str, int | None, str]:
    try:
        return decode_columns(data, engine=engine, include_control=include_control, max_decompressed_bytes=1 << 20)
    except WireError as error:
        return error.path, error.byte_offset, error.reason


@given(damaged())
def test_columns_and_views_judge_damage_alike(data: bytes):
    """Columns read no more than the views do, so they may find less wrong, but never something else in the records."""
    try:
        expected = [record for batch in split_batches(data) if checked(batch) for record in batch.records()]
    except WireError:
        with pytest.raises(WireError):
            decode_columns(data, include_control=True, max_decompressed_bytes=1 << 27)
        return
    try:
        found = decode_columns(data, include_control=True)
    except WireError as error:
        assert error.path.startswith(("ControlRecord", "Message.timestamp"))  # noqa: PT017
    else:
        assert [found.record(row) for row in range(len(found))] == expected


def checked(batch: object) -> bool:
    batch.check_crc()  # type: ignore[attr-defined]
    return True
