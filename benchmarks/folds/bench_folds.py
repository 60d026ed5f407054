"""The fold over the records of a group, one core, without Spark: records in a second.

    python -m benchmarks folds [--rounds 15]

The histories are made up: in each round a member leaves, another joins, and everybody gives something up and takes
something, so that nearly every record is an event. Offset commits, the bulk of a real log, never come here.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from benchmarks import runner
from benchmarks.runner import Case, Size, Subject
from ottla.spark.jobs.folds.facts import group_facts
from ottla.spark.jobs.folds.fold import Fold, RecordRow, fold
from ottla.spark.jobs.params import Params

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
MEMBERS, HELD = 10, 3
REPLACED = {Size.FULL: 200, Size.QUICK: 200, Size.SMOKE: 3}
"""Members, one after the other, in one history."""
CHUNK = 500


class History:
    """Rows of a group of the consumer or the streams kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.rows: list[RecordRow] = []
        self.now_ms = 1_790_000_000_000
        self.epoch = 1

    def write(self, record: str, value: dict[str, Any] | None, **key: str) -> None:
        text = None if value is None else json.dumps(value)
        row = (0, len(self.rows), self.now_ms, f"{self.kind}Group{record}", json.dumps({"groupId": "g", **key}), text)
        self.rows.append(RecordRow(*row))

    def join(self, member: str) -> None:
        value = {"clientId": "c", "clientHost": "/127.0.0.1", "rebalanceTimeoutMs": 300_000}
        more = {"subscribedTopicNames": ["t"]} if self.kind == "Consumer" else {"processId": member, "topologyEpoch": 0}
        self.write("MemberMetadata", value | more, memberId=member)

    def leave(self, member: str) -> None:
        for record in ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata"):
            self.write(record, None, memberId=member)

    def rise(self) -> None:
        self.epoch += 1
        self.write("Metadata", {"epoch": self.epoch, "metadataHash": 77, "validatedTopologyEpoch": 0})

    def target(self, held: dict[str, list[int]]) -> None:
        for member, numbers in held.items():
            self.write(
                "TargetAssignmentMember", self._lists(numbers, "topicPartitions", "activeTasks"), memberId=member
            )
        self.write("TargetAssignmentMetadata", {"assignmentEpoch": self.epoch})

    def current(self, member: str, epoch: int, numbers: list[int], gives_up: Sequence[int] = ()) -> None:
        value = {"memberEpoch": epoch, "state": bool(gives_up) + (self.kind == "Streams")}
        value |= self._lists(numbers, "assignedPartitions", "activeTasks")
        value |= self._lists(gives_up, "partitionsPendingRevocation", "activeTasksPendingRevocation")
        self.write("CurrentMemberAssignment", value, memberId=member)

    def _lists(self, numbers: Sequence[int], partitions: str, tasks: str) -> dict[str, Any]:
        if self.kind == "Consumer":
            return {partitions: [{"topicId": TOPIC_ID, "partitions": list(numbers)}] if numbers else []}
        return {tasks: [{"subtopologyId": "0", "partitions": list(numbers)}] if numbers else []}


def history(kind: str, replaced: int) -> list[RecordRow]:
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
            told.current(member, told.epoch - 1, numbers[1:], numbers[:1])
            told.now_ms += 5
            told.current(member, told.epoch, numbers)
    return told.rows


def in_one_go(rows: list[RecordRow]) -> int:
    reader = Fold(Params())
    for row in rows:
        reader.take_record(*row)
    return len(reader.end())


def in_chunks(rows: list[RecordRow]) -> int:
    kept, found = None, 0
    for start in range(0, len(rows), CHUNK):
        kept, out = fold(kept, rows[start : start + CHUNK])
        found += len(out)
    return found


def as_facts(rows: list[RecordRow]) -> int:
    return sum(1 for _ in group_facts("g", rows))


def cases(replaced: int) -> Iterator[Case]:
    for kind in ("Consumer", "Streams"):
        rows = history(kind, replaced)
        subjects = [
            Subject("in one go", in_one_go, [(rows,)]),
            Subject(f"in chunks of {CHUNK}", in_chunks, [(rows,)]),
            Subject("as facts for the health rules", as_facts, [(rows,)]),
        ]
        yield Case(f"{len(rows)} records of a {kind.lower()} group", subjects, {"records": len(rows)})


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_windows(runner.parser(__doc__), arguments, replaced=REPLACED)
    runner.run("folds", cases(options.replaced), options, ("msgspec",))
    return 0


if __name__ == "__main__":
    sys.exit(main())
