"""How long nobody answers: three nodes of ottla and three of Apache Kafka 4.3.1, of which one is killed.

    python -m benchmarks.quorum.bench_failover [--quick] [--rounds 3] [--only TEXT] [--brokers ottla] [--out FILE]

A node is killed with SIGKILL, and a client that asks all others every five milliseconds measures the time from then to
the first good answer: to a produce with acks=all after the loss of the node that led the partition and the quorum, or
of a follower; to a member's heartbeat, to a commit of offsets, and to a write of a share group's state after the loss
of the coordinator. Time-outs are the defaults of Apache Kafka at both. Each round starts every cluster anew in an empty
directory, and kills some nodes one after the other. A ratio says how many times ottla's
figure Apache Kafka's is, so above 1 ottla does better. Java and Maven are needed.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import rounds
from benchmarks.broker.raw import RawClient
from benchmarks.quorum.three_nodes import NODES, ThreeNodes
from benchmarks.rounds import Figures
from benchmarks.runner import Size
from ottla.wire import uuid_text
from ottla.wire.batch import Record, build_batch
from ottla.wire.types import (
    ConsumerGroupHeartbeatRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
    ShareGroupHeartbeatRequest,
)
from tests.unit.broker.share_state_requests import initialize, write

PACKAGES = ("msgspec",)
INTERNAL = ("offsets.topic", "share.coordinator.state.topic")
SETTINGS = {
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "9000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "45000",
    "group.share.session.timeout.ms": "45000",
    "min.insync.replicas": "2",
    "share.coordinator.state.topic.min.isr": "2",
    **{f"{name}.replication.factor": str(len(NODES)) for name in INTERNAL},
    **{f"{name}.num.partitions": "1" for name in INTERNAL},
}
GROUP, SHARE_GROUP, MEMBER, TOPIC = "billing", "risk-checks", "member-1", "orders"
OF_GROUPS, OF_SHARE_STATE = 0, 2
PAUSE_S = 0.005
PATIENCE_S = 60.0


class Scale(NamedTuple):
    kills: int


SCALES = {Size.FULL: Scale(5), Size.QUICK: Scale(2), Size.SMOKE: Scale(1)}


NodeOf = Callable[[Any], int]
"""The id of the node that an answer names, or -1."""


class Asker:
    """Asks all nodes who is responsible, and then that one, until an answer is good."""

    def __init__(self, cluster: ThreeNodes, wanted: object, version: int, node_of: NodeOf) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._version = version
        self._node_of = node_of
        self.node = -1
        """The node that was asked last."""

    def ask(self, request: object, version: int, code_of: Callable[[Any], int]) -> Any:  # noqa: ANN401
        deadline_s, answer = time.monotonic() + PATIENCE_S, None
        while time.monotonic() < deadline_s:
            for number in NODES:
                self.node = self._found_by(number)
                answer = self._answer(self.node, request, version)
                if answer is not None and not code_of(answer):
                    return answer
            time.sleep(PAUSE_S)
        raise TimeoutError(f"{type(request).__name__} has no good answer, the last was {answer}")

    def _found_by(self, number: int) -> int:
        answer = self._answer(number, self._wanted, self._version)
        return -1 if answer is None else self._node_of(answer)

    def _answer(self, number: int, request: object, version: int) -> Any:  # noqa: ANN401
        if number not in self._cluster.ports:
            return None
        try:
            with closing(RawClient(self._cluster.ports[number])) as client:
                return client.call(request, version)
        except OSError:
            return None


def coordinator(cluster: ThreeNodes, key: str, key_type: int) -> Asker:
    def node_of(answer: Any) -> int:  # noqa: ANN401
        (found,) = answer.coordinators
        return -1 if found.error_code else int(found.node_id)

    return Asker(cluster, FindCoordinatorRequest("", key_type, (key,)), 6, node_of)


def leader(cluster: ThreeNodes, topic: str) -> Asker:
    def node_of(answer: Any) -> int:  # noqa: ANN401
        return int(answer.topics[0].partitions[0].leader_id)

    wanted = MetadataRequest((MetadataRequest.MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
    return Asker(cluster, wanted, 9, node_of)


def error_code(answer: Any) -> int:  # noqa: ANN401
    return int(answer.error_code)


def commit_code(answer: Any) -> int:  # noqa: ANN401
    return int(answer.topics[0].partitions[0].error_code)


def produce_code(answer: Any) -> int:  # noqa: ANN401
    return int(answer.responses[0].partition_responses[0].error_code)


def state_code(answer: Any) -> int:  # noqa: ANN401
    return int(answer.results[0].partitions[0].error_code)


def seconds_after_loss(cluster: ThreeNodes, number: int, answered: Callable[[], object]) -> float:
    """The time from the kill of a node to an answer; then the node is brought back."""
    began_s = time.perf_counter()
    cluster.kill(number)
    answered()
    taken_s = time.perf_counter() - began_s
    cluster.restart(number)
    return taken_s


def after_losses(cluster: ThreeNodes, asker: Asker, kills: int, answered: Callable[[], object]) -> float:
    """The median for the node that was asked last."""
    return statistics.median(seconds_after_loss(cluster, asker.node, answered) for _ in range(kills))


def measure_partition(cluster: ThreeNodes, scale: Scale) -> Figures:
    """Each time with a new topic, which the leader of the quorum leads."""
    of_leader, of_follower = [], []
    for number in range(scale.kills):
        of_leader.append(after_loss_of(cluster, f"leader-{number}", 0))
        of_follower.append(after_loss_of(cluster, f"follower-{number}", 1))
    yield "a produce after the loss of the leader of partition and quorum", statistics.median(of_leader)
    yield "a produce after the loss of a follower", statistics.median(of_follower)


def after_loss_of(cluster: ThreeNodes, topic: str, position: int) -> float:
    """Kill the node at a position among the replicas, of which the first leads."""
    first = cluster.quorum_leader()
    cluster.make_topic(topic, first=first)
    data = ProduceRequest.PartitionProduceData(0, build_batch([Record(0, int(time.time() * 1000), None, b"x")]))
    of_topic = ProduceRequest.TopicProduceData(name=topic, partition_data=(data,))
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=(of_topic,))
    asker = leader(cluster, topic)
    asker.ask(request, 9, produce_code)
    killed = cluster.replicas(first)[position]
    return seconds_after_loss(cluster, killed, lambda: asker.ask(request, 9, produce_code))


def measure_group(cluster: ThreeNodes, scale: Scale) -> Figures:
    asker = coordinator(cluster, GROUP, OF_GROUPS)
    beat = partial(ConsumerGroupHeartbeatRequest, GROUP, MEMBER)
    joined = asker.ask(
        beat(0, rebalance_timeout_ms=60_000, subscribed_topic_names=(TOPIC,), topic_partitions=()), 1, error_code
    )
    kind = OffsetCommitRequest
    topic = kind.OffsetCommitRequestTopic(TOPIC, partitions=(kind.OffsetCommitRequestPartition(0, 1),))
    commit = kind(GROUP, joined.member_epoch, MEMBER, topics=(topic,))
    steady = beat(joined.member_epoch)
    yield (
        "a member's heartbeat after the loss of its coordinator",
        after_losses(cluster, asker, scale.kills, lambda: asker.ask(steady, 1, error_code)),
    )
    asker.ask(commit, 9, commit_code)
    yield (
        "a commit of offsets after the loss of the coordinator",
        after_losses(cluster, asker, scale.kills, lambda: asker.ask(commit, 9, commit_code)),
    )


def measure_share(cluster: ThreeNodes, scale: Scale) -> Figures:
    asker = coordinator(cluster, SHARE_GROUP, OF_GROUPS)
    beat = partial(ShareGroupHeartbeatRequest, SHARE_GROUP, MEMBER)
    joined = asker.ask(beat(0, subscribed_topic_names=(TOPIC,)), 1, error_code)
    steady = beat(joined.member_epoch)
    yield (
        "a share member's heartbeat after the loss of its coordinator",
        after_losses(cluster, asker, scale.kills, lambda: asker.ask(steady, 1, error_code)),
    )


def measure_share_state(cluster: ThreeNodes, scale: Scale) -> Figures:
    topic_id = cluster.make_topic("payments")
    asker = coordinator(cluster, f"{SHARE_GROUP}:{uuid_text(topic_id)}:0", OF_SHARE_STATE)
    asker.ask(initialize(topic_id, start=0, group=SHARE_GROUP), 0, state_code)
    request = write(topic_id, (0, 9, 2, 1), group=SHARE_GROUP)
    asker.ask(request, 0, state_code)
    yield (
        "a write of a share group's state after the loss of its coordinator",
        after_losses(cluster, asker, scale.kills, lambda: asker.ask(request, 0, state_code)),
    )


PARTS: dict[str, Callable[[ThreeNodes, Scale], Figures]] = {
    "partition": measure_partition,
    "group": measure_group,
    "share group": measure_share,
    "state of share groups": measure_share_state,
}


def measure_all(cluster: ThreeNodes, _: Path, options: argparse.Namespace) -> Figures:
    cluster.exec()
    cluster.make_topic(TOPIC)
    yield from rounds.run_parts(PARTS, options, cluster, options.scale)


def new_cluster(name: str, directory: Path, _settings: Mapping[str, str] | None, _bytecode: Path | None) -> ThreeNodes:
    return ThreeNodes(name, directory, SETTINGS)


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, f"part of one of: {'; '.join(PARTS)}", arguments, SCALES)
    measure = partial(measure_all, options=options)
    return rounds.run("failover", options, [measure], PACKAGES, new_broker=new_cluster)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
