"""Chores by the clock: what they write, remove and compact, and that long work leaves room for others."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.loop.clock import ShiftedClock
from ottla.broker.loop.cooperative_tasks import REST_FACTOR, SLICE_SECONDS, URGENT_REST_FACTOR, CooperativeTasks
from ottla.broker.loop.offload import Offload
from ottla.core.metadata.context import Result
from ottla.log.checkpoint import parse_offsets
from ottla.wire.keyed import Versioned
from ottla.wire.types import DeleteRecordsRequest, DeleteTopicsRequest
from ottla.wire.types.cluster_metadata import ConfigRecord
from tests.unit.broker.raw_client import RunningNode, Topic, batch, batches, running_node

HOUR_MS = 3_600_000


class Timed:
    """A node whose time passes when a test says so."""

    def __init__(self, running: RunningNode, clock: ShiftedClock, directory: Path) -> None:
        self.running = running
        self.node = running.node
        self.client = running.client
        self.directory = directory
        self._clock = clock

    def later(self, ms: int) -> None:
        """Let time pass, and everything happen that is due then."""
        self.running.change(lambda: self._pass(ms))

    def _pass(self, ms: int) -> None:
        self._clock.shift_ms += ms
        self.node.housekeeping.run_due()
        self.node.cooperative_tasks.run_for(20)
        self.node.offload.finish_all()

    def checkpoint(self, name: str) -> dict[Any, int]:
        return dict(parse_offsets((self.directory / name).read_bytes()))

    def partition(self, topic: Topic) -> Path:
        return self.directory / f"{topic.name}-0"


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[Timed]:
    clock = ShiftedClock()
    with running_node(tmp_path, clock, connections_max_idle_ms=10**12) as running:
        yield Timed(running, clock, tmp_path)


def fill(timed: Timed, topic: Topic, rounds: int, **header: Any) -> None:
    """Large batches, so that segments of a megabyte are full after two."""
    for _ in range(rounds):
        assert timed.client.produce(topic, batch(bytes(600_000), **header)).error_code == 0


# --- checkpoints and syncs --------------------------------------------------------------------------------------------


def test_high_watermarks_are_noted_every_few_seconds(timed: Timed):
    topic = timed.client.topic()
    timed.client.produce(topic, batch(b"a", b"b"))
    timed.later(5_001)
    assert timed.checkpoint("replication-offset-checkpoint") == {(topic.name, 0): 2}
    timed.client.produce(topic, batch(b"c"))
    timed.later(5_001)
    assert timed.checkpoint("replication-offset-checkpoint") == {(topic.name, 0): 3}


def test_a_checkpoint_that_would_stay_the_same_is_not_written(timed: Timed):
    timed.client.produce(timed.client.topic(), batch(b"a"))
    timed.later(5_001)
    path = timed.directory / "replication-offset-checkpoint"
    path.unlink()
    timed.later(5_001)
    assert not path.exists()


def test_closed_segments_are_synced_and_noted(timed: Timed):
    topic = timed.client.topic(segment_bytes=1 << 20)
    fill(timed, topic, 3)
    timed.later(61_000)
    timed.later(61_000)
    assert timed.checkpoint("recovery-point-offset-checkpoint") == {(topic.name, 0): 3}


def test_a_raised_log_start_is_noted(timed: Timed):
    topic = timed.client.topic()
    timed.client.produce(topic, batch(b"a", b"b", b"c"))
    kind = DeleteRecordsRequest
    wanted = kind.DeleteRecordsTopic(topic.name, (kind.DeleteRecordsPartition(0, 2),))
    timed.client.ask(kind((wanted,), 5_000), 2)
    timed.later(61_000)
    assert timed.checkpoint("log-start-offset-checkpoint") == {(topic.name, 0): 2}


def test_flush_ms_is_kept(timed: Timed):
    topic = timed.client.topic(flush_ms=2_000)
    timed.client.produce(topic, batch(b"a"))
    log = timed.node.replicas.by_key[topic.name, 0].log
    timed.later(1_000)
    assert log.recovery_point == 0
    timed.later(1_500)
    assert log.recovery_point == 1


# --- retention, removal and compaction --------------------------------------------------------------------------------


def test_retention_removes_old_segments_and_their_files_later(timed: Timed):
    now_ms = timed.node.clock.wall_ms()
    topic = timed.client.topic(segment_bytes=1 << 20, retention_ms=HOUR_MS, file_delete_delay_ms=60_000)
    fill(timed, topic, 3, timestamp=now_ms - 2 * HOUR_MS)
    fill(timed, topic, 1, timestamp=now_ms)
    timed.later(301_000)
    files = sorted(path.name for path in timed.partition(topic).glob("*.log*"))
    assert [name for name in files if name.endswith(".deleted")]
    log = timed.node.replicas.by_key[topic.name, 0].log
    assert log.log_start_offset == 3
    assert timed.client.fetch(topic, offset=0).error_code == 1, "what is gone is out of range"
    timed.later(61_000)
    timed.later(61_000)
    assert not list(timed.partition(topic).glob("*.deleted"))


def test_a_deleted_topics_directory_goes_after_a_while(timed: Timed):
    topic = timed.client.topic()
    timed.client.produce(topic, batch(b"a"))
    timed.client.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(topic.name),)), 6)
    timed.later(1_001)
    assert len(list(timed.directory.glob("*-delete"))) == 1
    timed.later(61_000)
    assert not list(timed.directory.glob("*-delete"))


def test_compaction_keeps_the_last_value_of_each_key(timed: Timed):
    topic = timed.client.topic(
        cleanup_policy="compact", segment_bytes=1 << 20, min_cleanable_dirty_ratio=0.01, min_compaction_lag_ms=0
    )
    for number in range(4):
        timed.client.produce(topic, batch(b"x" * 600_000 + bytes([number]), keys=[b"k"]))
    timed.client.produce(topic, batch(b"end", keys=[b"other"]))
    timed.later(16_000)
    (first,) = batches(timed.client.fetch(topic))
    assert first.base_offset == 2, "older values of the key are gone; the newest lies in the active segment"
    assert [one.base_offset for one in batches(timed.client.fetch(topic, offset=3))] == [3, 4]
    assert timed.checkpoint("cleaner-offset-checkpoint")[topic.name, 0] > 0


def test_compaction_can_be_switched_off(tmp_path: Path):
    clock = ShiftedClock()
    with running_node(tmp_path, clock, log_cleaner_enable=False) as running:
        timed = Timed(running, clock, tmp_path)
        topic = timed.client.topic(cleanup_policy="compact", segment_bytes=1 << 20, min_cleanable_dirty_ratio=0.01)
        for _ in range(4):
            timed.client.produce(topic, batch(b"x" * 600_000, keys=[b"k"]))
        timed.later(16_000)
        assert not (tmp_path / "cleaner-offset-checkpoint").exists()


def test_producers_that_were_silent_for_a_day_are_forgotten(timed: Timed):
    topic = timed.client.topic()
    header = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    timed.client.produce(topic, batch(b"a", timestamp=timed.node.clock.wall_ms(), **header))
    log = timed.node.replicas.by_key[topic.name, 0].log
    timed.later(HOUR_MS)
    assert not log.producers.is_empty
    timed.later(25 * HOUR_MS)
    assert log.producers.is_empty


# --- the metadata -----------------------------------------------------------------------------------------------------


def snapshots(timed: Timed) -> list[int]:
    ends = [int(path.name[:20]) for path in (timed.directory / "__cluster_metadata-0").glob("*-*.checkpoint")]
    return sorted(end for end in ends if end > 0)


def test_the_metadata_is_snapshotted_every_hour_if_it_has_changed(timed: Timed):
    timed.client.topic()
    timed.later(HOUR_MS + 1_000)
    assert len(snapshots(timed)) == 1
    timed.later(HOUR_MS + 1_000)
    assert len(snapshots(timed)) == 1, "nothing has changed"
    timed.client.topic()
    timed.later(HOUR_MS + 1_000)
    assert len(snapshots(timed)) == 2


def test_old_snapshots_go_with_the_log_below_the_next_one(tmp_path: Path):
    clock = ShiftedClock()
    settings = {"metadata.log.segment.bytes": 8 << 20, "metadata.max.retention.bytes": 1 << 20}
    with running_node(tmp_path, clock, **settings) as running:
        timed = Timed(running, clock, tmp_path)
        value = "x" * 30_000

        def grow() -> None:
            records = tuple(Versioned(ConfigRecord(4, "", f"k{number}", value), 0) for number in range(100))
            running.node.metadata.append(Result(records, None))

        for _ in range(4):
            running.change(grow)
            running.change(grow)
            running.change(grow)
            timed.later(HOUR_MS + 1_000)
        kept = snapshots(timed)
        assert len(kept) == 1, "one always stays"
        assert running.node.metadata.partition.log_start_offset == kept[0]
        assert running.node.metadata.partition.segments[0].base_offset > 0
    with running_node(tmp_path) as running:
        assert running.node.image.configs(4, "")["k99"] == value


def test_heartbeats_keep_the_own_broker_alive(timed: Timed):
    for _ in range(20):
        timed.later(8_000)
    assert not timed.node.image.brokers[1].fenced


def test_no_op_records_come_by_the_clock_if_they_are_wanted(tmp_path: Path):
    clock = ShiftedClock()
    with running_node(tmp_path, clock, metadata_max_idle_interval_ms=500) as running:
        timed = Timed(running, clock, tmp_path)
        before = running.node.image.last_offset
        timed.later(501)
        timed.later(501)
        assert running.node.image.last_offset >= before + 2


# --- tasks -----------------------------------------------------------------------------------------------------------


def test_long_work_leaves_most_of_the_time_to_others():
    async def life() -> tuple[int, int]:
        tasks = CooperativeTasks(asyncio.get_running_loop())
        turns = steps = 0

        def work() -> Generator[None, None, None]:
            nonlocal steps
            until = asyncio.get_running_loop().time() + SLICE_SECONDS / 4
            for _ in range(40):
                while asyncio.get_running_loop().time() < until:
                    pass
                until = asyncio.get_running_loop().time() + SLICE_SECONDS / 4
                steps += 1
                yield

        assert tasks.add("work", work())
        assert not tasks.add("work", work()), "not twice"
        while len(tasks):
            await asyncio.sleep(0)
            turns += 1
        return turns, steps

    turns, steps = asyncio.run(life())
    assert steps == 40
    assert turns > 40 / 5 * REST_FACTOR, "the loop went on in between"


def test_work_that_fails_does_not_stop_the_rest(caplog: pytest.LogCaptureFixture):
    done: list[str] = []

    def good() -> Generator[None, None, None]:
        yield
        done.append("good")

    def bad() -> Generator[None, None, None]:
        yield
        raise RuntimeError("oh")

    async def life() -> None:
        tasks = CooperativeTasks(asyncio.get_running_loop())
        tasks.add("bad", bad())
        tasks.add("good", good())
        tasks.run_for(1)
        tasks.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(life())
    assert done == ["good"]
    assert "bad failed" in caplog.text


def test_work_that_is_given_up_is_closed():
    ended: list[str] = []

    def work() -> Generator[None, None, None]:
        try:
            while True:
                yield
        finally:
            ended.append("closed")

    async def life() -> None:
        tasks = CooperativeTasks(asyncio.get_running_loop())
        tasks.add("work", work())
        tasks.run_for(0)
        tasks.close()

    asyncio.run(life())
    assert ended == ["closed"]


# --- threads ----------------------------------------------------------------------------------------------------------


def test_what_follows_work_happens_once_on_the_loop():
    async def life() -> list[tuple[str, bool]]:
        seen: list[tuple[str, bool]] = []
        main = threading.current_thread()
        offload = Offload(asyncio.get_running_loop())
        done = asyncio.Event()

        def note(what: str) -> None:
            seen.append((what, threading.current_thread() is main))

        def then() -> None:
            note("then")
            done.set()

        offload(lambda: note("work"), then)
        await done.wait()
        job = offload(lambda: note("work"), lambda: note("then"))
        job.finish()
        job.finish()
        assert job.is_finished
        await asyncio.sleep(0)
        offload.close()
        return seen

    assert asyncio.run(life()) == [("work", False), ("then", True)] * 2


def test_everything_can_be_waited_for_with_what_follows_from_it():
    async def life() -> list[int]:
        offload = Offload(asyncio.get_running_loop())
        seen: list[int] = []

        def next_after(number: int) -> None:
            seen.append(number)
            if number < 3:
                offload(lambda: None, lambda: next_after(number + 1))

        offload(lambda: None, lambda: next_after(1))
        offload.finish_all()
        assert len(offload) == 0
        offload.close()
        return seen

    assert asyncio.run(life()) == [1, 2, 3]


def test_work_that_fails_is_told_and_goes_on(caplog: pytest.LogCaptureFixture):
    async def life() -> bool:
        offload = Offload(asyncio.get_running_loop())
        followed = []

        def fail() -> None:
            raise OSError("oh")

        offload(fail, lambda: followed.append(1)).finish()
        offload.close()
        return bool(followed)

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(life())
    assert "oh" in caplog.text


def test_what_requests_wait_for_goes_first():
    done: list[str] = []

    def work(name: str, *then: str) -> Generator[None, None, None]:
        for _ in range(2):
            done.append(name)
            yield
        for each in then:
            tasks.add(each, work(each), is_urgent=True)

    async def run() -> None:
        nonlocal tasks
        tasks = CooperativeTasks(asyncio.get_running_loop())
        tasks.add("long", work("long"))
        tasks.run_for(0)
        tasks.add("urgent", work("urgent", "more"), is_urgent=True)
        while len(tasks):
            tasks.run_for(0)
        tasks.close()

    tasks: CooperativeTasks
    asyncio.run(run())
    assert done == ["long", "urgent", "urgent", "more", "more", "long"]


@pytest.mark.parametrize(("is_urgent", "factor"), [(False, REST_FACTOR), (True, URGENT_REST_FACTOR)])
def test_work_rests_for_so_many_times_as_long_as_it_ran(
    monkeypatch: pytest.MonkeyPatch, is_urgent: bool, factor: int
) -> None:
    now = 100.0

    def work() -> Generator[None, None, None]:
        nonlocal now
        while True:
            now += SLICE_SECONDS
            yield

    rests: list[float] = []

    class Loop:
        def call_soon(self, call: Any) -> Any:
            call()

        def call_later(self, seconds: float, call: Any) -> Any:
            rests.append(seconds)

    monkeypatch.setattr("ottla.broker.loop.cooperative_tasks.time", SimpleNamespace(monotonic=lambda: now))
    CooperativeTasks(Loop()).add("work", work(), is_urgent=is_urgent)  # type: ignore[arg-type]
    assert rests == [pytest.approx(SLICE_SECONDS * factor)]
