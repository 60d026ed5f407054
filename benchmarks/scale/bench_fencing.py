"""A broker leaves a large cluster: the controllers of ottla and of Apache Kafka 4.3.1, with 100,000 partitions.

    python -m benchmarks.scale.bench_fencing [--quick] [--rounds 1] [--only TEXT] [--brokers ottla] [--out FILE]

Five brokers are played by raw frames; each holds a replica of three in five partitions. One asks to be fenced, another
is unregistered (Apache Kafka refuses that with so many partitions), and a third shuts down in order: out of the in-sync
replicas, leaders elsewhere, and last the record of the broker itself. Each is timed until the answer, which comes when
the records are committed. Meanwhile another connection asks for ApiVersions every 5 ms, and a broker that stays sends
one heartbeat, which waits in line.

Of the turns of ottla's loop that took a millisecond and more the longest is shown, by the processor time of its thread
and by the clock. A virtual machine that has to wait for a processor counts that as its own time now and then, so the
longest but for one in a hundred stands beside it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import rounds
from benchmarks.broker.brokers import Broker
from benchmarks.rounds import Figures
from benchmarks.runner import Size
from benchmarks.scale.controllers import OttlaController, new_controller
from benchmarks.scale.measured_node import NOTED_S
from ottla.core.metadata.records import read_batch
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.types.api_versions import ApiVersionsRequest
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.types.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    UnregisterBrokerRecord,
)
from ottla.wire.types.create_topics import CreateTopicsRequest
from ottla.wire.types.describe_cluster import DescribeClusterRequest
from ottla.wire.types.unregister_broker import UnregisterBrokerRequest
from tests.component.broker.raw_client import Connection, RawClient
from tests.interop.controller.twin import registration

PACKAGES = ("msgspec",)
BROKERS = (11, 12, 13, 14, 15)
EXTRA = 16
"""A broker without replicas, which leaves in every way before anything is timed: code is loaded when first used."""
REPLICAS = 3
PARTITIONS_PER_TOPIC = 100
TOPICS_PER_REQUEST = 10
PAUSE_S = 0.005
TIMEOUT_S = 300.0
SETTINGS = {
    "broker.session.timeout.ms": "3600000",  # nobody falls silent by chance
    "metadata.max.idle.interval.ms": "0",
    "num.network.threads": "1",
}
FAR = 1 << 40
"""An offset of the metadata log that no broker has read: whoever says it has is up to date."""

TOPICS = {Size.FULL: 1_000, Size.QUICK: 100, Size.SMOKE: 2}


class TooLarge(Exception):
    """The controller does not write so many records for one request."""


class Members:
    """The five brokers, and the connection by which they all speak."""

    def __init__(self, client: RawClient, epochs: dict[int, int] | None = None) -> None:
        self._connection = client.connect(timeout_s=TIMEOUT_S)
        self.epochs: dict[int, int] = {} if epochs is None else epochs
        self._fenced: set[int] = set()

    def join(self, broker_id: int, cluster_id: str) -> None:
        reply = self._connection.ask(registration(broker_id, cluster_id=cluster_id), 4)
        assert reply.error_code == 0, reply
        self.epochs[broker_id] = reply.broker_epoch
        assert not self.beat(broker_id).is_fenced

    def beat(self, broker_id: int, **wants: bool) -> BrokerHeartbeatResponse:
        """A heartbeat that the controller takes. A busy one may say that it had no time, and is asked again."""
        request = BrokerHeartbeatRequest(broker_id, self.epochs[broker_id], FAR, **wants)
        while True:
            reply: BrokerHeartbeatResponse = self._connection.ask(request, 2)
            if reply.error_code != ErrorCode.REQUEST_TIMED_OUT:
                assert reply.error_code == 0, reply
                return reply

    def fence(self, broker_id: int) -> None:
        assert self.beat(broker_id, want_fence=True).is_fenced
        self._fenced.add(broker_id)

    def unregister(self, broker_id: int) -> None:
        """A busy controller may say that it had no time, and has done it all the same."""
        done = {ErrorCode.NONE}
        while (reply := self._connection.ask(UnregisterBrokerRequest(broker_id), 0)).error_code not in done:
            if reply.error_code == ErrorCode.POLICY_VIOLATION:
                raise TooLarge(reply.error_message)
            assert reply.error_code == ErrorCode.REQUEST_TIMED_OUT, reply
            done.add(ErrorCode.BROKER_ID_NOT_REGISTERED)
        del self.epochs[broker_id]

    def shut_down(self, broker_id: int) -> None:
        assert not self.beat(broker_id, want_shut_down=True).should_shut_down
        for other in self.epochs.keys() - self._fenced - {broker_id}:
            self.beat(other)
        assert self.beat(broker_id, want_shut_down=True).should_shut_down


class Departure(NamedTuple):
    name: str
    broker_id: int
    leave: Callable[[Members, int], None]
    last_record: type


DEPARTURES = (
    Departure("fence", 15, Members.fence, BrokerRegistrationChangeRecord),
    Departure("unregister", 14, Members.unregister, UnregisterBrokerRecord),
    Departure("shut down", 13, Members.shut_down, BrokerRegistrationChangeRecord),
)


def create(connection: Connection, topic_count: int) -> None:
    kind = CreateTopicsRequest
    assignments = tuple(
        kind.CreatableReplicaAssignment(
            number, tuple(BROKERS[(number + nth) % len(BROKERS)] for nth in range(REPLICAS))
        )
        for number in range(PARTITIONS_PER_TOPIC)
    )
    for start in range(0, topic_count, TOPICS_PER_REQUEST):
        numbers = range(start, min(start + TOPICS_PER_REQUEST, topic_count))
        wanted = tuple(kind.CreatableTopic(f"topic-{number:05d}", -1, -1, assignments) for number in numbers)
        answer = connection.ask(kind(wanted, 60_000), 7)
        assert not any(topic.error_code for topic in answer.topics), answer.topics[0]


# --- what others notice


class Waits(NamedTuple):
    asked: list[float]
    beaten: list[float]


@contextmanager
def others(client: RawClient, members: Members) -> Iterator[Waits]:
    """Somebody asks all the time; a broker that stays sends a heartbeat a moment after the begin."""
    is_over = threading.Event()
    waits = Waits([], [])
    heartbeat = Members(client, members.epochs)

    def ask() -> None:
        connection = client.connect(timeout_s=TIMEOUT_S)
        while not is_over.wait(PAUSE_S):
            began = time.perf_counter()
            connection.ask(ApiVersionsRequest("bench", "1"), 3)
            waits.asked.append(time.perf_counter() - began)

    def beat() -> None:
        time.sleep(PAUSE_S)
        began = time.perf_counter()
        heartbeat.beat(BROKERS[0])
        waits.beaten.append(time.perf_counter() - began)

    threads = [threading.Thread(target=each) for each in (ask, beat)]
    for thread in threads:
        thread.start()
    try:
        yield waits
    finally:
        while not waits.asked:
            time.sleep(PAUSE_S)
        is_over.set()
        for thread in threads:
            thread.join()


# --- what is in the log


def batches_from(data_dir: Path, offset: int) -> Iterator[BatchView]:
    """The batches of data in the metadata log from an offset on."""
    for path in sorted((data_dir / "__cluster_metadata-0").glob("*.log")):
        for batch in split_batches(path.read_bytes()):
            if isinstance(batch, BatchView) and batch.base_offset >= offset and not batch.is_control:
                yield batch


def end_offset(data_dir: Path) -> int:
    return max(batch.next_offset for batch in batches_from(data_dir, 0))


def check_order(data_dir: Path, offset: int, last_record: type) -> int:
    """Changes of partitions come before the broker's own record; gives the number of records."""
    kinds = [type(record.message) for batch in batches_from(data_dir, offset) for record in read_batch(batch)]
    assert kinds[-1] is last_record, kinds[-1]
    assert PartitionChangeRecord in kinds
    return len(kinds)


def measure(broker: Broker, _: Path, topic_count: int) -> Figures:
    broker.prepare()
    broker.exec()
    data_dir: Path = broker.data_dir  # type: ignore[attr-defined]
    client = RawClient.at(f"127.0.0.1:{broker.port}")
    connection = client.connect(timeout_s=TIMEOUT_S)
    members = Members(client)
    cluster_id = connection.ask(DescribeClusterRequest(endpoint_type=2), 1).cluster_id
    for broker_id in (*BROKERS, EXTRA):
        members.join(broker_id, cluster_id)
    members.fence(EXTRA)
    members.beat(EXTRA)
    assert members.beat(EXTRA, want_shut_down=True).should_shut_down
    members.unregister(EXTRA)
    name = f"{topic_count * PARTITIONS_PER_TOPIC:,} partitions"
    began = time.perf_counter()
    create(connection, topic_count)
    yield f"{name}: create", time.perf_counter() - began
    for departure in DEPARTURES:
        try:
            yield from measure_departure(broker, client, members, data_dir, departure, name)
        except TooLarge as error:
            print(f"  {departure.name}: refused by {broker.name}: {error}", file=sys.stderr, flush=True)
    client.close_all()


def measure_departure(
    broker: Broker, client: RawClient, members: Members, data_dir: Path, departure: Departure, name: str
) -> Figures:
    what = f"{name}: {departure.name}"
    offset = end_offset(data_dir)
    with others(client, members) as waits:
        began = time.monotonic()
        departure.leave(members, departure.broker_id)
        ended = time.monotonic()
    yield what, ended - began
    yield f"{what}, records written", check_order(data_dir, offset, departure.last_record)
    yield f"{what}, heartbeat of another meanwhile", max(waits.beaten)
    yield f"{what}, longest wait for ApiVersions", max(waits.asked)
    if isinstance(broker, OttlaController):
        turns = broker.turns(began, ended)
        cpu_s = sorted(turn.cpu_s for turn in turns) or [NOTED_S]
        yield f"{what}, longest turn of the loop", cpu_s[-1]
        yield f"{what}, longest but for one in a hundred", cpu_s[len(cpu_s) * 99 // 100]
        yield f"{what}, longest turn by the clock", max((turn.wall_s for turn in turns), default=NOTED_S)


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, "nothing: there is one case", arguments, TOPICS)
    measures = [partial(measure, topic_count=options.scale)]
    return rounds.run("scale-fencing", options, measures, PACKAGES, settings=SETTINGS, new_broker=new_controller)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
