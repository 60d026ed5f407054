"""Producers of three makes write to a partition with three replicas while nodes are killed, paused and stopped.

What was acknowledged with acks=all is there in the end; what idempotent producers have sent, once and in order; all
replicas have the same bytes. Apache Kafka shows that the test asks for no more than Kafka promises.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ottla.wire.types import MetadataRequest
from tests.component.broker.kill_load import PARTITIONS, TIME_LIMIT_S, TOPIC, Load, Placed, check, numbers_of, read_log
from tests.interop import process
from tests.interop.apache import dump_log
from tests.interop.jars import APACHE_KAFKA, classpath
from tests.interop.programs import compiled
from tests.interop.quorum.members import Quorum, ask, until

NODES = (1, 2, 3)
ROUNDS = 2
CODECS = 5
AIOKAFKA = "aiokafka"
LIBRDKAFKA = {
    **{
        f"idempotent-{codec}": {"enable.idempotence": True, "compression.type": codec, "linger.ms": 5}
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    },
    "all": {"acks": "all", "max.in.flight": 1},
    "leader": {"acks": 1, "max.in.flight": 1},
}


class AiokafkaLedger:
    """An idempotent producer of aiokafka, which waits for each answer."""

    def __init__(self, servers: str) -> None:
        self.acknowledged: list[Placed] = []
        self.sent = 0
        self._servers = servers
        self._is_over = False
        self._work = ThreadPoolExecutor(1).submit(lambda: asyncio.run(self._produce()))

    async def _produce(self) -> None:
        from aiokafka import AIOKafkaProducer

        servers = self._servers
        async with AIOKafkaProducer(
            bootstrap_servers=servers, enable_idempotence=True, request_timeout_ms=TIME_LIMIT_S * 1000
        ) as producer:
            while not self._is_over:
                for partition in range(PARTITIONS):
                    value = f"{AIOKAFKA} {self.sent}".encode()
                    at = await producer.send_and_wait(TOPIC, value, partition=partition)
                    self.acknowledged.append(Placed(partition, at.offset, value))
                self.sent += 1

    def finish(self) -> None:
        self._is_over = True
        self._work.result(TIME_LIMIT_S)


class JavaLedger:
    """The program ProducerLedger."""

    def __init__(self, servers: str, output: Path) -> None:
        self.acknowledged: list[Placed] = []
        self.sent: dict[str, int] = {}
        self._output = output
        path = classpath(APACHE_KAFKA, compiled("4.3.1"))
        command = process.java(path, "interop.ProducerLedger", servers, TOPIC, str(PARTITIONS))
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                process.tied(command), stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT
            )

    def has_started(self) -> bool:
        """Whether all of its producers have written something.

        A new leader that knows nothing of a producer takes the first batch that comes, and if that is not its first
        one, refuses the first for ever. That is Kafka's protocol, and not what is tested here.
        """
        return self._output.read_text().count("started java-") == CODECS

    def finish(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(TIME_LIMIT_S)
        text = self._output.read_text()
        assert code == 0, text[-2_000:]
        for line in text.splitlines():
            words = line.split()
            if len(words) == 3 and words[0] == "sent":
                self.sent[words[1]] = int(words[2])
            elif len(words) == 4 and words[0].startswith("java-"):
                name, partition, offset, number = words
                self.acknowledged.append(Placed(int(partition), int(offset), f"{name} {number}".encode()))

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()


def partitions_at(quorum: Quorum, number: int) -> list[Any]:
    """The partitions as a node knows them."""
    topic = MetadataRequest.MetadataRequestTopic(name=TOPIC)
    request = MetadataRequest((topic,), allow_auto_topic_creation=False)
    (found,) = ask(quorum.nodes[number].bootstrap_servers, request, 12).topics
    return list(found.partitions)


def leader_of(quorum: Quorum) -> int:
    return int(partitions_at(quorum, NODES[0])[0].leader_id)


def all_in_sync(quorum: Quorum) -> bool:
    isrs = [[set(each.isr_nodes) for each in partitions_at(quorum, number)] for number in NODES]
    return isrs == [[set(NODES)] * PARTITIONS] * len(NODES)


def kill(quorum: Quorum, number: int) -> None:
    quorum.nodes[number].kill()
    quorum.start(number)


def stop(quorum: Quorum, number: int) -> None:
    quorum.nodes[number].stop()
    quorum.start(number)


def pause(quorum: Quorum, number: int) -> None:
    pid = quorum.nodes[number].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    time.sleep(random.Random(number).uniform(1, 4))
    os.kill(pid, signal.SIGCONT)


@pytest.fixture
def quorum(kind: str, apache_jars: Path, tmp_path: Path) -> Quorum:
    compiled("4.3.1")  # which takes a while
    settings = {"min.insync.replicas": 2, "broker.session.timeout.ms": 6_000, "replica.lag.time.max.ms": 10_000}
    return Quorum(tmp_path / "quorum", voters=dict.fromkeys(NODES, kind), **settings)


def test_nothing_acknowledged_is_lost(quorum: Quorum, tmp_path: Path) -> None:
    with quorum:
        servers = ",".join(node.bootstrap_servers for node in quorum.nodes.values())
        load = Load(servers, LIBRDKAFKA, replicas=len(NODES))
        java, aiokafka = JavaLedger(servers, tmp_path / "java.txt"), AiokafkaLedger(servers)
        try:
            until(java.has_started, "the Java producers have written")
            for fault in (kill, pause, stop) * ROUNDS:
                load.wait_for(500)
                fault(quorum, leader_of(quorum))
                until(lambda: all_in_sync(quorum), f"all in sync after {fault.__name__}")
            java.finish()
        finally:
            java.kill()
        aiokafka.finish()
        load.finish()
        records = read_log(servers)
        check(load, records)
        found = set(records)
        assert [each for each in java.acknowledged + aiokafka.acknowledged if each not in found] == []
        numbers = numbers_of(records)
        for name, sent in {**java.sent, AIOKAFKA: aiokafka.sent}.items():
            for partition in range(PARTITIONS):
                assert numbers[name, partition] == list(range(sent)), f"{name}, partition {partition}"
        until(lambda: all_in_sync(quorum), "all in sync")
        for partition in range(PARTITIONS):
            equal_logs(quorum, partition)
        quorum.check_health()


def equal_logs(quorum: Quorum, partition: int) -> None:
    paths = [node.data_dir / f"{TOPIC}-{partition}" / "00000000000000000000.log" for node in quorum.nodes.values()]
    assert len({path.read_bytes() for path in paths}) == 1
    assert "baseOffset: 0 " in dump_log(paths[0])
