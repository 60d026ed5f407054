"""Batches that Kafka's Java classes wrote, damaged ones included: read the same, refused the same, written the same."""

from typing import Any

import pytest

from ottla.wire import WireError
from ottla.wire.batch import (
    BatchView,
    Compression,
    TimestampType,
    build_batch,
    filter_batch,
    recompress_batch,
    split_batches,
)
from tests.unit.wire import batch_vectors as golden


def named(vectors: list[Any]) -> list[Any]:
    return [pytest.param(vector, id=vector["name"]) for vector in vectors]


def plain_v2() -> list[tuple[str, BatchView]]:
    found = []
    for vector in golden.good():
        for number, batch in enumerate(split_batches(golden.raw(vector))):
            if isinstance(batch, BatchView):
                found.append((f"{vector['name']}-{number}", batch))
    return found


def rebuild(batch: BatchView, compression: int) -> bytes:
    """The batch made anew from its records and its header's values."""
    use_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return build_batch(
        batch.records(stored_timestamps=True),
        base_offset=batch.base_offset,
        base_timestamp=batch.base_timestamp if batch.record_count == 0 else None,
        delete_horizon_ms=batch.delete_horizon_ms,
        compression=compression,
        partition_leader_epoch=batch.partition_leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        log_append_time=batch.max_timestamp if use_append_time else None,
        max_timestamp=batch.max_timestamp if batch.record_count == 0 else None,
        last_offset_delta=batch.last_offset_delta,
    )


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("vector", named(golden.good()))
def test_reads_what_java_wrote(vector: dict[str, Any], copy: bool):
    assert golden.read_all(golden.raw(vector), copy=copy) == vector["batches"]


@pytest.mark.parametrize("vector", named(golden.damaged(refused=False)))
def test_reads_damaged_batches_that_java_reads(vector: dict[str, Any]):
    found = golden.read_all(golden.raw(vector))
    for batch, expected in zip(found, vector["batches"], strict=True):
        if "baseOffset" not in expected:
            del batch["baseOffset"]  # not asked of damaged message sets
        assert batch == expected


@pytest.mark.parametrize("vector", named(golden.damaged(refused=True)))
def test_refuses_what_java_refuses(vector: dict[str, Any]):
    with pytest.raises(WireError):
        golden.read_all(golden.raw(vector))


@pytest.mark.parametrize("vector", named(golden.damaged(refused=True)))
def test_gives_whole_batches_before_it_refuses(vector: dict[str, Any]):
    whole = [batch for batch in vector["batches"] if len(batch["records"]) == batch.get("recordCount", -1)]
    found = []
    with pytest.raises(WireError) as caught:  # noqa: PT012  (what came before the error counts)
        for batch in split_batches(golden.raw(vector)):
            batch.check_crc()
            found.append(golden.as_golden(batch))
    assert found == (whole if vector["error"]["stage"] != "control" else [])
    if vector["error"]["stage"] != "control":
        assert caught.value.byte_offset is not None
        assert sum(batch["sizeInBytes"] for batch in whole) <= caught.value.byte_offset <= len(golden.raw(vector))


@pytest.mark.parametrize(("name", "batch"), [p for p in plain_v2() if not p[1].is_compressed])
def test_writes_uncompressed_batches_byte_for_byte(name: str, batch: BatchView):
    assert rebuild(batch, Compression.NONE) == batch.data


@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize(("name", "batch"), plain_v2())
def test_writes_every_codec_so_that_it_reads_the_same(name: str, batch: BatchView, compression: Compression):
    for data in (rebuild(batch, compression), recompress_batch(batch, compression)):
        (again,) = split_batches(data, allow_partial_tail=False)
        assert isinstance(again, BatchView)
        again.check_crc()
        assert again.compression is (compression if batch.record_count else Compression.NONE)
        assert again.records(stored_timestamps=True) == batch.records(stored_timestamps=True)
        assert again.records() == batch.records()
        for field in ("base_offset", "last_offset", "base_timestamp", "max_timestamp", "last_sequence", "producer_id"):
            assert getattr(again, field) == getattr(batch, field), field


@pytest.mark.parametrize("case", golden.filtered())
def test_filters_as_javas_log_cleaner_does(case: dict[str, Any]):
    """What MemoryRecords.filterTo of 4.4.0 left of these batches when it kept every nth offset (0: none)."""
    (batch,) = split_batches(bytes.fromhex(case["hex"]))
    assert isinstance(batch, BatchView)
    every = case["keepEvery"]
    kept = filter_batch(
        batch, lambda record: every > 0 and record.offset % every == 0, delete_horizon_ms=case["deleteHorizonMs"]
    )
    assert kept.hex() == case["filteredHex"]
