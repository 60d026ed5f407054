"""The short way through an append beside the long one: whatever a client sends, both do the same."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log import append
from ottla.log.config import LogConfig
from ottla.log.disk import OsDisk
from ottla.log.errors import LogError
from ottla.log.files import LogStorage
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition
from ottla.log.producer_state import Verification
from ottla.log.recovery import LoadRequest, load
from ottla.wire.batch import BatchBuilder, Compression, crc32c

NOW = 1_700_000_000_000
CONFIG = LogConfig(max_message_bytes=400, segment_bytes=500)


@st.composite
def sent(draw: st.DrawFn) -> bytes:
    """A batch as clients send it, or with some bytes of its header changed, with a right or a wrong checksum."""
    builder = BatchBuilder()
    for _ in range(draw(st.integers(0, 3))):
        builder.append(NOW + draw(st.sampled_from([-5, 0, 10**9])), None, bytes(draw(st.integers(0, 150))))
    data = bytearray(
        builder.build(
            compression=draw(st.sampled_from([Compression.NONE, Compression.NONE, Compression.LZ4])),
            producer_id=draw(st.sampled_from([-1, 0, 7])),
            producer_epoch=draw(st.integers(-1, 1)),
            base_sequence=draw(st.integers(-1, 3)),
            is_transactional=draw(st.booleans()),
            is_control=draw(st.sampled_from([False] * 5 + [True])),
        )
    )
    for position, value in draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=2)):
        data[position] = value
    if draw(st.booleans()):
        data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    end = draw(st.sampled_from(["whole"] * 5 + ["cut", "more", "twice"]))
    return bytes({"whole": data, "cut": data[:-3], "more": data + b"\0" * 5, "twice": data + data}[end])


def open_log(path: str) -> Partition:
    Path(path).mkdir()
    request = LoadRequest(path, TopicPartition("orders", 0), CONFIG, is_clean=True)
    return load(LogStorage(OsDisk(durable=False)), request, NOW)[0]


def outcome(log: Partition, data: bytes) -> object:
    try:
        return log.append_as_leader(bytearray(data), 3, NOW, verification=Verification(0))
    except LogError as error:
        return type(error), str(error)


@settings(max_examples=150)
@given(batches=st.lists(sent(), min_size=1, max_size=6))
def test_both_ways_lead_to_the_same(batches: list[bytes]):
    with tempfile.TemporaryDirectory(prefix="ottla-append-") as directory:
        short, long = open_log(f"{directory}/short-0"), open_log(f"{directory}/long-0")
        for data in batches:
            first = outcome(short, data)
            with mock.patch.object(append, "_stage_usual", return_value=None):
                second = outcome(long, data)
            assert first == second
        short.close()
        long.close()
        files = [
            {file.name: file.read_bytes() for file in Path(directory, name).iterdir()} for name in ("short-0", "long-0")
        ]
        assert files[0] == files[1]


def test_the_short_way_is_taken():
    with tempfile.TemporaryDirectory(prefix="ottla-append-") as directory:
        log = open_log(f"{directory}/short-0")
        builder = BatchBuilder()
        builder.append(NOW, None, b"value")
        with mock.patch.object(append, "_validate", side_effect=AssertionError("the long way was taken")):
            for kind in (bytes, bytearray, memoryview):
                log.append_as_leader(kind(builder.build()), 0, NOW)
        assert log.log_end_offset == 3
