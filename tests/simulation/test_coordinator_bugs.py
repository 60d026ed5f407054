"""Bugs of coordinators that move from node to node, planted in whole nodes: simulated clusters must find each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from ottla.broker.coordinators import runtime
from ottla.broker.coordinators.partition_writer import ReplicaWriter
from ottla.broker.coordinators.runtime import Runtime
from ottla.broker.coordinators.shard import Shard
from ottla.broker.share.leader import ShareLeader
from ottla.broker.share.led_share_partition import LedSharePartition
from ottla.broker.share.persister import Persister
from ottla.core.coordinator.contract import Core
from ottla.core.share.state import ShareStateCoordinator
from ottla.core.txn.workflow import Workflow
from ottla.log import producer_state
from ottla.log.partition import Partition
from ottla.log.producer_entry import ProducerEntry
from tests.simulation.cluster_worlds import first_violation

pytestmark = pytest.mark.usefixtures("no_event_loop")

FOUND = {
    "coordinators loaded",
    "coordinators replayed",
    "commits stay",
    "offsets in order",
    "all or nothing",
    "all is readable",
    "share start",
    "accepted stays",
}


def plant_marker_of_any_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition takes the marker of a coordinator that another one has followed."""
    check = producer_state.check_marker

    def lenient(entry: ProducerEntry, producer_epoch: int, _: int, *, transaction_version: int) -> None:
        check(entry, producer_epoch, entry.coordinator_epoch, transaction_version=transaction_version)

    monkeypatch.setattr(producer_state, "check_marker", lenient)


def plant_load_to_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator loads what it knows to be committed, and not the whole log."""
    load_steps = runtime.load_steps

    def short(partition: Partition, reader: Any) -> Iterator[None]:
        return load_steps(partition, reader, end_offset=partition.high_watermark)

    monkeypatch.setattr(runtime, "load_steps", short)


def plant_answers_while_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator answers as soon as it has begun to load."""
    replay, begin = Runtime._replay, Runtime._begin

    def hasty(self: Runtime, writer: ReplicaWriter, core: Core) -> Generator[None, None, None]:
        begin(self, writer.replica.topic_partition.partition, core, writer)
        yield from replay(self, writer, core)

    monkeypatch.setattr(Runtime, "_replay", hasty)
    monkeypatch.setattr(Runtime, "_begin", lambda *_: None)


def plant_former_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator does not notice that another node leads its partition."""
    monkeypatch.setattr(Runtime, "_is_led", lambda *_: True)


def plant_answers_before_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator answers when its records are on their way to its own log."""
    flush = Shard.flush

    def hasty(self: Shard) -> None:
        flush(self)
        self.advance()

    monkeypatch.setattr(Shard, "flush", hasty)
    monkeypatch.setattr(ReplicaWriter, "high_watermark", ReplicaWriter.log_end_offset)


def plant_decision_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next coordinator does not end what the former one has decided."""
    monkeypatch.setattr(Workflow, "resume", lambda self, prepared: self._markers(prepared, ()))


def plant_any_share_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share coordinator lets a leader write that another one has followed."""
    monkeypatch.setattr(ShareStateCoordinator, "_check_leader", lambda *_: None)


def plant_locks_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader of a share partition goes on with what it knew, when it leads it again."""
    lead = ShareLeader.lead

    def keeping(self: ShareLeader, key: Any, source: Any) -> Any:
        return self.get(key) or lead(self, key, source)

    monkeypatch.setattr(ShareLeader, "lead", keeping)
    monkeypatch.setattr(ShareLeader, "_fault", lambda *_: None)


def plant_share_write_overtakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader writes the state of a share partition while an earlier write is tried again."""
    ask, write = Persister.ask, LedSharePartition._write

    def ask_at_once(self: Persister, body: Any, done: Callable[[Any], None]) -> None:
        lines, self._lines = self._lines, {}
        ask(self, body, done)
        self._lines = lines | self._lines

    def write_at_once(self: LedSharePartition) -> None:
        before, self._writing = self._writing, ()
        write(self)
        self._writing = (*before, *self._writing)

    monkeypatch.setattr(Persister, "ask", ask_at_once)
    monkeypatch.setattr(Persister, "_overtake", lambda *_: None)
    monkeypatch.setattr(LedSharePartition, "_write", write_at_once)


@pytest.mark.parametrize(
    ("plant", "first_seed"),
    [
        (plant_load_to_high_watermark, 24),
        (plant_answers_while_loading, 27),
        (plant_former_coordinator, 3),
        (plant_answers_before_commit, 3),
        (plant_decision_forgotten, 27),
        (plant_marker_of_any_coordinator, 463),
        (plant_any_share_leader, 5),
        (plant_locks_kept, 64),
        (plant_share_write_overtakes, 51),
    ],
)
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert first_violation(first_seed).name in FOUND
