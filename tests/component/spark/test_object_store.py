"""Log directories in an object store: S3, through pyarrow (`s3://`) and through fsspec (`s3a://`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("moto.server", reason="the extra test has an S3 server")

from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.directory import find_partitions
from ottla.spark.log.read import TaskReport
from ottla.spark.log.storage import ArrowStorage, FsspecStorage, storage_of
from ottla.spark.log.view import PartitionView
from tests.component.spark.object_store import BUCKET, SECRET_BUCKET, ObjectStore, object_store
from tests.unit.spark.log_directories import (
    append,
    end_transaction,
    filled,
    in_transaction,
    read_offsets,
    segment_file,
    tasks,
)

LARGE = {"segment_bytes": 1_500_000, "index_interval_bytes": 4096}
"""Segments of 1,500 batches with one record each."""


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as one, pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", one.endpoint)
        environment.setenv("AWS_ACCESS_KEY_ID", "k")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "s")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield one


@pytest.fixture(params=["s3", "s3a"])
def scheme(request: pytest.FixtureRequest, store: ObjectStore) -> str:
    store.asked.clear()
    return request.param


def view_at(uri: str) -> PartitionView:
    (files,) = find_partitions([uri], lambda _: True)
    return PartitionView(files)


def test_each_scheme_has_its_client(store: ObjectStore):
    assert isinstance(storage_of(f"s3://{BUCKET}/x")[0], ArrowStorage)
    assert isinstance(storage_of(f"s3a://{BUCKET}/x")[0], FsspecStorage)


def test_rows_are_those_of_the_files(store: ObjectStore, scheme: str, tmp_path: Path):
    filled(tmp_path, batches=20)
    store.put(tmp_path, "rows")
    view, near = view_at(f"{scheme}://{BUCKET}/rows"), view_at(str(tmp_path))
    assert (view.start_offset, view.end_offset, view.up_to) == (0, 20, "hw")
    assert view.files.topic_id == near.files.topic_id
    assert [task.pieces for task in tasks(view)] == [task.pieces for task in tasks(near)]
    assert read_offsets(tasks(view)) == list(range(20))
    assert read_offsets(tasks(view_at(f"{scheme}://{BUCKET}/rows/orders-0"), 7, 11)) == [7, 8, 9, 10]


def test_aborted_transactions_are_left_out(store: ObjectStore, scheme: str, tmp_path: Path):
    log = filled(tmp_path, batches=2, close=False)
    in_transaction(log, 7, 0)
    end_transaction(log, 7, committed=False)
    append(log, 6)
    log.close()
    store.put(tmp_path, "aborted")
    view = view_at(f"{scheme}://{BUCKET}/aborted")
    assert view.last_stable_offset == 10
    assert read_offsets(tasks(view, is_committed=True), is_committed=True) == [0, 1, *range(4, 10)]


def test_planning_reads_few_blocks_and_tasks_what_they_need(store: ObjectStore, scheme: str, tmp_path: Path):
    filled(tmp_path, batches=4_000, **LARGE)
    if not store.holds("large"):
        store.put(tmp_path, "large")
    store.asked.clear()
    found = tasks(view_at(f"{scheme}://{BUCKET}/large"), 1_700)
    assert [task.pieces[0].from_offset for task in found] == [1_700, 3_000]
    assert store.asked_for("3000.log") == ["bytes=0-999999"], "its end, in one block"
    assert store.asked_for("1500.log") == ["bytes=200000-1248575"], "where the range begins"
    assert store.asked_for("00000.log") == []
    store.asked.clear()
    report = TaskReport()
    assert read_offsets(found, report) == list(range(1_700, 4_000))
    assert store.asked_for(".log") == ["bytes=200000-1499999", "bytes=0-999999"]
    assert report.bytes_read == 2_300_000


def test_a_segment_that_is_removed_is_data_loss(store: ObjectStore, scheme: str, tmp_path: Path):
    filled(tmp_path, batches=8)
    name = f"gone-{scheme}"
    store.put(tmp_path, name)
    found = tasks(view_at(f"{scheme}://{BUCKET}/{name}"))
    store.remove(f"{name}/orders-0/{segment_file(tmp_path, 0).name}")
    lost = r"^data lost: topic orders partition 0: offsets 0\.\.2 were deleted"
    with pytest.raises(OttlaSparkError, match=lost):
        read_offsets(found)
    assert read_offsets(found, fail_on_data_loss=False) == list(range(3, 8))


@pytest.mark.parametrize("path", [f"{BUCKET}/nowhere", "no-such-bucket/logs"])
def test_what_is_not_there(store: ObjectStore, scheme: str, path: str):
    with pytest.raises(OttlaSparkError, match=rf"^option path: {scheme}://{path} (.*: .*)?does not exist"):
        find_partitions([f"{scheme}://{path}"], lambda _: True)


def test_a_store_that_refuses(store: ObjectStore, scheme: str):
    where = f"{scheme}://{SECRET_BUCKET}/rows"
    with pytest.raises(OttlaSparkError, match=rf"^option path: {where} cannot be read: ") as refused:
        find_partitions([where], lambda _: True)
    assert "\n" not in str(refused.value)
