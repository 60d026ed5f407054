"""A cluster of numbers: logs have a start and an end, topics have an id."""

from collections.abc import Iterable, Mapping

from ottla.spark.offsets import Offsets, TopicPartition
from ottla.spark.options import read_options
from ottla.spark.topic.cluster import Assigned
from ottla.spark.topic.options import TopicOptions

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def topic_options(**given: str) -> TopicOptions:
    return read_options(TopicOptions, {**SERVERS, "subscribe": "t", **given})


def at(partition: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, partition)


class FakeLogs:
    """Logs by partition: where each begins and ends; `times` has the first offsets by timestamp."""

    def __init__(self, logs: Mapping[TopicPartition, tuple[int, int]], ids: Mapping[str, str] | None = None) -> None:
        self.logs = dict(logs)
        self.ids = {at.topic: f"id-{at.topic}" for at in logs} | dict(ids or {})
        self.missing: tuple[str, ...] = ()
        self.times: dict[tuple[TopicPartition, int], int] = {}
        self.ends_to_come: list[dict[TopicPartition, int]] = []

    def assigned(self) -> Assigned:
        return Assigned(dict.fromkeys(self.logs, 1), dict(self.ids), self.missing)

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.logs[each][0] for each in partitions}

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        if self.ends_to_come:
            return self.ends_to_come.pop(0)
        return {each: self.logs[each][1] for each in partitions}

    def at_time(self, timestamps: Offsets) -> dict[TopicPartition, int | None]:
        return {each: self.times.get((each, time_ms)) for each, time_ms in timestamps.items()}
