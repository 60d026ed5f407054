"""From topics and files to events on disk, without a JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cramjam
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from ottla.health.samples import encode
from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.share_state import STATE_TYPES
from ottla.spark.pipeline.event_decoder import EventDecoder
from ottla.spark.pipeline.in_process import GrowingSource, samples_once, write_events
from ottla.spark.pipeline.ingest import EventFiles, Ingestion, Starts, describe_events, require_events
from ottla.spark.pipeline.observations import FilePart, ObservationFiles, require_observations
from ottla.spark.pipeline.origins import directory_origin
from ottla.wire import uuid_text
from ottla.wire.keyed import GROUP_TOPIC, encode_framed
from ottla.wire.types.group_classic import OffsetCommitKey, OffsetCommitValue
from tests.unit.spark.log_directories import CLUSTER
from tests.unit.spark.pipeline.cluster_files import NOON, TOPIC_ID, ClusterFiles, busy_day
from tests.unit.spark.pipeline.ingesting import TOPIC, read


def events(event_files: EventFiles, name: str) -> list[dict[str, Any]]:
    return ds.dataset(event_files.path / f"input={name}").to_table().to_pylist()


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    with ClusterFiles(tmp_path / "cluster") as made:
        busy_day(made, minutes=1)
    return made.path


def test_every_record_becomes_one_event(cluster: Path, tmp_path: Path):
    event_files = read(cluster, tmp_path / "events")
    assert event_files.rows == {"records": 20, "commits": 12, "samples": 24, "ends": 12}
    assert (event_files.from_ms, event_files.to_ms) == (NOON, NOON + 61_000)
    kinds = {row["type"] for row in events(event_files, "records")}
    assert kinds >= {"ShareUpdate", "ConsumerGroupMetadata", "ConsumerGroupMemberMetadata"}
    assert {row["group"] for row in events(event_files, "records")} == {"billing", "risk"}
    states = [row for row in events(event_files, "records") if row["type"] in STATE_TYPES]
    assert {(row["share_topic_id"], row["share_partition"]) for row in states} == {(uuid_text(TOPIC_ID), 0)}
    assert {row["cluster"] for name in event_files.rows for row in events(event_files, name)} == {CLUSTER}


def test_commits_are_told_in_columns(tmp_path: Path):
    with ClusterFiles(tmp_path / "cluster") as made:
        made.commit(NOON, "a", 1 << 40, partition=7)
        made.commit(NOON + 1, "b", None, topic="payments")
        made.commit(NOON + 2, "a", 0, partition=7)
    found = events(read(made.path, tmp_path / "events"), "commits")
    assert [(row["group"], row["commit_topic"], row["commit_partition"], row["committed"]) for row in found] == [
        ("a", "orders", 7, 1 << 40),
        ("b", "payments", 0, None),
        ("a", "orders", 7, 0),
    ]
    assert [row["offset"] for row in found] == [0, 1, 2]


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_of_a_commit_has_its_offset(version: int):
    key = encode_framed(OffsetCommitKey("g", "t", 3), 0)
    value = encode_framed(OffsetCommitValue(77, metadata="note", commit_timestamp=5), version)
    (batch,) = decoded(key, value)
    assert batch.column("committed").to_pylist() == [77]


def decoded(*pairs: bytes | None) -> list[pa.RecordBatch]:
    keys, values = list(pairs[::2]), list(pairs[1::2])
    count = len(keys)
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "topic": pa.array([GROUP_TOPIC] * count),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([0] * count, pa.timestamp("us", tz="UTC")),
    }
    return list(EventDecoder("c")(iter([pa.RecordBatch.from_pydict(columns)])))


def test_a_slice_of_a_batch_is_read_at_its_own_place():
    keys = [encode_framed(OffsetCommitKey(f"g{number}", "t", 0), 0) for number in range(4)]
    values = [encode_framed(OffsetCommitValue(number, metadata=""), 3) for number in range(4)]
    columns = [
        pa.array(keys), pa.array(values), pa.array([GROUP_TOPIC] * 4), pa.array([0] * 4, pa.int32()),
        pa.array(range(4)), pa.array([0] * 4, pa.timestamp("us", tz="UTC")),
    ]  # fmt: skip
    whole = pa.RecordBatch.from_arrays(columns, ["key", "value", "topic", "partition", "offset", "timestamp"])
    (found,) = EventDecoder("c")(iter([whole.slice(2)]))
    assert (found.column("group").to_pylist(), found.column("committed").to_pylist()) == (["g2", "g3"], [2, 3])


def test_what_nobody_can_read_is_never_an_error():
    """A type of a later Kafka keeps its bytes; keys and values that are cut off say nothing."""
    key = encode_framed(OffsetCommitKey("g", "t", 0), 0)
    batches = decoded(b"\x00\x63later", b"what", b"\x00", b"", None, None, key, b"\x00\x01cut", b"\x00\x01cut", b"")
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [(row["input"], row["group"], row["committed"]) for row in rows] == [
        ("commits", "g", None),
        ("records", None, None),
        ("records", None, None),
        ("records", None, None),
    ]
    assert rows[1]["type"] is None
    assert (rows[1]["key"], rows[1]["value"]) == (b"\x00\x63later", b"what")


def test_commits_and_samples_before_the_range_are_left_out(cluster: Path, tmp_path: Path):
    event_files = read(cluster, tmp_path / "events", starts=Starts(NOON + 30_000, NOON + 50_000))
    assert event_files.rows == {"records": 20, "commits": 6, "samples": 4, "ends": 12}


def test_commits_that_others_have_replaced_in_their_window_are_counted_but_not_kept(cluster: Path, tmp_path: Path):
    everything = read(cluster, tmp_path / "all")
    found = read(cluster, tmp_path / "events", commit_window_ms=30_000)
    assert found.rows["commits"] < everything.rows["commits"]
    assert found.read == everything.read
    assert (found.from_ms, found.to_ms) == (everything.from_ms, everything.to_ms)


def test_files_of_an_observer(tmp_path: Path):
    cluster = ClusterFiles(tmp_path / "cluster")
    one, two, three = (cluster.make_sample(NOON + number, "quorum", "q", leader=1) for number in range(3))
    directory = tmp_path / "seen" / "kind=quorum" / "date=2024-10-04"
    directory.mkdir(parents=True)
    lines = b"".join(encode(each) + b"\n" for each in (one, two)) + b"no sample\n"
    (directory / "1-0.jsonl.zst").write_bytes(bytes(cramjam.zstd.compress(lines)))
    growing = bytes(cramjam.zstd.compress(encode(three) + b"\n")) + bytes(cramjam.zstd.compress(b"x" * 1000))[:9]
    (directory / "1-1.jsonl.zst.part").write_bytes(growing)
    ingestion = Ingestion(None, ObservationFiles([str(tmp_path / "seen")]), Starts(), [])
    event_files = ingestion.in_process(tmp_path / "events")
    assert event_files is not None
    assert event_files.rows["samples"] == 3
    assert {row["type"] for row in events(event_files, "samples")} == {"quorum"}


def test_a_sample_that_lies_in_a_topic_and_in_a_file_counts_once(tmp_path: Path):
    sample = ClusterFiles(tmp_path / "cluster").make_sample(NOON, "quorum", "q", leader=1)
    from ottla.spark.pipeline.event_decoder import sample_events

    batches = (sample_events([encode(sample)], {}) for _ in range(2))
    write_events(samples_once(batches), tmp_path / "events")
    assert describe_events(tmp_path / "events").rows["samples"] == 1


def test_samples_that_were_dropped_are_counted(tmp_path: Path):
    from msgspec.structs import replace

    from ottla.spark.pipeline.event_decoder import sample_events

    cluster = ClusterFiles(tmp_path / "cluster")
    told = [replace(cluster.make_sample(NOON, "quorum", "q", leader=1), dropped=count) for count in (0, 3, 4)]
    write_events(iter([sample_events([encode(each) for each in told], {})]), tmp_path / "events")
    assert describe_events(tmp_path / "events").dropped == 7


@pytest.mark.parametrize("name", ["ts", "seq", "dropped"])
def test_samples_with_numbers_that_no_column_holds_are_left_out(name: str):
    from ottla.spark.pipeline.event_decoder import sample_events

    fine = {"kind": "lag", "ts": 1, "cluster": "c", "seq": 1}
    values = [json.dumps(each).encode() for each in (fine, fine | {name: 1 << 63}, fine | {"seq": 2})]
    assert sample_events(values, {}).column("seq").to_pylist() == [1, 2]


# --- what there is to read --------------------------------------------------------------------------------------------


def test_a_directory_says_what_it_lacks(tmp_path: Path):
    with ClusterFiles(tmp_path / "cluster") as made:
        made.commit(NOON, "a", 1)
    origin = directory_origin([str(made.path)], TOPIC)
    assert (origin.cluster, origin.topics) == (CLUSTER, (GROUP_TOPIC,))
    assert [note.partition(" ")[0] for note in origin.notes] == ["__share_group_state", TOPIC]


def test_log_directories_right_below_are_found(cluster: Path):
    assert directory_origin([str(cluster.parent)], TOPIC).paths == (str(cluster),)


@pytest.mark.parametrize(("name", "text"), [("nowhere", "does not exist"), ("empty", "contains no partitions")])
def test_places_without_data_are_named(tmp_path: Path, name: str, text: str):
    (tmp_path / "empty").mkdir()
    with pytest.raises(OttlaSparkError, match=f"{name} {text}"):
        directory_origin([str(tmp_path / name)], TOPIC)


def test_observations_have_to_be_there(tmp_path: Path):
    with pytest.raises(OttlaSparkError, match="contains no observations"):
        require_observations(str(tmp_path), [])
    with pytest.raises(OttlaSparkError, match="is not a directory of observations"):
        require_observations(str(tmp_path / "x"), [])
    require_observations(str(tmp_path), [FilePart(str(tmp_path / "kind=quorum" / "x"), 0, 1)])


def test_nothing_to_look_at_is_said(tmp_path: Path):
    with pytest.raises(OttlaSparkError, match="here has no data"):
        require_events(describe_events(tmp_path), "here")


def test_a_topic_that_may_not_be_read_is_left_out_and_noted(cluster: Path, tmp_path: Path, monkeypatch: Any):
    asked: list[str] = []
    plan = GrowingSource.plan_after

    def refuse(source: GrowingSource, name: str, options: Any, start: Any) -> Any:
        asked.append(options["topic"])
        if "__share_group_state" in options["topic"]:
            raise OttlaSparkError("Fetch for topic __share_group_state: TOPIC_AUTHORIZATION_FAILED (29): no")
        return plan(source, name, options, start)

    monkeypatch.setattr(GrowingSource, "plan_after", refuse)
    notes: list[str] = []
    event_files = Ingestion(directory_origin([str(cluster)], TOPIC), ObservationFiles(()), Starts(), notes).in_process(
        tmp_path / "events"
    )
    assert event_files is not None
    assert (len(asked), event_files.rows["commits"]) == (2, 12)
    assert notes == ["__share_group_state was skipped: not authorized (needs READ on the topic)"]
