"""Many partitions: ottla and Apache Kafka 4.3.1 with 10,000 partitions in 1,000 and in 10,000 topics.

    python -m benchmarks scale [--quick] [--rounds 1] [--only TEXT] [--brokers ottla] [--out FILE]

Topics are made by CreateTopics, a few hundred partitions at a time, while an honest client writes and asks beside it;
a record goes into every tenth partition. Then the broker is stopped, started again and asked. Linux only.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import rounds
from benchmarks.broker import raw
from benchmarks.broker.brokers import Broker, resident_bytes
from benchmarks.rounds import Figures
from benchmarks.runner import Size
from ottla.wire.types import CreateTopicsRequest, MetadataRequest
from tests.component.broker.raw_client import RawClient, Topic, batch
from tests.hostile.neighbour import neighbour

PACKAGES = ("msgspec",)
PARTITIONS_PER_REQUEST = 250
WRITTEN_EVERY = 10
ATTEMPTS = 1_000
PAUSE_S = 0.02


class Shape(NamedTuple):
    topics: int
    partitions: int

    @property
    def name(self) -> str:
        return f"{self.topics:,} topics of {self.partitions}"


class Scale(NamedTuple):
    shapes: tuple[Shape, ...]
    asked: int
    """For the metadata of all topics; ten times as often for that of one."""
    quiet_s: float


SCALES = {
    Size.FULL: Scale((Shape(1_000, 10), Shape(10_000, 1)), 50, 5.0),
    Size.QUICK: Scale((Shape(100, 10), Shape(1_000, 1)), 50, 5.0),
    Size.SMOKE: Scale((Shape(10, 2),), 1, 0.1),
}


def create(client: RawClient, shape: Shape) -> list[Topic]:
    made = []
    step = max(PARTITIONS_PER_REQUEST // shape.partitions, 1)
    kind = CreateTopicsRequest
    for start in range(0, shape.topics, step):
        numbers = range(start, min(start + step, shape.topics))
        wanted = tuple(kind.CreatableTopic(f"topic-{number:05d}", shape.partitions, 1) for number in numbers)
        answer = client.ask(kind(wanted, 60_000), 7)
        assert not any(topic.error_code for topic in answer.topics), answer.topics[0]
        made += [Topic(topic.name, topic.topic_id) for topic in answer.topics]
    return made


def write_some(client: RawClient, topics: Sequence[Topic], shape: Shape) -> None:
    places = [(topic, partition) for topic in topics for partition in range(shape.partitions)]
    for topic, partition in places[::WRITTEN_EVERY]:
        write_one(client, topic, partition)


def write_one(client: RawClient, topic: Topic, partition: int) -> None:
    """Apache Kafka may say that a topic is there a little before its leader knows."""
    for _ in range(ATTEMPTS):
        if client.produce(topic, batch(b"v"), partition=partition).error_code == 0:
            return
        time.sleep(PAUSE_S)
    raise TimeoutError(f"{topic.name}-{partition} cannot be written to")


def timed_metadata(client: RawClient, request: MetadataRequest, count: int) -> float:
    took = []
    for _ in range(count):
        began = time.perf_counter()
        client.ask(request, 12)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def measure(broker: Broker, _: Path, shape: Shape, scale: Scale) -> Figures:
    rounds.boot(broker)
    servers = f"127.0.0.1:{broker.port}"
    client = RawClient.at(servers)
    empty_bytes = resident_bytes(broker.pid)
    with neighbour(servers) as beside:
        began = time.perf_counter()
        topics = create(client, shape)
        yield f"{shape.name}: create", time.perf_counter() - began
        beside.await_served()
        yield f"{shape.name}: longest wait of others meanwhile", beside.longest_ms / 1000
        write_some(client, topics, shape)
    client.close_all()
    broker.stop()
    began = time.perf_counter()
    broker.exec()
    raw.first_produce(broker.port, "first")
    yield f"{shape.name}: start to first acknowledged produce", time.perf_counter() - began
    yield f"memory for {shape.name}", max(resident_bytes(broker.pid) - empty_bytes, 1)
    yield f"files open with {shape.name}", open_files(broker.pid)
    yield from measure_requests(servers, shape, scale)


def measure_requests(servers: str, shape: Shape, scale: Scale) -> Figures:
    client = RawClient.at(servers)
    one = MetadataRequest((MetadataRequest.MetadataRequestTopic(name="topic-00007"),), False)
    yield f"{shape.name}: metadata of all", timed_metadata(client, MetadataRequest(None), scale.asked)
    yield f"{shape.name}: metadata of one topic", timed_metadata(client, one, scale.asked * 10)
    await_topics(client)
    client.close_all()
    with neighbour(servers) as beside:
        time.sleep(scale.quiet_s)
        beside.await_served()
        yield f"{shape.name}: longest wait when nothing else happens", beside.longest_ms / 1000


def await_topics(client: RawClient) -> None:
    """Until a new topic can be used: a broker may serve before it has opened all it has."""
    for _ in range(ATTEMPTS):
        try:
            client.topic()
        except AssertionError:
            time.sleep(PAUSE_S)
        else:
            return
    raise TimeoutError("no topic becomes usable")


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, "part of the name of a shape, as 1,000 topics", arguments, SCALES)
    scale: Scale = options.scale
    measures = [partial(measure, shape=shape, scale=scale) for shape in scale.shapes if options.only in shape.name]
    return rounds.run("scale", options, measures, PACKAGES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
