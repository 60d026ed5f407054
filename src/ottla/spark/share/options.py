"""Options of the format `ottla-share`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla.spark.cluster_options import MIB, ClusterOptions, RecordOptions
from ottla.spark.options import bad_option, boolean, names, option, positive, text
from ottla.spark.schemas import RecordColumns
from ottla.spark.topic.options import TopicOptions, joined_records

__all__ = ["SHARE_COLUMNS", "ShareOptions"]

SHARE_COLUMNS: Final = {"deliveryCount": "int", "acquiredSeq": "bigint"}


def _function(value: str) -> str:
    module, _, name = value.partition(":")
    if not module or not name.isidentifier():
        raise ValueError(f"{value!r} is not a function; write module:function")
    return value


@dataclass(frozen=True, repr=False)
class ShareOptions(RecordOptions, ClusterOptions):
    group: str = option("group", text, "")
    subscribe: tuple[str, ...] = option("subscribe", names, ())
    max_records_per_trigger: int = option("maxRecordsPerTrigger", positive, 100_000)
    max_bytes_per_trigger: int = option("maxBytesPerTrigger", positive, 64 * MIB)
    max_records_per_partition: int | None = option("maxRecordsPerPartition", positive, None)
    min_records_per_partition: int | None = option("minRecordsPerPartition", positive, None)
    fetch_wait_ms: int = option("fetchWaitMs", positive, 500)
    acquire_time_ms: int = option("acquireTimeMs", positive, 2_000)
    fail_on_data_loss: bool = option("failOnDataLoss", boolean, True)
    reject_when: str = option("rejectWhen", _function, "")
    decision_dir: str = option("decisionDir", text, "")
    report_tasks: bool = option("reportTasks", boolean, False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.group:
            raise bad_option("group", "it is required")
        if not self.subscribe:
            raise bad_option("subscribe", "it is required: the topics that the group shares")
        joined_records(self.min_records_per_partition, self.max_records_per_partition)  # raises if they disagree

    @property
    def joined_records(self) -> int:
        """The least number of records of a task."""
        return joined_records(self.min_records_per_partition, self.max_records_per_partition)

    def types(self) -> dict[str, str]:
        """The columns and their types."""
        columns = RecordColumns(self.include_headers, self.include_leader_epoch, self.include_topic_id)
        return columns.types() | SHARE_COLUMNS

    def reading(self) -> TopicOptions:
        """The options with which tasks read ranges."""
        return TopicOptions(
            bootstrap_servers=self.bootstrap_servers,
            kafka=self.kafka,
            subscribe=self.subscribe,
            include_headers=self.include_headers,
            include_leader_epoch=self.include_leader_epoch,
            include_topic_id=self.include_topic_id,
            arrow_batch_rows=self.arrow_batch_rows,
            arrow_batch_bytes=self.arrow_batch_bytes,
            fail_on_data_loss=self.fail_on_data_loss,
            report_tasks=self.report_tasks,
        )
