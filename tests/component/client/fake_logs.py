"""Logs that fake brokers answer fetches from."""

from __future__ import annotations

from typing import Any

from ottla.client import EARLIEST, LATEST, TopicPartition
from ottla.wire import frames, types
from ottla.wire.batch import split_batches
from ottla.wire.errors import ErrorCode
from tests.component.client.fake import topic_id

ORDERS = TopicPartition("orders", 0)
Data = types.FetchResponse.PartitionData
Topic = types.FetchResponse.FetchableTopicResponse


class Logs:
    """The logs of all partitions: fake brokers answer Fetch and ListOffsets from them."""

    def __init__(self, **batches: list[bytes]) -> None:
        self.batches = {TopicPartition(name, 0): each for name, each in batches.items()}
        self.aborted: list[tuple[int, int]] = []
        self.errors: dict[TopicPartition, list[int]] = {}
        self.damaged: dict[TopicPartition, bytes] = {}
        self.start = 0
        self.last_stable: int | None = None
        self.whole_answer = False

    def end(self, at: TopicPartition) -> int:
        views = list(split_batches(b"".join(self.batches.get(at, []))))
        return views[-1].next_offset if views else 0

    def fetch(self, request: frames.Request) -> types.FetchResponse:
        topics = []
        for topic in request.body.topics:
            name = topic.topic or topic.topic_id.rstrip(b"\1").decode()
            partitions = tuple(self._data(TopicPartition(name, each.partition), each) for each in topic.partitions)
            topics.append(Topic(name, topic_id(name), partitions))
        return types.FetchResponse(responses=tuple(topics))

    def _data(self, at: TopicPartition, asked: Any) -> Any:
        if codes := self.errors.get(at):
            return Data(at.partition, codes.pop(0))
        if at not in self.batches:
            return Data(at.partition, ErrorCode.UNKNOWN_TOPIC_ID)
        if not self.start <= asked.fetch_offset <= self.end(at):
            return Data(at.partition, ErrorCode.OFFSET_OUT_OF_RANGE)
        views = [each for each in split_batches(b"".join(self.batches[at])) if each.last_offset >= asked.fetch_offset]
        chosen = views if self.whole_answer else views[:1]
        records = b"".join(bytes(each.data) for each in chosen)
        aborted = tuple(types.FetchResponse.AbortedTransaction(*each) for each in self.aborted)
        end = self.end(at)
        return Data(
            at.partition,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=self.start,
            aborted_transactions=aborted,
            records=self.damaged.get(at, records),
        )

    def list_offsets(self, request: frames.Request) -> types.ListOffsetsResponse:
        topics = []
        for topic in request.body.topics:
            at = TopicPartition(topic.name, 0)
            end = self.end(at) if self.last_stable is None or not request.body.isolation_level else self.last_stable
            offsets = {EARLIEST: self.start, LATEST: end}
            partitions = tuple(
                types.ListOffsetsResponse.ListOffsetsPartitionResponse(
                    each.partition_index, 0, -1, offsets[each.timestamp]
                )
                for each in topic.partitions
            )
            topics.append(types.ListOffsetsResponse.ListOffsetsTopicResponse(topic.name, partitions))
        return types.ListOffsetsResponse(topics=tuple(topics))
