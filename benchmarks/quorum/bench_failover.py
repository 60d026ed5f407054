"""How long nobody coordinates: three nodes of ottla and three of Apache Kafka 4.3.1, of which one is killed.

    python -m benchmarks.quorum.bench_failover [--quick] [--rounds 3] [--only TEXT] [--brokers ottla] [--out FILE]

The node that coordinates a group, or the state of a share group, is killed with SIGKILL. A client that asks all others
every five milliseconds measures the time from then to the first good answer: to a member's heartbeat, to a commit of
offsets, and to a write of a share group's state. Time-outs are the defaults of Apache Kafka at both. Each round starts
every cluster anew in an empty directory, and kills some nodes one after the other. A ratio says how many times ottla's
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
from ottla.wire.types import (
    ConsumerGroupHeartbeatRequest,
    FindCoordinatorRequest,
    OffsetCommitRequest,
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


class Asker:
    """Asks for the coordinator of a key, and then that one, until an answer is good."""

    def __init__(self, cluster: ThreeNodes, key: str, key_type: int) -> None:
        self._cluster = cluster
        self._wanted = FindCoordinatorRequest("", key_type, (key,))
        self.coordinator = -1

    def ask(self, request: object, version: int, code_of: Callable[[Any], int]) -> Any:  # noqa: ANN401
        deadline_s, answer = time.monotonic() + PATIENCE_S, None
        while time.monotonic() < deadline_s:
            for number in NODES:
                self.coordinator = self._found_by(number)
                answer = self._answer(self.coordinator, request, version)
                if answer is not None and not code_of(answer):
                    return answer
            time.sleep(PAUSE_S)
        raise TimeoutError(f"{type(request).__name__} has no good answer, the last was {answer}")

    def _found_by(self, number: int) -> int:
        answer = self._answer(number, self._wanted, 6)
        return -1 if answer is None or answer.coordinators[0].error_code else int(answer.coordinators[0].node_id)

    def _answer(self, number: int, request: object, version: int) -> Any:  # noqa: ANN401
        if number not in self._cluster.ports:
            return None
        try:
            with closing(RawClient(self._cluster.ports[number])) as client:
                return client.call(request, version)
        except OSError:
            return None


def error_code(answer: Any) -> int:  # noqa: ANN401
    return int(answer.error_code)


def commit_code(answer: Any) -> int:  # noqa: ANN401
    return int(answer.topics[0].partitions[0].error_code)


def state_code(answer: Any) -> int:  # noqa: ANN401
    return int(answer.results[0].partitions[0].error_code)


def seconds_after_loss(cluster: ThreeNodes, asker: Asker, kills: int, answered: Callable[[], object]) -> float:
    """The median time from the kill of the coordinator that was asked last to an answer; then it is brought back."""
    taken = []
    for _ in range(kills):
        killed = asker.coordinator
        began_s = time.perf_counter()
        cluster.kill(killed)
        answered()
        taken.append(time.perf_counter() - began_s)
        cluster.restart(killed)
    return statistics.median(taken)


def measure_group(cluster: ThreeNodes, scale: Scale) -> Figures:
    asker = Asker(cluster, GROUP, OF_GROUPS)
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
        seconds_after_loss(cluster, asker, scale.kills, lambda: asker.ask(steady, 1, error_code)),
    )
    asker.ask(commit, 9, commit_code)
    yield (
        "a commit of offsets after the loss of the coordinator",
        seconds_after_loss(cluster, asker, scale.kills, lambda: asker.ask(commit, 9, commit_code)),
    )


def measure_share(cluster: ThreeNodes, scale: Scale) -> Figures:
    asker = Asker(cluster, SHARE_GROUP, OF_GROUPS)
    beat = partial(ShareGroupHeartbeatRequest, SHARE_GROUP, MEMBER)
    joined = asker.ask(beat(0, subscribed_topic_names=(TOPIC,)), 1, error_code)
    steady = beat(joined.member_epoch)
    yield (
        "a share member's heartbeat after the loss of its coordinator",
        seconds_after_loss(cluster, asker, scale.kills, lambda: asker.ask(steady, 1, error_code)),
    )


def measure_share_state(cluster: ThreeNodes, scale: Scale) -> Figures:
    topic_id = cluster.make_topic("payments")
    asker = Asker(cluster, f"{SHARE_GROUP}:{uuid_text(topic_id)}:0", OF_SHARE_STATE)
    asker.ask(initialize(topic_id, start=0, group=SHARE_GROUP), 0, state_code)
    request = write(topic_id, (0, 9, 2, 1), group=SHARE_GROUP)
    asker.ask(request, 0, state_code)
    yield (
        "a write of a share group's state after the loss of its coordinator",
        seconds_after_loss(cluster, asker, scale.kills, lambda: asker.ask(request, 0, state_code)),
    )


PARTS: dict[str, Callable[[ThreeNodes, Scale], Figures]] = {
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
