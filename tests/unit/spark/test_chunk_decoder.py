"""Chunks to columns: pieces, and batches that go by themselves."""

import pytest

from ottla.client.blocking import Chunk
from ottla.spark.topic import chunk_decoder
from ottla.spark.topic.chunk_decoder import ChunkDecoder, pieces
from ottla.wire import WireError
from ottla.wire.aborted import AbortedTransaction
from ottla.wire.batch import Compression, split_batches
from tests.unit.client.batches import batch
from tests.unit.spark.histories import history


def chunk(*batches: bytes, aborted: tuple[AbortedTransaction, ...] = ()) -> Chunk:
    return Chunk(memoryview(b"".join(batches)), 0, 0, aborted)


def counts(*batches: bytes) -> list[int]:
    return [len(list(split_batches(each))) for each in pieces(memoryview(b"".join(batches)))]


def test_pieces_hold_whole_batches(monkeypatch: pytest.MonkeyPatch):
    plain = [batch(offset, value=b"x" * 300) for offset in range(10)]
    packed = [batch(offset, value=b"x" * 300, compression=Compression.GZIP) for offset in range(10)]
    monkeypatch.setattr(chunk_decoder, "PIECE_BYTES", len(plain[0]) * 4)
    monkeypatch.setattr(chunk_decoder, "COMPRESSED_PIECE_BYTES", len(packed[0]) * 3)
    assert counts(*plain) == [4, 4, 2]
    assert counts(*packed) == [3, 3, 3, 1]
    assert counts(plain[0], *packed[:2], plain[1]) == [1, 2, 1]


def test_a_large_batch_is_a_piece_of_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chunk_decoder, "PIECE_BYTES", 100)
    chunks = [batch(0, value=b"x" * 500), batch(1), batch(2, value=b"x" * 500)]
    assert [bytes(each) for each in pieces(memoryview(b"".join(chunks)))] == chunks
    assert list(pieces(memoryview(b""))) == []


def test_each_piece_has_the_offset_behind_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chunk_decoder, "PIECE_BYTES", 1)
    found = [
        (columns.offset.tolist(), behind)
        for columns, behind in ChunkDecoder().columns_of(chunk(batch(0, 4), batch(7, 9)))
    ]
    assert found == [([0, 4], 5), ([7, 9], 10)]


def test_little_is_decoded_without_the_compiled_loops(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chunk_decoder, "_COMPILED", "a module that is not loaded")
    small, large = batch(0, 1), batch(2, value=b"x" * 500)
    decoder = ChunkDecoder(pure_bytes=2 * len(small))
    engines = [
        columns.is_compiled
        for each in (chunk(small), chunk(large), chunk(small), chunk(small))
        for columns, _ in decoder.columns_of(each)
    ]
    assert engines == [False, True, False, True]
    monkeypatch.setattr(chunk_decoder, "_COMPILED", "ottla.wire.columns")
    ((columns, _),) = ChunkDecoder().columns_of(chunk(small))
    assert columns.is_compiled


def test_what_is_too_large_together_goes_batch_by_batch(monkeypatch: pytest.MonkeyPatch):
    packed = [batch(offset, value=b"x" * 1000, compression=Compression.GZIP) for offset in range(3)]
    monkeypatch.setattr(chunk_decoder, "DECOMPRESSED_MAX_BYTES", 1500)
    assert [behind for _, behind in ChunkDecoder().columns_of(chunk(*packed))] == [1, 2, 3]
    monkeypatch.setattr(chunk_decoder, "DECOMPRESSED_MAX_BYTES", 500)
    with pytest.raises(WireError):
        list(ChunkDecoder().columns_of(chunk(packed[0])))


def test_what_comes_before_damage_is_given():
    damaged = bytearray(batch(5))
    damaged[-1] ^= 1
    found = ChunkDecoder().columns_of(chunk(batch(0), bytes(damaged), batch(9)))
    assert next(found)[1] == 1
    with pytest.raises(WireError, match="crc"):
        next(found)


def test_aborted_batches_stay_hidden_when_batches_go_by_themselves():
    batches, aborted = history([(1, "transactional"), (2, "transactional"), (1, "abort"), (2, "commit"), (1, "record")])
    damaged = bytearray(batch(5))
    damaged[-1] ^= 1
    found = ChunkDecoder(is_committed=True).columns_of(chunk(*batches, bytes(damaged), aborted=tuple(aborted)))
    assert [next(found)[0].offset.tolist() for _ in batches] == [[], [1], [], [], [4]]
    with pytest.raises(WireError):
        next(found)
