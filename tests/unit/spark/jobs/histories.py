"""Real histories of groups: what our own coordinator writes when somebody speaks to it, as rows for the folds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from ottla.core.groups.consumer import members
from ottla.core.groups.consumer import records as consumer
from ottla.health.facts import Gone, Group
from ottla.spark.jobs.folds.fold import Fold, RecordRow
from ottla.spark.jobs.params import Params
from ottla.wire.batch import BatchView
from ottla.wire.keyed import KeyedRecord, decode_keyed, encode_framed
from simulation.coordinator_kinds import KINDS
from simulation.scenario import Scenario, parse_blocks

SCENARIOS = Path(__file__).parents[3] / "golden" / "scenarios"
FAMILIES = ("classic", "consumer", "share", "streams")
TOPIC = "__consumer_offsets"
COMMITS = ("OffsetCommit", "LegacyOffsetCommit")

for _name in ("classic", "consumer", "share", "streams", "txn"):
    import_module(f"tests.scenarios.commands_{_name}")

Histories = dict[str, list[RecordRow]]
"""Group -> its records in order."""


def as_row(keyed: KeyedRecord, offset: int, timestamp: int, partition: int = 0) -> tuple[str, RecordRow]:
    """The group of a record, and the record as the jobs see it."""
    name = type(keyed.key).__name__.removesuffix("Key")
    group = keyed.key.group if name in ("GroupMetadata", *COMMITS) else keyed.key.group_id
    key = encode_framed(keyed.key, keyed.key_version)
    value = None if keyed.value is None else encode_framed(keyed.value, keyed.value_version)
    return group, RecordRow(partition, offset, timestamp, name, key, value)


def group_facts(group: str, rows: Iterable[RecordRow], params: Params | None = None) -> list[tuple[int, Group | Gone]]:
    """The facts about a group at each change, from its whole history."""
    fold = Fold(params or Params(), facts_of=group)
    fold.take_records(rows)
    return fold.end().facts


class Listener(Scenario):
    """A conversation whose records are kept. Time goes on by a second with every write, so that each can be told from
    the next."""

    def __init__(self, *, ticks_ms: int = 1_000) -> None:
        self.found: Histories = defaultdict(list)
        self._ticks_ms = ticks_ms
        self._writes = 0
        super().__init__(KINDS["groups"])

    def appended(self, batch: BatchView) -> None:
        if batch.is_control:
            return
        self._writes += 1
        for record in batch.records():
            value = None if record.value is None else bytes(record.value)
            keyed = decode_keyed(TOPIC, bytes(record.key or b""), value)
            at_ms = record.timestamp + self._writes * self._ticks_ms
            group, row = as_row(keyed, record.offset, at_ms)
            if row.type not in COMMITS:
                self.found[group].append(row)


def listen(text: str, *, ticks_ms: int = 1_000) -> Listener:
    """Runs a conversation; gives it with its records in `found`."""
    scenario = Listener(ticks_ms=ticks_ms)
    blocks = [block for block in parse_blocks(text) if block.has_output]
    for block in blocks:
        scenario.run_block(block, is_last=False)
    return scenario


def scenario_texts(families: Iterable[str] = FAMILIES) -> dict[str, str]:
    paths = [path for family in families for path in sorted((SCENARIOS / family).glob("*.txt"))]
    return {path.relative_to(SCENARIOS).as_posix().removesuffix(".txt"): path.read_text() for path in paths}


def plain(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


class Script:
    """A consumer group's history, written down step by step with the records that our coordinator writes."""

    START_MS = 1_790_000_000_000 - 1_790_000_000_000 % 3_600_000
    TOPIC_ID = bytes(range(16))

    def __init__(self, group: str = "g", *, topic_hash: int = 77) -> None:
        self.group = group
        self.rows: list[RecordRow] = []
        self.now_ms = self.START_MS
        self.hash = topic_hash
        self._known: dict[str, members.ConsumerGroupMember] = {}

    def at(self, second: float) -> Script:
        self.now_ms = self.START_MS + round(second * 1000)
        return self

    def write(self, *records: KeyedRecord) -> Script:
        for each in records:
            group, row = as_row(each, len(self.rows), self.now_ms)
            assert group == self.group
            self.rows.append(row)
        return self

    def member(self, name: str, instance: str | None = None, topics: Iterable[str] = ("t",), **more: Any) -> Script:
        known = self._known.get(name, members.ConsumerGroupMember(member_id=name, client_id=f"client of {name}"))
        subscription = members.Subscription(frozenset(topics), "")
        changed = {"rebalance_timeout_ms": 300_000, **more}
        new = msgspec.structs.replace(known, instance_id=instance, subscription=subscription, **changed)
        self._known[name] = new
        return self.write(consumer.member_record(self.group, new))

    def epoch(self, epoch: int, topic_hash: int | None = None) -> Script:
        self.hash = self.hash if topic_hash is None else topic_hash
        return self.write(consumer.epoch_record(self.group, epoch, self.hash))

    def target(self, epoch: int) -> Script:
        return self.write(consumer.target_epoch_record(self.group, epoch, self.now_ms))

    def current(self, name: str, epoch: int, *held: int, gives_up: Iterable[int] = (), state: int = 0) -> Script:
        new = msgspec.structs.replace(
            self._known[name],
            member_epoch=epoch,
            state=members.MemberState(1 if gives_up else state),
            assigned=self._partitions(held, epoch),
            pending_revocation=self._partitions(gives_up, epoch),
        )
        return self.write(consumer.current_record(self.group, new))

    def _partitions(self, numbers: Iterable[int], epoch: int) -> members.Partitions:
        found = dict.fromkeys(numbers, epoch)
        return {self.TOPIC_ID: found} if found else {}

    def leave(self, name: str) -> Script:
        del self._known[name]
        return self.write(*consumer.member_tombstones(self.group, name))

    def delete(self) -> Script:
        return self.write(*consumer.group_tombstones(self.group, sorted(self._known), []))

    def settled(self, epoch: int, **held: Iterable[int]) -> Script:
        """A target for this epoch, and everybody is there at once."""
        self.epoch(epoch).target(epoch)
        for name, partitions in held.items():
            self.current(name, epoch, *partitions)
        return self
