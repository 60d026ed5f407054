"""Epochs and members of a group over time, from what its coordinator has written to `__consumer_offsets`.

Records of one write have the same time, and the state of the group between two of them means nothing; so a step is
noted when the time moves on. The topic is compacted: of what was written long ago only the newest of each key is left,
so that the oldest steps may stand for several.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

import msgspec

from ottla.client import EARLIEST, Client, TopicPartition, fetch
from ottla.client.offsets import spans
from ottla.core.coordinator.partitioner import partition_for
from ottla.health.phrases import plural
from ottla.wire import WireError
from ottla.wire.keyed import GROUP_TOPIC, KeyedRecord, decode_keyed, record_types
from ottla.wire.types.group_classic import GroupMetadataValue

__all__ = ["GroupTimeline", "Step", "UnreadableError", "read_on"]

STEPS_MAX: Final = 500
RECORDS_MAX: Final = 500_000
"""A partition with more is not read for a page."""
PAUSE_RECORDS: Final = 500
"""After so many records others may run."""
_INT16: Final = Struct(">h")
_KINDS: Final = ("Consumer", "Share", "Streams")


class Step(msgspec.Struct, frozen=True):
    """How a group was from a time on."""

    at_ms: int
    epoch: int
    assignment_epoch: int
    members: int
    joined: list[str] = []
    """Names of members that have come with this step."""
    left: list[str] = []


class UnreadableError(Exception):
    """A partition that is not read for a page; the text says why."""


class GroupTimeline:
    """The steps of one group, up to a position in its partition."""

    def __init__(self, group: str) -> None:
        self._group = group
        self.position: int | None = None
        """The next offset to read; None for the beginning."""
        self._steps: deque[Step] = deque(maxlen=STEPS_MAX)
        self.is_cut = False
        self._members: dict[str, str] = {}
        self._before: dict[str, str] = {}
        self._epoch = self._assignment_epoch = 0
        self._at_ms: int | None = None

    def take(self, at_ms: int, record: KeyedRecord) -> None:
        """Records come in the order in which they were written."""
        if getattr(record.key, "group_id", getattr(record.key, "group", None)) != self._group:
            return
        if self._at_ms is not None and at_ms > self._at_ms:
            self._settle()
        self._at_ms = at_ms
        _EFFECTS[type(record.key).__name__](self, record.key, record.value)

    def steps(self) -> list[Step]:
        """The newest last, with what the last write has changed so far."""
        pending = self._pending()
        return [*self._steps, pending] if pending is not None else list(self._steps)

    def _settle(self) -> None:
        pending = self._pending()
        if pending is not None:
            self.is_cut = self.is_cut or len(self._steps) == STEPS_MAX
            self._steps.append(pending)
            self._before = dict(self._members)

    def _pending(self) -> Step | None:
        """What has changed since the last step."""
        now = (self._epoch, self._assignment_epoch, self._members.keys())
        last = self._steps[-1] if self._steps else None
        if self._at_ms is None or (last and now == (last.epoch, last.assignment_epoch, self._before.keys())):
            return None
        joined = [name for member, name in self._members.items() if member not in self._before]
        left = [name for member, name in self._before.items() if member not in self._members]
        return Step(self._at_ms, self._epoch, self._assignment_epoch, len(self._members), joined, left)

    # --- what each type of record says --------------------------------------------------------------------------------

    def _bump(self, _: object, value: Any | None) -> None:  # noqa: ANN401
        if value is None:
            self._forget()
        else:
            self._epoch = value.epoch

    def _member(self, key: Any, value: Any | None) -> None:  # noqa: ANN401
        if value is None:
            self._members.pop(key.member_id, None)
        else:
            self._members[key.member_id] = value.client_id or key.member_id

    def _target(self, _: object, value: Any | None) -> None:  # noqa: ANN401
        if value is not None:
            self._assignment_epoch = value.assignment_epoch

    def _classic(self, _: object, value: GroupMetadataValue | None) -> None:
        """One record has the whole group; a tombstone may also mean that the group has become a consumer group."""
        if value is None:
            self._forget()
            return
        self._epoch = self._assignment_epoch = value.generation
        self._members = {each.member_id: each.client_id or each.member_id for each in value.members}

    def _forget(self) -> None:
        self._epoch = self._assignment_epoch = 0
        self._members = {}


_EFFECTS: Final = {
    "GroupMetadataKey": GroupTimeline._classic,
    **{f"{kind}GroupMetadataKey": GroupTimeline._bump for kind in _KINDS},
    **{f"{kind}GroupMemberMetadataKey": GroupTimeline._member for kind in _KINDS},
    **{f"{kind}GroupTargetAssignmentMetadataKey": GroupTimeline._target for kind in _KINDS},
}
"""By the name of the key. Other records, such as committed offsets, say nothing about epochs and members."""
_TYPES: Final = frozenset(
    number for number, name in record_types(GROUP_TOPIC, "coordinator-key").items() if name in _EFFECTS
)


def told_by(key: bytes | None, value: bytes | None) -> Iterator[KeyedRecord]:
    """The record, if it is about epochs and members and can be read."""
    if key is None or len(key) < _INT16.size or _INT16.unpack_from(key)[0] not in _TYPES:
        return
    try:
        yield decode_keyed(GROUP_TOPIC, key, value)
    except WireError:
        return  # newer than our tables, or damaged; the others still tell something


async def read_on(client: Client, group: str, known: GroupTimeline | None) -> GroupTimeline:
    """The timeline up to the end of the group's partition; it goes on with what is known. UnreadableError."""
    count = len((await client.topics([GROUP_TOPIC]))[GROUP_TOPIC].partitions)
    at = TopicPartition(GROUP_TOPIC, partition_for(group, count))
    start, end = (await spans(client, [at]))[at]
    if start is None or end is None:
        raise UnreadableError(f"the leader of {at} does not say where it begins and ends")
    timeline = known if known is not None and (known.position or 0) <= end else GroupTimeline(group)
    begin = start if timeline.position is None else max(start, timeline.position)
    if end - begin > RECORDS_MAX:
        raise UnreadableError(f"{at} has {plural(end - begin, 'offset')}, too many to read for a page")
    if begin < end:
        await _read(client, at, begin, end, timeline)
    timeline.position = end
    return timeline


async def _read(client: Client, at: TopicPartition, begin: int, end: int, timeline: GroupTimeline) -> None:
    seen = 0
    async for record in fetch(client, {at: begin}, until={at: end}, on_out_of_range=EARLIEST):
        seen += 1
        for told in told_by(record.key, record.value):
            timeline.take(record.timestamp_ms, told)
        if seen % PAUSE_RECORDS == 0:
            await asyncio.sleep(0)
