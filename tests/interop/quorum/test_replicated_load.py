"""Producers of three makes write to a partition with three replicas while nodes are killed, paused and stopped.

What was acknowledged with acks=all is there in the end; what idempotent producers have sent, once and in order; all
replicas have the same bytes. The nodes are ottla's, Apache Kafka's, or both: each node is struck while it leads a
partition, and the others, of either kind, follow the leader that comes after it.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.component.broker.kill_load import TOPIC, Load, check, read_log
from tests.interop.node.brokers import APACHE, OTTLA, wanted
from tests.interop.programs import compiled
from tests.interop.quorum.members import MIXED, Quorum, until
from tests.interop.quorum.producer_ledgers import AIOKAFKA, AiokafkaLedger, JavaLedger, check_ledgers

NODES = (1, 2, 3)
LIBRDKAFKA = {
    **{
        f"idempotent-{codec}": {"enable.idempotence": True, "compression.type": codec, "linger.ms": 5}
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    },
    "all": {"acks": "all", "max.in.flight": 1},
    "leader": {"acks": 1, "max.in.flight": 1},
}
PAUSE_S = 0.02
"""Between two records of each: three nodes and their clients share the processors of one machine."""


def kill(quorum: Quorum, number: int) -> None:
    quorum.nodes[number].kill()
    quorum.start(number)


def stop(quorum: Quorum, number: int) -> None:
    quorum.nodes[number].stop()
    quorum.start(number)


def pause(quorum: Quorum, number: int) -> None:
    quorum.pause(number)
    time.sleep(random.Random(number).uniform(1, 4))
    quorum.resume(number)


FAULTS = [(fault, number) for fault in (kill, stop) for number in NODES] + [(pause, 1), (pause, 3)]


def clusters() -> dict[str, dict[int, str]]:
    """Those of one kind that are wanted, and those of both if both are."""
    uniform = {kind: dict.fromkeys(NODES, kind) for kind in wanted() if kind in (OTTLA, APACHE)}
    return uniform | (MIXED if len(uniform) > 1 else {})


@pytest.fixture(params=clusters().values(), ids=clusters())
def quorum(request: pytest.FixtureRequest, apache_jars: Path, tmp_path: Path) -> Quorum:
    compiled("4.3.1")  # which takes a while
    settings = {"min.insync.replicas": 2, "broker.session.timeout.ms": 6_000, "replica.lag.time.max.ms": 10_000}
    return Quorum(tmp_path / "quorum", voters=request.param, **settings)


def test_nothing_acknowledged_is_lost(quorum: Quorum, tmp_path: Path) -> None:
    with quorum:
        servers = quorum.bootstrap_servers
        load = Load(servers, LIBRDKAFKA, replicas=len(NODES), pause_s=PAUSE_S)
        java, aiokafka = JavaLedger(servers, tmp_path / "java.txt"), AiokafkaLedger(servers)
        try:
            until(java.has_started, "the Java producers have written")
            for fault, number in FAULTS:
                load.wait_for(500)
                quorum.elect_preferred(TOPIC)
                assert number in quorum.leaders(TOPIC), "each node leads a partition when it is struck"
                fault(quorum, number)
                quorum.wait_in_sync(TOPIC)
            java.finish()
        finally:
            java.kill()
            aiokafka.stop()
            load.stop()
        aiokafka.finish()
        load.finish()
        records = read_log(servers)
        check(load, records)
        acknowledged = java.acknowledged + aiokafka.acknowledged
        check_ledgers(records, acknowledged, {**java.sent, AIOKAFKA: aiokafka.sent})
        quorum.check_equal_logs(TOPIC)
        quorum.check_health()
