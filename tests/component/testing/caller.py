"""A caller with one plain connection: requests in, answers out, nothing clever in between."""

import socket

from ottla.testing import Broker
from ottla.wire import frames
from ottla.wire.batch import Record, build_batch
from ottla.wire.types.api_versions import ApiVersionsRequest
from ottla.wire.types.create_topics import CreateTopicsRequest
from ottla.wire.types.delete_topics import DeleteTopicsRequest
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.metadata import MetadataRequest
from ottla.wire.types.produce import ProduceRequest

TIMEOUT_S = 20
VERSIONS = {0: 9, 1: 12, 3: 12, 18: 3, 19: 7, 20: 6}


class Caller:
    def __init__(self, broker: Broker) -> None:
        self._sock = socket.create_connection(("127.0.0.1", broker.port), TIMEOUT_S)
        self._buffer = b""
        self._correlation_id = 0

    def __del__(self) -> None:
        self._sock.close()

    def send(self, api_key: int, body: object) -> None:
        self._correlation_id += 1
        request = frames.write_request(body, VERSIONS[api_key], correlation_id=self._correlation_id, client_id="caller")
        self._sock.sendall(request)

    def receive(self, api_key: int):
        while True:
            whole, used = frames.split(self._buffer)
            if whole:
                self._buffer = self._buffer[used:]
                return frames.read_response(whole[0], api_key, VERSIONS[api_key]).body
            data = self._sock.recv(65536)
            if not data:
                raise ConnectionResetError("closed by the broker")
            self._buffer += data

    def call(self, api_key: int, body: object):
        self.send(api_key, body)
        return self.receive(api_key)

    def is_closed(self) -> bool:
        try:
            return self._sock.recv(1) == b""
        except ConnectionResetError:
            return True

    def read_to_the_end(self) -> None:
        """Wait until the broker closes the connection, whatever it says before."""
        while not self.is_closed():
            pass

    def is_silent(self, seconds: float) -> bool:
        self._sock.settimeout(seconds)
        try:
            return self._sock.recv(1) is None
        except TimeoutError:
            return True
        finally:
            self._sock.settimeout(TIMEOUT_S)

    def api_keys(self) -> set[int]:
        return {api.api_key for api in self.call(18, ApiVersionsRequest("caller", "1")).api_keys}

    def begin_creation(self, name: str, *, partitions: int = 1) -> None:
        topic = CreateTopicsRequest.CreatableTopic(name, partitions, 1)
        self.send(19, CreateTopicsRequest((topic,), timeout_ms=10_000))

    def creation(self, name: str, *, partitions: int = 1):
        self.begin_creation(name, partitions=partitions)
        [topic] = self.receive(19).topics
        return topic

    def create_topic(self, name: str, *, partitions: int = 1) -> bytes:
        topic = self.creation(name, partitions=partitions)
        assert topic.error_code == 0, topic
        return topic.topic_id

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest((DeleteTopicsRequest.DeleteTopicState(name),), timeout_ms=10_000)
        [topic] = self.call(20, request).responses
        assert topic.error_code == 0, topic

    def topic_names(self) -> set[str]:
        return {topic.name for topic in self.call(3, MetadataRequest(None)).topics}

    def _topic(self, name: str):
        topics = (MetadataRequest.MetadataRequestTopic(name=name),)
        [topic] = self.call(3, MetadataRequest(topics, allow_auto_topic_creation=False)).topics
        return topic

    def topic_error(self, name: str) -> int:
        return int(self._topic(name).error_code)

    def topic_id(self, name: str) -> bytes:
        return self._topic(name).topic_id

    def partition_count(self, name: str) -> int:
        return len(self._topic(name).partitions)

    def begin_produce(self, topic: str, value: bytes) -> None:
        kind = ProduceRequest
        records = build_batch([Record(0, 0, None, value)])
        topic_data = kind.TopicProduceData(topic, partition_data=(kind.PartitionProduceData(0, records),))
        self.send(0, kind(acks=-1, timeout_ms=1000, topic_data=(topic_data,)))

    def begin_fetch(self, topic: str, *, max_wait_ms: int) -> None:
        kind = FetchRequest
        partition = kind.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = (kind.FetchTopic(topic=topic, partitions=(partition,)),)
        self.send(1, kind(max_wait_ms=max_wait_ms, min_bytes=1, topics=topics))

    def end_fetch(self) -> int:
        return int(self.receive(1).error_code)
