"""A query that writes to one topic exactly once, without Spark: its tasks, its driver, and whoever reads there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.client.blocking import BlockingClient
from ottla.spark.options import read_options
from ottla.spark.sink.columns import Columns
from ottla.spark.sink.exactly_once import Prepared, Task, prepare
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.row_writer import TaskRows
from ottla.spark.sink.transaction_end import commit_all
from ottla.spark.topic.batch_reader import PlainReader
from ottla.spark.topic.options import TopicOptions

VALUE_ONLY = Columns(key=False, topic=False, partition=False, headers=False)


class Sink:
    """A query that writes to one topic, and whoever reads there."""

    def __init__(self, client: BlockingClient, servers: str, topic: str, **options: str) -> None:
        given = {"kafka.bootstrap.servers": servers, "topic": topic, "exactlyOnce": "true", **options}
        self.client = client
        self.topic = topic
        self.options = read_options(SinkOptions, given)

    def task(self, values: Sequence[str], *, batch_id: int = 0, partition_id: int = 0) -> Prepared:
        batches = [pa.RecordBatch.from_pydict({"value": list(values)})] if values else []
        task = Task(f"q-{self.topic}", batch_id, partition_id)
        return prepare(self.client, self.options, task, TaskRows(batches, VALUE_ONLY, self.topic))

    def commit(self, *prepared: Prepared) -> None:
        commit_all(self.client, self.options, prepared)

    def committed(self) -> list[str]:
        return sorted(row["value"].decode() for row in self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """What the source reads of committed transactions."""
        given = {
            "kafka.bootstrap.servers": self.options.bootstrap_servers,
            "subscribe": self.topic,
            "isolationLevel": "read_committed",
        }
        reader = PlainReader(read_options(TopicOptions, given).for_batch())
        return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
