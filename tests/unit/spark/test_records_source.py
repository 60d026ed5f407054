"""The format `ottla-records` without a JVM: its options, tables from files, snapshots of the metadata log."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThanOrEqual, In, LessThan

from ottla.log.partition import Partition
from ottla.spark.errors import OttlaSparkError
from ottla.spark.records.options import ClusterRecordOptions, PathRecordOptions, read_record_options
from ottla.spark.records.source import RecordsDataSource
from ottla.spark.records.tables import COMMON, EPOCH, STATE_KEYS
from ottla.wire.batch import Record, build_batch
from ottla.wire.keyed import encode_framed
from ottla.wire.types.group_classic import OffsetCommitKey, OffsetCommitValue
from tests.unit.log.logs import NOW, open_partition
from tests.unit.spark.log_directories import append, close_cleanly, new_directory

LIFE = Path(__file__).parents[2] / "golden" / "storage" / "life"
OFFSETS = "__consumer_offsets-0"


def rows(*filters: Filter, **options: object) -> list[dict[str, Any]]:
    source = RecordsDataSource({name.lower(): str(value) for name, value in options.items()})
    reader = source.reader(None)  # type: ignore[arg-type]
    if filters:
        assert list(reader.pushFilters(list(filters))) == list(filters)
    travelled = pickle.loads(pickle.dumps(reader))
    found: list[dict[str, Any]] = []
    for partition in reader.partitions():
        for batch in travelled.read(pickle.loads(pickle.dumps(partition))):
            found += batch.to_pylist()
    return found


def refusal(**options: str) -> str:
    with pytest.raises(OttlaSparkError) as error:
        read_record_options(options)
    return str(error.value)


# --- options ----------------------------------------------------------------------------------------------------------


def test_a_record_and_a_place_are_required():
    assert refusal(path="/x").startswith("option record: it is required; name a record type such as OffsetCommit")
    both = {"path": "/x", "kafka.bootstrap.servers": "localhost:1", "record": "*"}
    assert refusal(**both) == "options path, kafka.bootstrap.servers: give exactly one"
    assert refusal(record="*") == "options path, kafka.bootstrap.servers: give exactly one"


def test_options_that_do_not_fit_the_record():
    change = refusal(path="/x", record="PartitionChange", view="latest")
    assert change.startswith("option view: PartitionChangeRecord has no latest rows")
    assert refusal(path="/x", record="*", view="latest") == "option view: latest needs one record type"
    late = refusal(path="/x", record="Topic", view="latest", startingOffsets="latest")
    assert late == "option startingOffsets: the latest rows of the metadata log need the whole log"
    column = refusal(path="/x", record="FeatureLevel", columns="Name,Level")
    assert column.startswith("option columns: unknown column Level; known: _topic, _partition, _offset")
    wrong = refusal(path="/x", record="Topic", topic="__consumer_offsets")
    assert wrong == "option topic: TopicRecord is in __cluster_metadata, not in __consumer_offsets"
    network = {"kafka.bootstrap.servers": "localhost:1"}
    assert refusal(record="*", subscribe="t", **network) == "option subscribe: the record type determines the topic"


def test_where_records_are_read_from():
    files = read_record_options({"path": "/x", "record": "ShareSnapshot"})
    assert isinstance(files, PathRecordOptions)
    assert files.isolation == "read_committed"
    network = read_record_options({"kafka.bootstrap.servers": "localhost:1", "record": "offsetcommit"})
    assert isinstance(network, ClusterRecordOptions)
    assert network.subscribe == ("__consumer_offsets",)
    assert network.isolation == "read_committed"
    everything = read_record_options({"kafka.bootstrap.servers": "localhost:1", "record": "*"})
    assert isinstance(everything, ClusterRecordOptions)
    assert "__cluster_metadata" not in everything.subscribe
    assert "__share_group_state" in everything.subscribe


def test_a_stream_has_no_latest_view():
    source = RecordsDataSource({"path": "/x", "record": "OffsetCommit", "view": "latest"})
    with pytest.raises(OttlaSparkError, match=r"^option view: latest is for batch queries"):
        source.streamReader(None)  # type: ignore[arg-type]


# --- tables from files ------------------------------------------------------------------------------------------------


def commits(path: Path, *history: tuple[str, int | None], **settings: Any) -> Partition:
    new_directory(path)
    log = open_partition(path / OFFSETS, **settings)
    for group, offset in history:
        key = encode_framed(OffsetCommitKey(group, "orders", 0), 0)
        value = None if offset is None else encode_framed(OffsetCommitValue(offset, metadata=""), 4)
        log.append_as_leader(bytearray(build_batch([Record(0, NOW, key, value)])), 0, NOW)
    return log


HISTORY = (("a", 1), ("b", 5), ("a", 2), ("b", None), ("c", 7), ("a", 3))


@pytest.mark.parametrize("segment_bytes", [10**6, 200])
def test_all_rows_and_the_newest(tmp_path: Path, segment_bytes: int):
    close_cleanly(tmp_path, commits(tmp_path, *HISTORY, segment_bytes=segment_bytes))
    found = rows(path=tmp_path, record="OffsetCommit")
    assert [(row["group"], row["offset"]) for row in found] == list(HISTORY)
    assert [row["_offset"] for row in found] == list(range(6))
    newest = rows(path=tmp_path, record="OffsetCommit", view="latest")
    assert [(row["group"], row["offset"]) for row in newest] == [("c", 7), ("a", 3)]
    for split in ("minPartitions", "maxRecordsPerPartition"):
        assert rows(path=tmp_path, record="OffsetCommit", view="latest", **{split: 2}) == newest, "one task knows them"


def test_only_the_columns_that_are_named(tmp_path: Path):
    close_cleanly(tmp_path, commits(tmp_path, *HISTORY))
    found = rows(path=tmp_path, record="OffsetCommit", columns="offset,_offset")
    assert found == [{"_offset": at, "offset": offset} for at, (_, offset) in enumerate(HISTORY)]
    newest = rows(path=tmp_path, record="OffsetCommit", columns="group", view="latest")
    assert newest == [{"group": "c"}, {"group": "a"}]
    texts = rows(path=tmp_path, record="*", columns="_record,key")
    assert [set(row) for row in texts] == [{"_record", "key"}] * len(HISTORY)
    source = RecordsDataSource({"path": "/x", "record": "OffsetCommit", "columns": "offset,_offset"})
    assert source.schema() == "`_offset` bigint, `offset` bigint"


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (EqualTo(("group",), "a"), [0, 2, 5]),
        (In(("group",), ["a", "c"]), [0, 2, 4, 5]),
        (EqualTo(("_offset",), 3), [3]),
        (GreaterThanOrEqual(("_offset",), 4), [4, 5]),
        (EqualTo(("_partition",), 1), []),
        (EqualTo(("_topic",), "orders"), []),
        (EqualTo(("topic",), "orders"), [0, 1, 2, 3, 4, 5]),
        (EqualTo(("offset",), 7), [0, 1, 2, 3, 4, 5]),  # a field of the value: Spark compares it
    ],
)
def test_filters_leave_out_what_need_not_be_decoded(tmp_path: Path, one: Filter, expected: list[int]):
    close_cleanly(tmp_path, commits(tmp_path, *HISTORY))
    assert [row["_offset"] for row in rows(one, path=tmp_path, record="OffsetCommit")] == expected
    assert len(rows(path=tmp_path, record="OffsetCommit", pushdown=False)) == len(HISTORY)


def test_filters_do_not_bring_back_what_a_newer_row_hides(tmp_path: Path):
    close_cleanly(tmp_path, commits(tmp_path, *HISTORY))
    found = rows(LessThan(("_offset",), 5), path=tmp_path, record="OffsetCommit", view="latest")
    assert [(row["group"], row["offset"]) for row in found if row["_offset"] < 5] == [("c", 7)]
    late = rows(GreaterThanOrEqual(("_offset",), 5), path=tmp_path, record="OffsetCommit", view="latest")
    assert [(row["group"], row["offset"]) for row in late] == [("a", 3)]


def test_filters_choose_among_all_records(tmp_path: Path):
    path = metadata_directory(tmp_path)
    topics = rows(EqualTo(("_record",), "TopicRecord"), path=path, record="*")
    assert [row["_offset"] for row in topics if row["_record"] == "TopicRecord"] == [
        row["_offset"] for row in rows(path=path, record="Topic")
    ]
    assert {row["_record"] for row in topics} <= {"TopicRecord", *CONTROL}
    voters = rows(EqualTo(("_record",), "Voters"), path=path, record="*")
    assert len([row for row in voters if row["_record"] == "Voters"]) == len(rows(path=path, record="Voters"))
    late = rows(GreaterThanOrEqual(("_offset",), 50), path=path, record="*")
    assert [row["_offset"] for row in late] == list(range(50, 100))
    named = rows(EqualTo(("Name",), "metadata.version"), path=path, record="FeatureLevel")
    assert {row["Name"] for row in named} == {"metadata.version"}


CONTROL = ("LeaderChange", "SnapshotHeader", "SnapshotFooter", "KRaftVersion", "Voters")


def test_a_directory_without_the_topic_has_an_empty_table(tmp_path: Path):
    close_cleanly(tmp_path, commits(tmp_path, *HISTORY))
    assert rows(path=tmp_path, record="ShareSnapshot") == []


def test_other_topics_are_not_looked_into(tmp_path: Path):
    close_cleanly(tmp_path, commits(tmp_path, *HISTORY))
    log = open_partition(tmp_path / "orders-0")
    append(log, 3)
    log.close()
    assert {row["_topic"] for row in rows(path=tmp_path, record="*")} == {"__consumer_offsets"}


# --- the metadata log -------------------------------------------------------------------------------------------------


def metadata_directory(path: Path, *names: str) -> Path:
    target = path / "__cluster_metadata-0"
    target.mkdir(parents=True)
    for name in names or [each.name for each in LIFE.iterdir()]:
        shutil.copy(LIFE / name, target / name)
    return path


def test_a_whole_log_needs_no_snapshot_but_that_of_its_making(tmp_path: Path):
    found = rows(path=metadata_directory(tmp_path), record="*")
    first = [row["_record"] for row in found if row["_offset"] == -1]
    assert first == ["SnapshotHeader", "KRaftVersion", "Voters", "SnapshotFooter"]
    rest = [row["_offset"] for row in found if row["_offset"] >= 0]
    assert rest == list(range(len(rest)))
    assert {"LeaderChange", "TopicRecord", "RegisterBrokerRecord"} <= {row["_record"] for row in found}
    assert None not in {row["_record"] for row in found}


def test_a_snapshot_stands_for_what_the_log_has_lost(tmp_path: Path):
    """The beginning of the log is deleted: the oldest snapshot that reaches up to the rest takes its place."""
    whole = metadata_directory(tmp_path / "whole")
    removed = {row["TopicId"] for row in rows(path=whole, record="RemoveTopic") if row["_offset"] < 33}
    alive = [row for row in rows(path=whole, record="Topic") if row["TopicId"] not in removed]
    path = metadata_directory(
        tmp_path / "cut",
        "00000000000000000033-0000000001.checkpoint",
        "00000000000000000099-0000000003.checkpoint",
    )
    cut_log(path / "__cluster_metadata-0", 33)
    found = rows(path=path, record="Topic")
    assert removed
    assert sorted(row["TopicId"] for row in found) == sorted(row["TopicId"] for row in alive)
    assert {row["_offset"] for row in found if row["_offset"] < 33} == {32}
    later = rows(path=path, record="Topic", startingOffsets='{"__cluster_metadata":{"0":40}}')
    assert all(row["_offset"] >= 40 for row in later)


def cut_log(directory: Path, offset: int) -> None:
    """The part of the log from an offset on, as a segment of its own."""
    from ottla.wire.batch import split_batches

    data = (LIFE / "00000000000000000000.log").read_bytes()
    kept = b"".join(bytes(batch.data) for batch in split_batches(data) if batch.base_offset >= offset)
    first = next(batch.base_offset for batch in split_batches(kept))
    assert first == offset
    (directory / f"{first:020d}.log").write_bytes(kept)


def test_snapshots_can_be_read_by_themselves(tmp_path: Path):
    snapshot = LIFE / "00000000000000000099-0000000003.checkpoint"
    found = rows(path=snapshot, record="*")
    assert [row["_record"] for row in (found[0], found[-1])] == ["SnapshotHeader", "SnapshotFooter"]
    assert {row["_offset"] for row in found} == {98}
    assert {row["_epoch"] for row in found} == {3}
    assert rows(path=snapshot, record="FeatureLevel")
    damaged = tmp_path / snapshot.name
    damaged.write_bytes(snapshot.read_bytes()[:-3])
    with pytest.raises(OttlaSparkError, match=rf"^corrupt snapshot {damaged}: it is truncated"):
        rows(path=damaged, record="*")
    with pytest.raises(
        OttlaSparkError, match=r"^option path: /x/y.checkpoint is not a snapshot; snapshots have names such as"
    ):
        rows(path="/x/y.checkpoint", record="*")


# --- the state of the cluster -----------------------------------------------------------------------------------------


def bare(found: list[dict[str, Any]]) -> list[str]:
    """Rows without their places; what a broker or controller supports comes in no order."""
    places = {column.name for column in (*COMMON, EPOCH)}
    for row in found:
        if "Features" in row:
            row["Features"].sort(key=lambda each: each["Name"])
    return sorted(repr({name: value for name, value in row.items() if name not in places}) for row in found)


@pytest.mark.parametrize("record", sorted(STATE_KEYS))
def test_the_newest_rows_are_those_of_kafkas_own_snapshot(tmp_path: Path, record: str):
    """The log is Apache Kafka's, and its controller wrote a snapshot of the state at offset 99."""
    path = metadata_directory(tmp_path)
    end = '{"__cluster_metadata":{"0":99}}'
    columns = "NextProducerId" if record == "ProducerIdsRecord" else ""  # a snapshot forgets whose they are
    options = {"record": record, **({"columns": columns} if columns else {})}
    snapshot = LIFE / "00000000000000000099-0000000003.checkpoint"
    expected = bare(rows(path=snapshot, defaults=True, **options))
    assert bare(rows(path=path, view="latest", endingOffsets=end, **options)) == expected
    assert bare(rows(path=snapshot, view="latest", **options)) == expected


def test_the_newest_rows_begin_with_the_snapshot(tmp_path: Path):
    whole = metadata_directory(tmp_path / "whole")
    cut = metadata_directory(tmp_path / "cut", "00000000000000000033-0000000001.checkpoint")
    cut_log(cut / "__cluster_metadata-0", 33)
    for record in ("Topic", "Partition", "Config", "RegisterBroker"):
        found = rows(path=cut, record=record, view="latest")
        assert bare(found) == bare(rows(path=whole, record=record, view="latest"))
        assert found
    (voters,) = rows(path=cut, record="Voters", view="latest")
    assert [each["VoterId"] for each in voters["Voters"]] == [1]


def test_filters_are_compared_with_the_state_not_with_what_led_to_it(tmp_path: Path):
    path = metadata_directory(tmp_path)
    everything = rows(path=path, record="Partition", view="latest")
    for one in (EqualTo(("Leader",), 1), GreaterThanOrEqual(("_offset",), 90), LessThan(("_offset",), 20)):
        assert bare(rows(one, path=path, record="Partition", view="latest")) == bare(everything)
