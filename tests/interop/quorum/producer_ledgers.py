"""Producers of other makes beside librdkafka's: each writes numbered records and keeps what was acknowledged."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.component.broker.kill_load import PARTITIONS, TIME_LIMIT_S, TOPIC, Placed, numbers_of
from tests.interop import process
from tests.interop.jars import APACHE_KAFKA, classpath
from tests.interop.programs import compiled

CODECS = 5
AIOKAFKA = "aiokafka"


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

    def stop(self) -> None:
        """Send nothing more; do not wait."""
        self._is_over = True

    def finish(self) -> None:
        self.stop()
        self._work.result(TIME_LIMIT_S)


class JavaLedger:
    """The program ProducerLedger. Each of its producers pauses between two records of a partition."""

    def __init__(self, servers: str, output: Path, *, pause_ms: int = 5) -> None:
        self.acknowledged: list[Placed] = []
        self.sent: dict[str, int] = {}
        self._output = output
        path = classpath(APACHE_KAFKA, compiled("4.3.1"))
        arguments = (servers, TOPIC, str(PARTITIONS), str(pause_ms))
        command = process.java(path, "interop.ProducerLedger", *arguments, options=process.QUICK_START)
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


def check_ledgers(records: list[Placed], acknowledged: Iterable[Placed], sent: Mapping[str, int]) -> None:
    """What was acknowledged lies where the leader said; what idempotent producers have sent is there, once and in
    order. `sent` are their names, and how many records each has sent to a partition."""
    found = set(records)
    missing = [each for each in acknowledged if each not in found]
    assert not missing, f"{len(missing)} acknowledged records are missing, such as {missing[0]}"
    numbers = numbers_of(records)
    for name, count in sent.items():
        for partition in range(PARTITIONS):
            assert numbers[name, partition] == list(range(count)), f"{name}, partition {partition}"
