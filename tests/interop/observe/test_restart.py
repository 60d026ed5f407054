"""The cluster is killed and comes back while it is observed: the hole is told, and nothing that was seen is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.client import Client, TopicPartition
from ottla.client.group_offsets import commit
from ottla.health.facts import Group, Quorum
from ottla.health.samples import OBSERVATIONS, UNREACHABLE, Sample
from ottla.observe import read_files, read_topic
from tests.interop.node.brokers import Node
from tests.interop.observe.watching import Watched
from tests.interop.spark import group_history as history
from tests.interop.spark.topics import Topics

DOWN_S = 12
LONGEST_PAUSE_S = 2
LOOKING_MS = 3_000
"""A sample has the time at which its look began, which may be so long before it failed."""
TIMEOUT_S = 120


class Observing:
    """`ottla observe` as a program."""

    def __init__(self, servers: str, log: Path, *words: str) -> None:
        self._log = log
        command = [sys.executable, "-m", "ottla", "observe", "--bootstrap", servers, "--rules", *words]
        with log.open("w") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    def until_said(self, text: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while text not in self.said:
            assert time.monotonic() < deadline, f"{text!r} was never said:\n{self.said}"
            assert self._process.poll() is None, self.said
            time.sleep(0.1)

    @property
    def said(self) -> str:
        return self._log.read_text()

    def terminate(self) -> int:
        self._process.terminate()
        return self._process.wait(TIMEOUT_S)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(TIMEOUT_S)


@pytest.fixture
def observing(tmp_path: Path) -> Iterator[Callable[..., Observing]]:
    started: list[Observing] = []

    def start(servers: str, *words: str) -> Observing:
        pause = ("--backoff-max", f"{LONGEST_PAUSE_S}s")
        started.append(Observing(servers, tmp_path / f"observe-{len(started)}.log", *pause, *words))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def hole(samples: list[Sample], kind: str) -> tuple[int, int]:
    times = [each.ts for each in samples if each.kind == kind and each.error == UNREACHABLE]
    return times[0], times[-1]


@pytest.mark.parametrize("where", ["topic", "files"])
def test_a_cluster_that_is_killed_and_comes_back(
    where: str, boot: Callable[..., Node], observing: Callable[..., Observing], tmp_path: Path
):
    node = boot()
    topics = Topics(node.bootstrap_servers)
    topics.create(history.TOPIC, partitions=2)
    topics.client.call(_commit)
    words = ("--to-topic", OBSERVATIONS) if where == "topic" else ("--to", str(tmp_path / "samples"))
    observer = observing(node.bootstrap_servers, *words)
    observer.until_said("single-voter")
    time.sleep(3)
    killed_ms = time.time_ns() // 1_000_000
    node.kill()
    time.sleep(DOWN_S)
    node.start()
    served_ms = time.time_ns() // 1_000_000
    observer.until_said("the cluster is reachable again")
    observer.until_said("quorum-leader-changed")
    time.sleep(5)
    assert observer.terminate() == 143
    samples = _read(node.bootstrap_servers, where, tmp_path / "samples")
    assert [each.seq for each in sorted(samples, key=lambda each: each.seq)] == list(range(len(samples)))
    assert sum(each.dropped for each in samples) == 0
    for kind in ("cluster", "quorum", "group"):
        first_ms, last_ms = hole(samples, kind)
        assert killed_ms - LOOKING_MS <= first_ms <= killed_ms + 5_000
        assert killed_ms + DOWN_S * 1000 - 4_000 <= last_ms <= served_ms + 1000 * (LONGEST_PAUSE_S + 3)
    watched = Watched(samples)
    epochs = [each.leader_epoch for each in watched.facts(Quorum)]
    assert epochs == sorted(epochs)
    assert epochs[-1] > epochs[0]
    assert len([each for each in watched.facts(Group) if each.group == history.SIMPLE]) >= 2  # again after the hole
    found = {each.rule: each for each in watched.judged().findings()}
    assert set(found) == {"single-voter", "node-unreachable", "quorum-leader-changed"}
    unreachable = found["node-unreachable"]
    assert killed_ms - LOOKING_MS <= unreachable.since_ms <= killed_ms + 5_000
    topics.close()


async def _commit(client: Client) -> None:
    await commit(client, history.SIMPLE, {TopicPartition(history.TOPIC, 0): 0})


def _read(servers: str, where: str, directory: Path) -> list[Sample]:
    if where == "files":
        return list(read_files(directory))

    async def read() -> list[Sample]:
        async with Client(servers) as client:
            return await read_topic(client, OBSERVATIONS)

    return asyncio.run(read())
