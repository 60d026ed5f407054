"""Real histories of groups: what our own coordinator writes when somebody speaks to it, as rows for the folds."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from ottla import wire
from ottla.spark.jobs.folds.folding import RecordRow
from ottla.testing.simulation.cores import KINDS
from ottla.testing.simulation.scenario import Scenario, parse_blocks
from ottla.wire.batch import BatchView
from ottla.wire.keyed import KeyedRecord, decode_keyed

SCENARIOS = Path(__file__).parents[3] / "golden" / "scenarios"
FAMILIES = ("classic", "consumer", "share", "streams")
TOPIC = "__consumer_offsets"

for _name in ("classic", "consumer", "share", "streams", "txn"):
    import_module(f"tests.scenarios.commands_{_name}")

Histories = dict[str, list[RecordRow]]
"""Group -> its records in order."""


def as_row(keyed: KeyedRecord, offset: int, timestamp: int, partition: int = 0) -> tuple[str, RecordRow]:
    """The group of a record, and the record as the jobs see it."""
    name = type(keyed.key).__name__.removesuffix("Key")
    key = wire.to_json(keyed.key, keyed.key_version)
    value = None if keyed.value is None else json.dumps(wire.to_json(keyed.value, keyed.value_version))
    return str(key.get("groupId", key.get("group"))), RecordRow(
        partition, offset, timestamp, name, json.dumps(key), value
    )


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
            if row.type not in ("OffsetCommit", "LegacyOffsetCommit"):
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
