"""A target that is computed outside the event loop: what is sent there, what comes back, and what is done there.

A large group has more to tell than can be put together without a pause, so it is sent in parts. Each has some of the
topics, of the distinct subscriptions, which are counted from 0 on, and of the members in the order of their ids.
What comes back are the members whose target changes, some in each part. Parts are in the interpreter's own format
(`marshal`), the fastest there is for plain values: both sides are the same program.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.assignors import Assignor, AssignorError, Member, Topic, load_assignor
from ottla.core.groups.assignors.range import assign_range
from ottla.core.groups.assignors.simple import assign as assign_simple
from ottla.core.groups.assignors.spec import MemberSpec, Target
from ottla.core.groups.assignors.uniform import assign_uniform

__all__ = [
    "ENTRIES_MAX",
    "PROCESS_ENTRY",
    "Choice",
    "MemberInput",
    "TopicInput",
    "answer",
    "part_of",
    "read_targets",
    "request_of",
]

ENTRIES_MAX: Final = 500
"""Of topics, or of topics in subscriptions and targets, in one part: what takes a millisecond or two to make or to
write. A subscription or a target is in one part, whatever its size."""
PROCESS_ENTRY: Final = f"{__name__}:answer"
"""What a child process runs."""

TopicInput = tuple[bytes, int | tuple[int, ...], str, tuple[tuple[str, ...], ...]]
"""Id; how many partitions, or which; name, and the racks of each partition. Only assignors of one's own get the last
two."""
MemberInput = tuple[str, str | None, str | None, int, Target | None]
"""Id, instance id, rack, number of the subscription, target until now; None if there was none."""


class Choice(NamedTuple):
    """The assignor that is asked."""

    name: str
    """One of ottla's own, or the dotted name of one's own."""
    is_own: bool = False
    """Whether it is somebody's own."""


def part_of(
    topics: Sequence[TopicInput] = (),
    subscriptions: Sequence[Sequence[bytes]] = (),
    members: Sequence[MemberInput] = (),
) -> bytes:
    return marshal.dumps((list(topics), list(subscriptions), list(members)))


def request_of(choice: Choice, parts: Sequence[bytes]) -> list[bytes]:
    """What the child process is sent."""
    return [marshal.dumps(tuple(choice)), *parts]


def read_targets(part: bytes) -> list[tuple[str, Target]]:
    """Members and their new targets, as they stand in a part of the answer."""
    found: list[tuple[str, Target]] = marshal.loads(part)
    return found


# --- outside ----------------------------------------------------------------------------------------------------------


class _Job:
    """What was sent, put together."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.topics: list[TopicInput] = []
        self.subscriptions: list[frozenset[bytes]] = []
        self.members: list[MemberInput] = []
        for part in parts:
            topics, subscriptions, members = marshal.loads(part)
            self.topics += topics
            self.subscriptions += map(frozenset, subscriptions)
            self.members += members

    def specs(self) -> list[MemberSpec]:
        return [
            MemberSpec(member_id, instance_id, self.subscriptions[number], target or {})
            for member_id, instance_id, _, number, target in self.members
        ]

    def counts(self) -> dict[bytes, int]:
        return {topic_id: partitions for topic_id, partitions, *_ in self.topics if isinstance(partitions, int)}

    def partitions(self) -> dict[bytes, frozenset[int]]:
        return {topic_id: frozenset(found) for topic_id, found, *_ in self.topics if not isinstance(found, int)}


def answer(request: Sequence[bytes]) -> list[bytes]:
    """Compute a target."""
    choice, job = Choice(*marshal.loads(request[0])), _Job(request[1:])
    targets = _assign_own(load_assignor(choice.name), job) if choice.is_own else _BUILT_IN[choice.name](job)
    before = {member_id: target for member_id, *_, target in job.members}
    return list(_answer_parts((each, target) for each, target in targets.items() if target != before[each]))


_BUILT_IN: Final[Mapping[str, Callable[[_Job], dict[str, Target]]]] = {
    "uniform": lambda job: assign_uniform(job.specs(), job.counts()),
    "range": lambda job: assign_range(job.specs(), job.counts()),
    "simple": lambda job: assign_simple(job.specs(), job.partitions()),
}


def _answer_parts(targets: Iterable[tuple[str, Target]]) -> Iterator[bytes]:
    part: list[tuple[str, Target]] = []
    count = 0
    for each in targets:
        part.append(each)
        count += 1 + len(each[1])
        if count >= ENTRIES_MAX:
            yield marshal.dumps(part)
            part, count = [], 0
    if part:
        yield marshal.dumps(part)


# --- assignors of one's own -------------------------------------------------------------------------------------------


def _assign_own(assignor: Assignor, job: _Job) -> dict[str, Target]:
    names = {topic_id: name for topic_id, _, name, _ in job.topics}
    topics = {
        name: Topic(name, count, tuple(map(frozenset, racks)))
        for _, count, name, racks in job.topics
        if isinstance(count, int)
    }
    subscriptions = [frozenset(names[each] for each in topic_ids) for topic_ids in job.subscriptions]
    members = [
        Member(
            member_id,
            instance_id,
            rack_id,
            subscriptions[number],
            {names[topic_id]: partitions for topic_id, partitions in (target or {}).items() if topic_id in names},
        )
        for member_id, instance_id, rack_id, number, target in job.members
    ]
    given = assignor.assign(members, topics)
    ids = {name: topic_id for topic_id, name in names.items()}
    checked = _Checked(members, topics).check(given)
    return {
        member.member_id: {ids[topic]: each for topic, each in checked.get(member.member_id, {}).items()}
        for member in members
    }


class _Checked:
    """What an assignor gives, held against what it may give. Raises AssignorError."""

    def __init__(self, members: Sequence[Member], topics: Mapping[str, Topic]) -> None:
        self._members = {member.member_id: member for member in members}
        self._topics = topics
        self._owners: dict[tuple[str, int], str] = {}

    def check(self, given: Any) -> dict[str, dict[str, tuple[int, ...]]]:  # noqa: ANN401 - whatever it is
        if not isinstance(given, Mapping):
            raise AssignorError(f"it gives {type(given).__name__}, not a mapping of member ids")
        return {member_id: self._check_member(member_id, topics) for member_id, topics in given.items()}

    def _check_member(self, member_id: Any, topics: Any) -> dict[str, tuple[int, ...]]:  # noqa: ANN401
        member = self._members.get(member_id)
        if member is None:
            raise AssignorError(f"there is no member {member_id!r}")
        if not isinstance(topics, Mapping):
            raise AssignorError(f"it gives member {member_id} {type(topics).__name__}, not a mapping of topics")
        found = {}
        for topic, partitions in topics.items():
            if topic not in member.topics:
                raise AssignorError(f"it gives member {member_id} the topic {topic!r}, without a subscription to it")
            if checked := tuple(sorted({self._check_partition(member_id, topic, each) for each in partitions})):
                found[topic] = checked
        return found

    def _check_partition(self, member_id: str, topic: str, partition: Any) -> int:  # noqa: ANN401
        count = self._topics[topic].partition_count
        if type(partition) is not int or not 0 <= partition < count:
            raise AssignorError(f"topic {topic} has {count} partitions, and none is {partition!r}")
        other = self._owners.setdefault((topic, partition), member_id)
        if other != member_id:
            raise AssignorError(f"it gives partition {partition} of {topic} to {other} and to {member_id}")
        return partition
