"""Crashes of a log on a virtual disk; the logs and their invariants are in simulated_log.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.log import flush as flush_module
from ottla.log import scan
from ottla.log.flush import GroupCommit
from ottla.log.segment import Segment
from tests.simulation.simulated_log import SimulatedLog, Violation

SEEDS_FOR_A_BUG = 500
FAILED_SEEDS = [int(line.split()[0]) for line in (Path(__file__).parent / "seeds.txt").read_text().splitlines() if line]


@pytest.mark.parametrize("first_seed", range(0, 200, 25))
@pytest.mark.parametrize(
    ("power_loss", "fsync"), [(False, False), (True, False), (True, True)], ids=["kill", "power loss", "fsync"]
)
def test_promises_are_kept(first_seed: int, power_loss: bool, fsync: bool) -> None:
    for seed in range(first_seed, first_seed + 25):
        SimulatedLog(seed, power_loss=power_loss, fsync=fsync).run(crashes=6)


@pytest.mark.parametrize("power_loss", [False, True], ids=["kill", "power loss"])
def test_recovery_that_is_interrupted_again_and_again_loses_nothing(power_loss: bool) -> None:
    logs = [SimulatedLog(seed, power_loss=power_loss, crash_recovery=True) for seed in range(60)]
    for log in logs:
        log.run(crashes=6)
    assert sum(log.recovery_crashes for log in logs) > 100
    assert power_loss == any(log.kept_count for log in logs), "a kill leaves nothing sound behind a torn end"


@pytest.mark.parametrize("seed", FAILED_SEEDS)
def test_seeds_that_once_failed(seed: int) -> None:
    for power_loss, fsync in ((False, False), (True, False), (True, True)):
        for crash_recovery in (False, True):
            SimulatedLog(seed, power_loss=power_loss, fsync=fsync, crash_recovery=crash_recovery).run(crashes=6)


@pytest.mark.parametrize("seed", range(40))
def test_a_full_disk_loses_nothing_acknowledged(seed: int) -> None:
    SimulatedLog(seed, power_loss=False, capacity_bytes=6_000).run(crashes=6)


def test_a_seed_gives_the_same_world_twice() -> None:
    logs = [SimulatedLog(7, power_loss=True) for _ in range(2)]
    for log in logs:
        log.run(crashes=5)
    assert logs[0].written == logs[1].written
    assert logs[0].disk.operations == logs[1].disk.operations


def index_ahead_of_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are on the disk before the batches that they name, and recovery believes them."""
    append, reset = Segment.append, Segment.reset_for_recovery

    def index_first(self: Segment, buffers: object, batches: object, config: object) -> None:
        size = self.size_bytes
        self.add_to_indexes(batches, config)  # type: ignore[arg-type]
        self.offset_index.write(create=True)
        self.file.handle().write(buffers, size)  # type: ignore[arg-type]

    def keep_the_index(self: Segment) -> None:
        entries = self.offset_index.entries()
        reset(self)
        for entry in entries:
            self.offset_index.append(*entry)

    assert append is not index_first
    monkeypatch.setattr(Segment, "append", index_first)
    monkeypatch.setattr(Segment, "reset_for_recovery", keep_the_index)


def crc_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.wire.batch_view.BatchView.check_crc", lambda _self: None)
    monkeypatch.setattr(scan, "crc32c", lambda _data, crc=0: crc)


def checkpoint_before_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recovery point moves although nothing was synced."""
    monkeypatch.setattr(flush_module.Flush, "run", lambda _self: None)


def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sound batches behind damage are cut without a trace."""
    monkeypatch.setattr("ottla.log.cuts.SoundBatches.is_worth_keeping", False)


@pytest.mark.parametrize("plant", [index_ahead_of_log, crc_unchecked, checkpoint_before_flush, nothing_kept])
def test_planted_bugs_are_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(SEEDS_FOR_A_BUG):
        try:
            SimulatedLog(seed, power_loss=True).run(crashes=6)
        except Violation:
            return
    pytest.fail(f"no seed below {SEEDS_FOR_A_BUG} has found it")


def test_a_slow_disk_is_waited_for_once_for_many_appends() -> None:
    """Appends that gather while a round of syncs is under way share the next one."""
    log = SimulatedLog(3, power_loss=True)
    log.disk.sync_ms = 50
    commits = GroupCommit()
    for _ in range(20):
        log.produce()
        commits.add(log.partition)
    waited_ms = log.disk.waited_ms
    for flush in commits.begin():
        flush.run()
    assert commits.finish() == [log.partition]
    assert log.partition.recovery_point == log.partition.log_end_offset
    syncs = (log.disk.waited_ms - waited_ms) // 50
    # The active log and the directory; of each segment closed meanwhile its log, its indexes and a snapshot.
    assert syncs <= 3 + 5 * (len(log.partition.segments) - 1)


def test_acknowledgements_wait_for_a_slow_disk() -> None:
    log = SimulatedLog(4, power_loss=True)
    log.disk.sync_ms = 50
    commits = GroupCommit()
    log.produce()
    commits.add(log.partition)
    (flush,) = commits.begin()
    end_offset = log.partition.log_end_offset
    log.produce()  # while the disk is busy
    commits.add(log.partition)
    assert commits.begin() == [], "one round at a time"
    flush.run()
    commits.finish()
    assert log.partition.recovery_point == end_offset, "what came later is not covered by this round"
