"""Dumps of every kind of file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ottla.cli.dump import dump as command
from ottla.log.disk import OsDisk
from ottla.log.dump import Options, UnknownFileError, dump
from ottla.log.producer_state import Verification
from ottla.wire import keyed
from ottla.wire.batch import BatchBuilder, ControlRecordType, build_control_batch, crc32c
from ottla.wire.types import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    FeatureLevelRecord,
    KRaftVersionRecord,
    SnapshotHeaderRecord,
)
from tests.unit.log.logs import NOW, append_as_coordinator, batch, marker, open_partition, producer_batch

TOMBSTONE_KEY = keyed.encode_framed(ConsumerGroupMetadataKey("gone"), 0)


def lines(path: Path, options: Options = Options()) -> list[dict[str, Any]]:  # noqa: B008
    found = list(dump(OsDisk(), str(path), options))
    assert all(json.loads(json.dumps(line)) == line for line in found), "each line is JSON"
    return found


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [line["kind"] for line in found]


def test_a_segment_gives_its_batches_and_records(tmp_path: Path) -> None:
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(b"one", b"\xff\x00", keys=[b"k", None]), 3, NOW)
    found = lines(tmp_path / "orders-0" / "00000000000000000000.log")
    assert kinds(found) == ["batch", "record", "record"]
    assert (found[0]["base_offset"], found[0]["partition_leader_epoch"], found[0]["record_count"]) == (0, 3, 2)
    assert (found[1]["key"], found[1]["value"], found[1]["timestamp"]) == ("k", "one", NOW)
    assert (found[2]["key"], found[2]["value_base64"]) == (None, "/wA=")
    assert kinds(lines(tmp_path / "orders-0" / "00000000000000000000.log", Options(records=False))) == ["batch"]


def test_records_of_an_internal_topic_are_opened(tmp_path: Path) -> None:
    log = open_partition(tmp_path / "__consumer_offsets-7")
    builder = BatchBuilder()
    value = keyed.encode_framed(ConsumerGroupMetadataValue(epoch=5), 0)
    builder.append(NOW, keyed.encode_framed(ConsumerGroupMetadataKey("g"), 0), value)
    builder.append(NOW, TOMBSTONE_KEY, None)
    builder.append(NOW, b"\x7f\xff", b"")
    append_as_coordinator(log, bytearray(builder.build()), 0, NOW)
    _, first, tombstone, unknown = lines(tmp_path / "__consumer_offsets-7" / "00000000000000000000.log")
    assert first["key"] == {"type": "ConsumerGroupMetadataKey", "version": 0, "data": {"groupId": "g"}}
    assert first["value"]["data"]["epoch"] == 5
    assert tombstone["value"] is None
    assert "no record type 32767" in unknown["error"]
    renamed = tmp_path / "00000000000000000000.log"
    renamed.write_bytes((tmp_path / "__consumer_offsets-7" / "00000000000000000000.log").read_bytes())
    assert "key_base64" in lines(renamed)[1], "without a topic nothing is guessed"
    assert lines(renamed, Options(topic="__consumer_offsets"))[1] == {**first, "file": str(renamed)}


def test_a_quorum_snapshot_gives_control_and_metadata_records(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    control = [
        (ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord(last_contained_log_timestamp=NOW)),
        (ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(k_raft_version=1)),
    ]
    head = build_control_batch(control, base_offset=0, timestamp=NOW, partition_leader_epoch=1)
    builder = BatchBuilder(2)
    builder.append(NOW, None, keyed.encode_framed(FeatureLevelRecord(name="metadata.version", feature_level=30), 0))
    path = directory / "00000000000000000042-0000000001.checkpoint"
    path.write_bytes(head + builder.build())
    found = lines(path)
    assert kinds(found) == ["batch", "record", "record", "batch", "record"]
    assert (found[1]["control_type"], found[2]["value"]["data"]["kRaftVersion"]) == ("SNAPSHOT_HEADER", 1)
    assert found[4]["value"]["type"] == "FeatureLevelRecord"


def test_a_partition_with_everything(tmp_path: Path) -> None:
    log = open_partition(tmp_path / "orders-0", index_interval_bytes=1)
    for number in range(3):
        log.append_as_leader(batch(b"x" * 100, timestamp=NOW + number), 0, NOW)
    verified = Verification(log.producers.verification_guard(9))
    log.append_as_leader(producer_batch(9, 0, transactional=True), 0, NOW, verification=verified)
    append_as_coordinator(log, marker(9, committed=False), 0, NOW)
    log.close()
    found = lines(tmp_path / "orders-0")
    by_file: dict[str, list[dict[str, Any]]] = {}
    for line in found:
        by_file.setdefault(line["file"].rpartition("/")[2], []).append(line)
    assert by_file["00000000000000000000.index"][0]["offset"] == 1
    assert by_file["00000000000000000000.timeindex"][-1]["timestamp"] == NOW + 2
    assert by_file["00000000000000000000.txnindex"][0] | {"file": ""} == {
        "file": "",
        "kind": "entry",
        "entry": 0,
        "version": 0,
        "producer_id": 9,
        "first_offset": 3,
        "last_offset": 4,
        "last_stable_offset": 5,
    }
    assert by_file["00000000000000000005.snapshot"][0]["producer_id"] == 9
    assert by_file["leader-epoch-checkpoint"][0]["start_offset"] == 0
    assert by_file["partition.metadata"][0]["topic_id"] == "AAECAwQFBgcICQoLDA0ODw"
    assert [line["control_type"] for line in by_file["00000000000000000000.log"] if "control_type" in line] == ["ABORT"]


def test_small_files_of_a_log_directory(tmp_path: Path) -> None:
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 42\n")
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\n")
    (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')
    (tmp_path / "some other file").write_text("left alone")
    assert [line | {"file": ""} for line in lines(tmp_path)] == [
        {"file": "", "kind": "json", "content": {"version": 0, "brokerEpoch": 7}},
        {"file": "", "kind": "properties", "properties": {"version": "1", "cluster.id": "c"}},
        {"file": "", "kind": "checkpoint", "topic": "orders", "partition": 0, "offset": 42},
    ]


def test_the_unused_rest_of_a_live_index_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000100.index"
    path.write_bytes((5).to_bytes(4, "big") + (4096).to_bytes(4, "big") + bytes(80_000))
    first, rest = lines(path)
    assert (first["offset"], first["position"]) == (105, 4096)
    assert (rest["kind"], rest["from_entry"], rest["size_bytes"]) == ("unused", 1, 80_000)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("00000000000000000000.log", b"\x00" * 40),
        ("00000000000000000000.timeindex", b"\x01" * 13),
        ("00000000000000000007.snapshot", b"\x00\x01"),
        ("leader-epoch-checkpoint", b"?"),
        ("replication-offset-checkpoint", b"0\n2\na 0 1\n"),
        ("partition.metadata", b"version: 0"),
        ("quorum-state", b"{"),
    ],
)
def test_damage_is_a_line_not_an_end(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert kinds(lines(tmp_path / name))[-1] == "error"


def test_a_torn_tail_is_told_after_what_is_sound(tmp_path: Path) -> None:
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(b"whole"), 0, NOW)
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + path.read_bytes()[:50])
    found = lines(path)
    assert kinds(found) == ["batch", "record", "error"]
    assert found[-1]["position"] == size


def test_a_batch_with_a_codec_that_does_not_exist_does_not_end_the_dump(tmp_path: Path) -> None:
    damaged = bytearray(batch(b"one"))
    damaged[22] |= 5
    damaged[17:21] = crc32c(bytes(damaged[21:])).to_bytes(4, "big")
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(damaged + batch(b"two"))
    error, sound, _ = lines(path)
    assert "compression 5 does not exist" in error["error"]
    assert (sound["kind"], sound["position"]) == ("batch", len(damaged))


def test_a_batch_larger_than_a_chunk(tmp_path: Path) -> None:
    log = open_partition(tmp_path / "orders-0", max_message_bytes=2_000_000)
    log.append_as_leader(batch(b"x" * 700_000), 0, NOW)
    assert len(lines(tmp_path / "orders-0" / "00000000000000000000.log")[1]["value"]) == 700_000


def test_an_unknown_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UnknownFileError, match=r"notes\.txt"):
        lines(tmp_path / "notes.txt")


def test_the_command_prints_json_lines(tmp_path: Path) -> None:
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch("grüße".encode()), 0, NOW)
    result = CliRunner().invoke(command, [str(tmp_path / "orders-0" / "00000000000000000000.log")])
    assert result.exit_code == 0
    assert [json.loads(line)["kind"] for line in result.output.splitlines()] == ["batch", "record"]
    assert "grüße" in result.output
