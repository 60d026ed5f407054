"""A member of a group: it sends heartbeats, reads its assigned partitions, and commits every second.

The types of groups differ only in their heartbeats; `consumer`, `streams` and `classic` have one class each for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final, Protocol

from ottla.cli.demo.journal import Journal
from ottla.cli.demo.workloads.ordered import Ordered
from ottla.cli.demo.workloads.ranges import Range
from ottla.client import EARLIEST, Client, ClientError, Fetcher, ResponseError, TopicPartition
from ottla.client.group_offsets import committed
from ottla.client.leaders import by_topic
from ottla.wire.types.offset_commit import OffsetCommitRequest

__all__ = ["Assignment", "Heartbeats", "Reader", "passing", "stay"]

COMMIT_S: Final = 1.0
POLL_MS: Final = 200
BY_NAME_VERSION: Final = 9
"""The last version of OffsetCommit with topic names."""

log = logging.getLogger(__name__)

Assignment = frozenset[TopicPartition]


class Reader:
    """Reads the partitions that are assigned to this member, and commits its offsets."""

    def __init__(self, client: Client, group: str, journal: Journal) -> None:
        self.member_id = ""
        self.epoch = -1
        self._client = client
        self._group = group
        self._journal = journal
        self._fetcher = Fetcher(client, {}, max_wait_ms=POLL_MS, on_out_of_range=EARLIEST)
        self._committed: dict[TopicPartition, int] = {}
        self._next: dict[TopicPartition, int] = {}

    @property
    def owned(self) -> Assignment:
        return frozenset(self._next)

    async def own(self, wanted: Assignment) -> None:
        """Revoke partitions after a last commit, and start new ones at the group's committed offsets."""
        if self.owned - wanted:
            await self.commit()
        for at in self.owned - wanted:
            self.forget(at)
        coming = wanted - self.owned
        known = await committed(self._client, self._group, coming) if coming else {}
        for at in coming:
            offset = known[at].offset if at in known else 0
            self._committed[at] = self._next[at] = offset
            self._fetcher.seek(at, offset)
        self._journal.note("owns", partitions=sorted(self.owned), member=self.member_id, epoch=self.epoch)

    def forget(self, at: TopicPartition) -> None:
        """Stop reading a partition, without a commit."""
        self._fetcher.drop(at)
        del self._next[at], self._committed[at]

    async def read(self) -> None:
        if not self._next:
            await asyncio.sleep(POLL_MS / 1000)
            return
        for fetched in await self._fetcher.poll(POLL_MS):
            if fetched.at in self._next:
                self._next[fetched.at] = fetched.next_position

    async def commit(self) -> None:
        """Commit the offsets read since the last commit; refused ones are tried again the next time."""
        moved = {at: offset for at, offset in self._next.items() if offset > self._committed[at]}
        if not moved:
            return
        kind = OffsetCommitRequest
        topics = tuple(
            kind.OffsetCommitRequestTopic(
                name, partitions=tuple(kind.OffsetCommitRequestPartition(at.partition, moved[at]) for at in each)
            )
            for name, each in by_topic(moved).items()
        )
        self._journal.note("commits", ranges=sorted((*at, self._committed[at], moved[at] - 1) for at in moved))
        answer = await self._client.send(
            kind(self._group, self.epoch, self.member_id, topics=topics),
            coordinator=("group", self._group),
            max_version=BY_NAME_VERSION,
        )
        done: list[Range] = []
        for topic in answer.topics:
            for each in topic.partitions:
                at = TopicPartition(topic.name, each.partition_index)
                if not each.error_code:
                    done.append((*at, self._committed[at], moved[at] - 1))
                    self._committed[at] = moved[at]
        self._journal.note("committed", ranges=sorted(done))


class Heartbeats(Protocol):
    interval_s: float

    async def beat(self, reader: Reader) -> Assignment:
        """Send one heartbeat; returns the present assignment of this member."""

    async def leave(self, reader: Reader) -> None: ...


class _Life:
    """The loop of a member: heartbeats and commits when they are due, reading in between."""

    def __init__(self, heartbeats: Heartbeats, reader: Reader) -> None:
        self._heartbeats = heartbeats
        self._reader = reader
        self._clock = asyncio.get_running_loop().time
        self._beat_at_s = self._commit_at_s = self._clock()

    async def turn(self) -> None:
        if self._clock() >= self._beat_at_s:
            self._beat_at_s = self._clock() + self._heartbeats.interval_s
            wanted = await self._heartbeats.beat(self._reader)
            if wanted != self._reader.owned:
                await self._reader.own(wanted)
                self._beat_at_s = self._clock()  # send it at once: others may wait for the revoked partitions
        await self._reader.read()
        if self._clock() >= self._commit_at_s:
            self._commit_at_s = self._clock() + COMMIT_S
            await self._reader.commit()


async def stay(given: Ordered, heartbeats: Heartbeats, reader: Reader) -> None:
    """Be a member until the demo ends, then leave the group."""
    life = _Life(heartbeats, reader)
    while not given.ended.is_set():
        await passing(life.turn())
    await passing(reader.commit())
    await passing(heartbeats.leave(reader))


async def passing(work: Awaitable[None]) -> None:
    """Do the work, but ignore errors that are temporary."""
    try:
        await work
    except ClientError as error:
        if not (isinstance(error, ResponseError) or error.retriable):
            raise
        log.info("retrying later: %s", error)
        await asyncio.sleep(POLL_MS / 1000)
