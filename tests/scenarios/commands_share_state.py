"""Commands for conversations with the share coordinator. All are about group g and topic t unless they say otherwise.

initialize 0 [start=5] [epoch=1]                  InitializeShareGroupState of a partition
read 0 [leader=0]                                 ReadShareGroupState
write 0 [0-4=2/1 ...] [start=0] [count=5] [epoch=1] [leader=0] [version=1]
                                                  WriteShareGroupState; a range with its state and delivery count
forget 0                                          DeleteShareGroupState
summary 0 [version=1]                             ReadShareGroupStateSummary
accept 0 1200                                     so many writes, each of one more accepted record, quietly
snapshots                                         which of the records in the log are snapshots
prune                                             do what the coordinator asked for
Each takes `topic=u`; `topic=none` is an id of zeros, `topic=unknown` one that nobody has.
"""

from __future__ import annotations

import re
from typing import Any

from ottla.core.coordinator.contract import COMMITTED
from ottla.core.share.state import PruneLog
from ottla.wire.types.share_state import ShareSnapshotKey
from simulation.commands import Words, command
from simulation.scenario import Scenario
from simulation.shorthand import parse
from simulation.virtual_replica import read_log
from tests.scenarios.commands_classic import quiet

_RANGE = re.compile(r"(-?\d+)-(\d+)=(\d)/(\d+)")
_IDS = {"none": "0x" + "00" * 16, "unknown": "uuid(99)"}


def ask(scenario: Scenario, api: str, options: dict[str, str], partition: dict[str, Any], version: int = 0) -> None:
    topic = options.get("topic", "t")
    topic_id = parse(_IDS.get(topic, f"id({topic})"))
    fields = {"group_id": "g", "topics": [{"topic_id": topic_id, "partitions": [partition]}]}
    scenario.send("b", api, int(options.get("version", version)), fields)


@command("initialize")
def initialize(scenario: Scenario, words: Words) -> None:
    partition, options = int(words.next()), words.options()
    asked = {
        "partition": partition,
        "state_epoch": int(options.get("epoch", 1)),
        "start_offset": int(options.get("start", -1)),
    }
    ask(scenario, "InitializeShareGroupState", options, asked)


@command("read")
def read(scenario: Scenario, words: Words) -> None:
    partition, options = int(words.next()), words.options()
    asked = {"partition": partition, "leader_epoch": int(options.get("leader", 0))}
    ask(scenario, "ReadShareGroupState", options, asked)


@command("write")
def write(scenario: Scenario, words: Words) -> None:
    partition = int(words.next())
    ranges = _RANGE.findall(words.text)
    words.text = _RANGE.sub("", words.text)
    _write(scenario, partition, [tuple(map(int, each)) for each in ranges], words.options())


def _write(scenario: Scenario, partition: int, ranges: list[Any], options: dict[str, str]) -> None:
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    asked = {
        "partition": partition,
        "state_epoch": int(options.get("epoch", 1)),
        "leader_epoch": int(options.get("leader", 0)),
        "start_offset": int(options.get("start", 0)),
        "delivery_complete_count": int(options.get("count", -1)),
        "state_batches": [dict(zip(names, each, strict=True)) for each in ranges],
    }
    ask(scenario, "WriteShareGroupState", options, asked, version=1)


@command("forget")
def forget(scenario: Scenario, words: Words) -> None:
    partition, options = int(words.next()), words.options()
    ask(scenario, "DeleteShareGroupState", options, {"partition": partition})


@command("summary")
def summary(scenario: Scenario, words: Words) -> None:
    partition, options = int(words.next()), words.options()
    ask(scenario, "ReadShareGroupStateSummary", options, {"partition": partition, "leader_epoch": 0}, version=1)


@command("accept")
def accept(scenario: Scenario, words: Words) -> None:
    """As a leader does: the start that a write tells is the one from before it."""
    partition, count = int(words.next()), int(words.next())
    with quiet(scenario):
        for offset in range(count):
            _write(scenario, partition, [(offset, offset, 2, 1)], {"start": str(offset), "count": "1"})
            scenario.host.turn()


@command("snapshots")
def snapshots(scenario: Scenario, words: Words) -> None:
    for number, keyed in enumerate(read_log(scenario.host.partition)):
        if isinstance(keyed.key, ShareSnapshotKey):
            scenario.write(f"record {number}: {scenario.renderer.record(keyed)}")


@command("prune")
def prune(scenario: Scenario, words: Words) -> None:
    ((effect, done),) = scenario.open_effects
    assert isinstance(effect, PruneLog)
    scenario.open_effects.clear()
    scenario.write(f"the log starts at {scenario.host.partition.delete_records(effect.offset)}")
    done(COMMITTED)
