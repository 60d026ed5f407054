"""What a task of a share group's stream does, against a broker in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import ottla.testing
from ottla.client import Client
from ottla.client.blocking import BlockingClient
from ottla.client.producer import Producer, ProducerRecord
from ottla.client.topics import NewTopic, create, delete
from ottla.spark.errors import OttlaSparkError
from ottla.spark.options import read_options
from ottla.spark.share.decision_listener import Listener
from ottla.spark.share.decisions import Decisions
from ottla.spark.share.offsets import Acquisition, ShareOffset, TopicIdPartition
from ottla.spark.share.options import ShareOptions
from ottla.spark.share.plan import Task
from ottla.spark.share.stream_reader import ShareStreamReader
from ottla.spark.share.task_reader import rows_of
from ottla.wire import uuid_text
from ottla.wire.acknowledge_type import AcknowledgeType


class Jobs:
    """A topic of one partition with the numbers from 0 to 99."""

    def __init__(self, servers: str, name: str = "jobs") -> None:
        self.servers = servers
        self.name = name
        with BlockingClient(servers) as client:
            topic_id = client.call(self._make)
        self.tp = TopicIdPartition(uuid_text(topic_id), 0)

    async def _make(self, client: Client) -> bytes:
        await create(client, NewTopic(self.name, 1))
        await Producer(client).send_all([ProducerRecord(self.name, b"%d" % each, partition=0) for each in range(100)])
        return (await client.topics([self.name]))[self.name].topic_id

    def options(self, **given: str) -> ShareOptions:
        fixed = {"kafka.bootstrap.servers": self.servers, "group": "g", "subscribe": self.name}
        return read_options(ShareOptions, {**fixed, **given})

    def rows(self, *ranges: tuple[int, int, int], address: Any = None, **given: str) -> list[dict[str, Any]]:
        task = Task(self.tp, self.name, tuple(Acquisition(*each) for each in ranges), 7)
        return [row for batch in rows_of(task, self.options(**given), address) for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    with ottla.testing.broker() as broker:
        yield Jobs(broker.bootstrap_servers)


def test_only_acquired_rows_are_given_with_their_counts(jobs: Jobs) -> None:
    rows = jobs.rows((3, 4, 1), (8, 8, 5))
    found = [(row["value"], row["offset"], row["deliveryCount"], row["acquiredSeq"]) for row in rows]
    assert found == [(b"3", 3, 1, 7), (b"4", 4, 1, 7), (b"8", 8, 5, 7)]


def test_rows_have_the_columns_that_were_promised(jobs: Jobs) -> None:
    options = jobs.options(includeHeaders="true", includeTopicId="true")
    (batch,) = rows_of(Task(jobs.tp, "jobs", (Acquisition(0, 0, 1),), 7), options, None)
    assert batch.schema.names == list(options.types())
    assert batch.schema.names[-4:] == ["headers", "topicId", "deliveryCount", "acquiredSeq"]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the user's."""
    module = ModuleType("judge")
    module.sevens = lambda batch: pc.equal(batch.column("value"), pa.scalar(b"7"))  # type: ignore[attr-defined]
    module.listed = lambda batch: [value == b"7" for value in batch.column("value").to_pylist()]  # type: ignore[attr-defined]
    module.short = lambda batch: [True]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "judge", module)
    return module


@pytest.mark.parametrize("function", ["sevens", "listed"])
def test_marked_rows_are_rejected_and_not_given(jobs: Jobs, judge: ModuleType, function: str) -> None:
    decisions = Decisions()
    decisions.expect(ShareOffset(7, "g", {jobs.tp: (Acquisition(6, 8, 1),)}, {jobs.tp.topic_id: "jobs"}))
    listener = Listener("g", decisions)
    rows = jobs.rows((6, 8, 1), address=listener.address, rejectWhen=f"judge:{function}")
    listener.close()
    assert [row["value"] for row in rows] == [b"6", b"8"]
    assert decisions.take(7) == {jobs.tp: {7: AcknowledgeType.REJECT}}


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("judge:nothing", "option rejectWhen: judge:nothing cannot be loaded: "),
        ("nowhere:sevens", "option rejectWhen: nowhere:sevens cannot be loaded: "),
        ("judge:short", "option rejectWhen: judge:short marked 1 of 3 rows"),
    ],
)
def test_functions_that_cannot_be(jobs: Jobs, judge: ModuleType, named: str, sentence: str) -> None:
    with pytest.raises(OttlaSparkError) as caught:
        jobs.rows((6, 8, 1), rejectWhen=named)
    assert str(caught.value).startswith(sentence)


def test_the_reader_plans_and_reads_a_batch(jobs: Jobs) -> None:
    reader = ShareStreamReader(jobs.options(maxRecordsPerPartition="2"))
    acquired = {jobs.tp: (Acquisition(0, 2, 1),)}
    end = ShareOffset(1, "g", acquired, {jobs.tp.topic_id: "jobs"}).to_json()
    parts = reader.partitions(reader.initialOffset(), end)
    assert [[row["offset"] for batch in reader.read(part) for row in batch.to_pylist()] for part in parts] == [
        [0, 1],
        [2],
    ]


def test_a_batch_of_a_topic_that_was_deleted(jobs: Jobs) -> None:
    gone = Jobs(jobs.servers, "gone")
    with BlockingClient(jobs.servers) as client:
        client.call(delete, gone.name)
    with pytest.raises(OttlaSparkError, match="data lost: topic gone partition 0: the topic was deleted"):
        gone.rows((0, 4, 1))
    assert gone.rows((0, 4, 1), failOnDataLoss="false") == []


def test_partitions_with_few_records_are_read_by_one_task(jobs: Jobs) -> None:
    """A task takes tens of milliseconds, however little it reads."""
    other = Jobs(jobs.servers, "other-jobs")
    acquired = {other.tp: (Acquisition(5, 6, 2),), jobs.tp: (Acquisition(0, 1, 1),)}
    names = {jobs.tp.topic_id: "jobs", other.tp.topic_id: "other-jobs"}
    end = ShareOffset(1, "g", acquired, names).to_json()

    def tasks(**given: str) -> list[list[tuple[str, int, int]]]:
        reader = ShareStreamReader(jobs.options(subscribe="jobs,other-jobs", **given))
        parts = reader.partitions(reader.initialOffset(), end)
        rows = [[row for batch in reader.read(part) for row in batch.to_pylist()] for part in parts]
        return [sorted((row["topic"], row["offset"], row["deliveryCount"]) for row in each) for each in rows]

    of_jobs, of_other = [("jobs", 0, 1), ("jobs", 1, 1)], [("other-jobs", 5, 2), ("other-jobs", 6, 2)]
    assert tasks() == [of_jobs + of_other]
    assert sorted(tasks(minRecordsPerPartition="1")) == [of_jobs, of_other]
    assert sorted(tasks(maxRecordsPerPartition="5")) == [of_jobs, of_other]
    with pytest.raises(OttlaSparkError, match="minRecordsPerPartition: 6 is more than maxRecordsPerPartition, 5"):
        jobs.options(minRecordsPerPartition="6", maxRecordsPerPartition="5")
