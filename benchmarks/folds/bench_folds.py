"""The fold over the records of a group, one core, without Spark: records in a second.

    python -m benchmarks folds [--rounds 15]

The histories are made up: in each round a member leaves and another takes over what it had. When a group is *calm*, the
others only reach the new epoch, as with Kafka's own assignors. When it is *busy*, everybody gives something up and
takes it back, so that nearly every record is an event. Offset commits, the bulk of a real log, never come here.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import count, product
from typing import Any

import msgspec

from benchmarks import runner
from benchmarks.runner import Case, Size, Subject
from ottla import wire
from ottla.spark.jobs.folds.fold import Fold, RecordRow, fold
from ottla.spark.jobs.params import Params
from ottla.wire.keyed import encode_framed
from ottla.wire.types import group_consumer, group_streams
from tests.unit.spark.jobs.histories import group_facts

TOPIC_ID = bytes(15) + b"\1"
MEMBERS, HELD = 10, 3
REPLACED = {Size.FULL: 200, Size.QUICK: 200, Size.SMOKE: 3}
"""Members, one after the other, in one history."""
CHUNK = 500


class History:
    """Rows of a group of the consumer or the streams kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._types = {"Consumer": group_consumer, "Streams": group_streams}[kind]
        self.rows: list[RecordRow] = []
        self.now_ms = 1_790_000_000_000
        self.epoch = 1

    def write(self, name: str, value: msgspec.Struct | None = None, **key: str) -> None:
        """A record of this name, with a value or as a tombstone."""
        record = f"{self.kind}Group{name}"
        key_bytes = encode_framed(getattr(self._types, f"{record}Key")("g", **key), wire.versions(f"{record}Key")[0])
        value_bytes = None if value is None else encode_framed(value, 0)
        self.rows.append(RecordRow(0, len(self.rows), self.now_ms, record, key_bytes, value_bytes))

    def join(self, member: str) -> None:
        value = self._value("MemberMetadata", client_id="c", client_host="/127.0.0.1", rebalance_timeout_ms=300_000)
        consumer = {"subscribed_topic_names": ("t",), "classic_member_metadata": None}
        more = consumer if self.kind == "Consumer" else {"process_id": member}
        self.write("MemberMetadata", msgspec.structs.replace(value, **more), member_id=member)

    def leave(self, member: str) -> None:
        for record in ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata"):
            self.write(record, member_id=member)

    def rise(self) -> None:
        self.epoch += 1
        more = {"validated_topology_epoch": 0} if self.kind == "Streams" else {}
        self.write("Metadata", self._value("Metadata", epoch=self.epoch, metadata_hash=77, **more))

    def target(self, held: dict[str, list[int]]) -> None:
        for member, numbers in held.items():
            name = "TargetAssignmentMember"
            lists = self._lists(name, numbers, "TopicPartition", "topic_partitions", "active_tasks")
            self.write(name, self._value(name, **lists), member_id=member)
        name = "TargetAssignmentMetadata"
        self.write(name, self._value(name, assignment_epoch=self.epoch))

    def current(self, member: str, epoch: int, numbers: list[int], gives_up: Sequence[int] = ()) -> None:
        name, struct = "CurrentMemberAssignment", "TopicPartitions"
        lists = self._lists(name, numbers, struct, "assigned_partitions", "active_tasks")
        lists |= self._lists(name, gives_up, struct, "partitions_pending_revocation", "active_tasks_pending_revocation")
        state = bool(gives_up) + (self.kind == "Streams")
        self.write(name, self._value(name, member_epoch=epoch, state=state, **lists), member_id=member)

    def _value(self, name: str, **fields: object) -> msgspec.Struct:
        return getattr(self._types, f"{self.kind}Group{name}Value")(**fields)

    def _lists(self, name: str, numbers: Sequence[int], struct: str, partitions: str, tasks: str) -> dict[str, Any]:
        owner = getattr(self._types, f"{self.kind}Group{name}Value")
        if self.kind == "Consumer":
            return {partitions: (getattr(owner, struct)(TOPIC_ID, tuple(numbers)),) if numbers else ()}
        return {tasks: (owner.TaskIds("0", tuple(numbers)),) if numbers else ()}


def history(kind: str, replaced: int, *, is_busy: bool = True) -> list[RecordRow]:
    told = History(kind)
    names = (f"member-{number}" for number in count())
    held = {
        name: [*range(HELD * place, HELD * (place + 1))] for place, name in zip(range(MEMBERS), names, strict=False)
    }
    for name in held:
        told.join(name)
        told.rise()
    for _ in range(replaced):
        told.now_ms += 5_000
        gone, numbers = next(iter(held.items()))
        told.leave(gone)
        del held[gone]
        told.rise()
        told.now_ms += 1_000
        held[name := next(names)] = numbers
        told.join(name)
        told.rise()
        told.target(held)
        for member, numbers in held.items():
            told.now_ms += 300
            if is_busy:
                told.current(member, told.epoch - 1, numbers[1:], numbers[:1])
                told.now_ms += 5
            told.current(member, told.epoch, numbers)
    return told.rows


def in_one_go(rows: list[RecordRow]) -> int:
    reader = Fold(Params())
    reader.take_records(rows)
    return len(reader.end())


def in_chunks(rows: list[RecordRow]) -> int:
    kept, found = None, 0
    for start in range(0, len(rows), CHUNK):
        kept, out = fold(kept, rows[start : start + CHUNK])
        found += len(out)
    return found


def as_facts(rows: list[RecordRow]) -> int:
    return len(group_facts("g", rows))


def cases(replaced: int) -> Iterator[Case]:
    for kind, is_busy in product(("Consumer", "Streams"), (True, False)):
        rows = history(kind, replaced, is_busy=is_busy)
        subjects = [
            Subject("in one go", in_one_go, [(rows,)]),
            Subject(f"in chunks of {CHUNK}", in_chunks, [(rows,)]),
            Subject("as facts for the health rules", as_facts, [(rows,)]),
        ]
        mood = "busy" if is_busy else "calm"
        yield Case(f"{len(rows)} records of a {mood} {kind.lower()} group", subjects, {"records": len(rows)})


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_windows(runner.parser(__doc__), arguments, replaced=REPLACED)
    runner.run("folds", cases(options.replaced), options, ("msgspec",))
    return 0


if __name__ == "__main__":
    sys.exit(main())
