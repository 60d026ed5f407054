"""A broker of each kind with groups of all kinds, observed for a while, and `ottla pipeline` over it.

The tables are computed from what the broker's files hold, and from what the network gives.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.client import Client
from ottla.client.share import ShareConsumer
from ottla.spark.jobs.tables import TABLES
from ottla.spark.pipeline.tables import dataset_of, table_path
from tests.interop.spark.conftest import Broker, new_broker
from tests.interop.spark.group_history import LONG_SESSIONS, let_go, make_history
from tests.interop.spark.sessions import plain_environment
from tests.interop.spark.share_groups import ShareGroup
from tests.interop.spark.topics import Topics

FILES, NETWORK = "files", "network"
WORK = "work"
RECORDS = 60
POISON = (7, 32)
RUN_TIMEOUT_S = 600
OBSERVE_S = 6
POLLS = 200
LATER_SNAPSHOTS = (
    "share.coordinator.cold.partition.snapshot.interval.ms",
    "share.coordinator.state.topic.prune.interval.ms",
)
UNCHANGED = dict.fromkeys([*LONG_SESSIONS, *LATER_SNAPSHOTS], "3600000")
"""Nobody leaves, and share state is neither written again nor removed, while tests compare what two of them saw."""

ON_STANDALONE = [
    word
    for setting in (
        "spark.executor.memory=600m",
        "spark.cores.max=2",
        "spark.driver.host=127.0.0.1",
        "spark.driver.bindAddress=127.0.0.1",
    )
    for word in ("--conf", setting)
]
"""The words of the command line for a standalone cluster of Spark."""


class Cluster(NamedTuple):
    broker: Broker
    topics: Topics
    share_group: str
    """Its one topic is WORK: every third record was released once, POISON always, record 10 rejected."""

    def source(self, place: str) -> list[str]:
        """The words of the command line that name it."""
        if place == FILES:
            return ["--from-log", str(self.broker.data_dir)]
        return ["--bootstrap", self.broker.bootstrap_servers]


class Output(NamedTuple):
    path: Path
    said: str

    @property
    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "run.json").read_text())
        return found

    def rows(self, name: str) -> list[dict[str, Any]]:
        data = dataset_of(table_path(self.path, name))
        rows: list[dict[str, Any]] = [] if data is None else data.to_table().to_pylist()
        return sorted(rows, key=lambda row: [str(row[key]) for key in TABLES[name].key])


def ottla(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ottla", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False, env=plain_environment()
    )


def run_pipeline(out: Path, *words: str) -> Output:
    done = ottla("pipeline", "run", "--out", str(out), *words)
    assert done.returncode == 0, done.stderr
    return Output(out, done.stdout + done.stderr)


@pytest.fixture(scope="session")
def cluster(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with new_broker(kind, tmp_path_factory.mktemp(f"{kind}-pipeline"), **UNCHANGED) as broker:
        topics = Topics(broker.bootstrap_servers)
        make_history(topics)
        group = ShareGroup(broker.bootstrap_servers)
        topics.create(WORK, partitions=1)
        topics.fill(WORK, 0, RECORDS)
        asyncio.run(work(broker.bootstrap_servers, group.name))
        observe(broker.bootstrap_servers)
        yield Cluster(broker, topics, group.name)
        let_go()
        topics.close()


def observe(servers: str) -> None:
    """Let an observer write samples for some seconds."""
    done = ottla("observe", "--bootstrap", servers, "--for", f"{OBSERVE_S}s", "--every", "1s")
    assert done.returncode == 0, done.stderr


async def work(servers: str, group: str) -> None:
    """Deliver all records of WORK to a share group, as `Cluster.share_group` says."""
    settled: set[int] = set()
    async with (
        Client(servers) as client,
        ShareConsumer(client, group, [WORK], acknowledgement="explicit") as consumer,
    ):
        for _ in range(POLLS):
            for acquired in await consumer.poll(500):
                for record in acquired.records():
                    is_last = record.delivery_count == 5
                    if record.offset in POISON or (record.offset % 3 == 0 and record.delivery_count == 1):
                        consumer.release(record)
                        settled |= {record.offset} if is_last else set()
                        continue
                    (consumer.reject if record.offset == 10 else consumer.accept)(record)
                    settled.add(record.offset)
            await consumer.commit()
            if len(settled) == RECORDS:
                return
    raise AssertionError(f"settled {len(settled)} of {RECORDS}")


@pytest.fixture(scope="session", params=[FILES, NETWORK])
def output(request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Output:
    """Tables from the broker's files, or over the network."""
    return run_pipeline(tmp_path_factory.mktemp("out"), *cluster.source(request.param))


@pytest.fixture
def pipeline(tmp_path: Path) -> Callable[..., Output]:
    """Runs the pipeline into a directory of the test's own."""
    return lambda *words: run_pipeline(tmp_path / "out", *words)
