"""A stream whose driver, executors or broker are killed: it goes on, and its tables are those of a run, row by row."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from ottla.client import TopicPartition, group_offsets
from ottla.spark.jobs.tables import TABLES
from tests.interop import process
from tests.interop.pipeline.conftest import (
    FILES,
    NETWORK,
    ON_STANDALONE,
    RECORDS,
    UNCHANGED,
    WORK,
    Cluster,
    Output,
    observe,
    ottla,
    run_pipeline,
    work,
)
from tests.interop.spark.conftest import new_broker
from tests.interop.spark.sessions import plain_environment, standalone_cluster
from tests.interop.spark.share_groups import ShareGroup
from tests.interop.spark.topics import Topics

WAIT_S: Final = 600
POLL_S: Final = 0.05
EXECUTOR: Final = b"CoarseGrainedExecutorBackend"
STEP: Final = "✓ step"


class Stream:
    """`ottla pipeline follow` in a process of its own."""

    def __init__(self, started: subprocess.Popen[bytes], log: Path) -> None:
        self._process = started
        self._log = log

    @property
    def said(self) -> str:
        return self._log.read_text()

    def until(self, is_so: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not is_so():
            assert time.monotonic() < deadline, f"{what} did not come\n{self.said}"
            assert self._process.poll() is None, f"the stream ended before {what}\n{self.said}"
            time.sleep(POLL_S)

    def until_said(self, words: str, times: int = 1) -> None:
        self.until(lambda: self.said.count(words) >= times, words)

    def end(self) -> int:
        return self._process.wait(WAIT_S)


@contextmanager
def following(out: Path, *words: str) -> Iterator[Stream]:
    """A stream; at the end it is killed."""
    command = [sys.executable, "-m", "ottla", "pipeline", "follow", "--out", str(out), *words]
    log = out.with_suffix(".log")
    with log.open("wb") as file:
        started = subprocess.Popen(process.tied(command), start_new_session=True, stderr=file, env=plain_environment())
    try:
        yield Stream(started, log)
    finally:
        process.kill(started)


def assert_same_tables(out: Path, expected: Output) -> None:
    found = Output(out, "")
    for name in TABLES:
        assert found.rows(name) == expected.rows(name), name


def follow_to_the_end(out: Path, *words: str) -> None:
    done = ottla("pipeline", "follow", "--out", str(out), *words, "--once")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("place", [FILES, NETWORK])
def test_the_driver_is_killed(cluster: Cluster, tmp_path: Path, place: str):
    out, source = tmp_path / "stream", cluster.source(place)
    with following(out, *source, "--every", "1s") as stream:
        stream.until(lambda: any(out.glob("events/step=*")), "a step")
    follow_to_the_end(out, *source)
    assert_same_tables(out, run_pipeline(tmp_path / "run", *source))


def test_the_broker_is_killed(kind: str, apache_jars: Path, tmp_path: Path):
    """The stream says that it does not answer, and goes on when it is back."""
    out = tmp_path / "stream"
    with (
        new_broker(kind, tmp_path / "node", **UNCHANGED) as broker,
        closing(Topics(broker.bootstrap_servers)) as topics,
    ):
        topics.create(WORK, partitions=1)
        topics.fill(WORK, 0, RECORDS)
        source = ("--bootstrap", broker.bootstrap_servers)
        _use_groups(topics, 10)
        with following(out, *source, "--every", "1s") as stream:
            stream.until_said(STEP)
            broker.kill()
            stream.until_said("✗ ")
            steps = stream.said.count(STEP)
            broker.start()
            _use_groups(topics, 20)
            stream.until_said(STEP, steps + 1)
            broker.kill()
            broker.start()
        _use_groups(topics, 30)
        follow_to_the_end(out, *source)
        expected = run_pipeline(tmp_path / "run", *source)
    read = {each["name"]: each["rows"] for each in expected.run["inputs"]}
    assert read["commits"] == 3, "the broker has lost nothing"
    assert_same_tables(out, expected)


def _use_groups(topics: Topics, offset: int) -> None:
    """Commits, deliveries of a share group that comes and goes, and samples of both."""
    servers = topics.bootstrap_servers
    topics.client.call(group_offsets.commit, "reader", {TopicPartition(WORK, 0): offset})
    asyncio.run(work(servers, ShareGroup(servers).name))
    observe(servers)


@pytest.mark.parametrize("output", [FILES], indirect=True)
def test_executors_are_killed(cluster: Cluster, output: Output, tmp_path: Path):
    """One while the folds run, the other while lag is computed. Spark starts others, which take over."""
    out = tmp_path / "stream"
    checkpoint = "checkpoint/*/spark"
    with (
        standalone_cluster(tmp_path) as master,
        following(out, "--master", master, *ON_STANDALONE, *cluster.source(FILES), "--once") as stream,
    ):
        stream.until(lambda: any(out.glob(f"{checkpoint}/state/0/[0-9]*/*.*")), "the state of a fold")
        first, second = sorted(_executors(tmp_path))
        os.kill(first, signal.SIGKILL)
        stream.until(lambda: any(out.glob(f"{checkpoint}/commits/0")), "the end of a batch")
        os.kill(second, signal.SIGKILL)
        assert stream.end() == 0, stream.said
    assert_same_tables(out, output)


def _executors(directory: Path) -> Iterator[int]:
    """The executors of the workers whose directories are below this one."""
    for each in Path("/proc").glob("[0-9]*"):
        try:
            is_below = directory in (each / "cwd").readlink().parents
            if is_below and EXECUTOR in (each / "cmdline").read_bytes():
                yield int(each.name)
        except OSError:  # it has ended, or is not ours
            continue
