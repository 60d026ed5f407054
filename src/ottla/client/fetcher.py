"""Reading records from given offsets on, without a group.

    async for record in fetch(client, {("orders", 0): EARLIEST, ("orders", 1): 120}, until=LATEST):
        ...

Theory of operation. A `Fetcher` has a position in each of its partitions. Each leader has one request at a time, a long
poll for all of its partitions that stay idle otherwise; `poll` gives what has come from whichever leader answers first.
The requests run as tasks on connections of their own and end with the fetcher, or with its client. What is held in
memory is bounded by `max_bytes` for each leader. There are no fetch sessions, as in librdkafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Final, NamedTuple, Self, TypedDict, Unpack

from ottla.client.backoff import Deadline
from ottla.client.client import Answer, Client, always
from ottla.client.clock import monotonic_s
from ottla.client.committed import visible
from ottla.client.errors import ClientError, ClosedError, ConfigurationError, ProtocolError, ResponseError
from ottla.client.fetch_request import FetchLimits, fetch_request
from ottla.client.metadata import Metadata, TopicPartition
from ottla.client.offsets import EARLIEST, LATEST, Isolation, Offsets, isolation_level, list_offsets
from ottla.client.retry import Routing, retry_action
from ottla.wire import WireError
from ottla.wire.aborted import AbortedTransaction
from ottla.wire.batch import AnyBatch, BatchView, Header, TimestampType, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.types.fetch import FetchResponse, FetchResponsePartitionData

__all__ = ["ConsumerRecord", "FetchOptions", "Fetched", "Fetcher", "fetch", "partitions_in"]

MAX_WAIT_MS: Final = 500
MAX_BYTES: Final = 50 * 1024 * 1024
PARTITION_MAX_BYTES: Final = 1024 * 1024
_lanes = count(1)


class ConsumerRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    leader_epoch: int


class FetchOptions(TypedDict, total=False):
    isolation: Isolation
    """read_uncommitted unless told otherwise; read_committed hides what was aborted and waits for what is open."""
    max_wait_ms: int
    """How long a broker may wait for `min_bytes`."""
    min_bytes: int
    max_bytes: int
    """How much one answer may hold; a single batch is sent even if it is larger."""
    partition_max_bytes: int
    on_out_of_range: int | None
    """EARLIEST or LATEST to go on there when the position is not in the log; else it is an error."""


class Fetched(NamedTuple):
    """What one answer brought for one partition: whole batches, as they are stored."""

    at: TopicPartition
    position: int
    """The offset that was asked for; batches may begin before it."""
    next_position: int
    data: bytes | memoryview
    aborted: tuple[AbortedTransaction, ...]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int

    def batches(self) -> Iterator[AnyBatch]:
        """The batches that the user may see, their checksums verified."""
        for batch in visible(split_batches(self.data), self.aborted):
            batch.check_crc()
            yield batch

    def records(self) -> Iterator[ConsumerRecord]:
        """The records that the user may see, from the position on."""
        for batch in self.batches():
            epoch = batch.partition_leader_epoch if isinstance(batch, BatchView) else -1
            kind = batch.timestamp_type
            for each in batch.records():  # which copies, so that keys and values are bytes
                if each.offset >= self.position:
                    yield ConsumerRecord(
                        *self.at,
                        each.offset,
                        each.timestamp,
                        kind,
                        each.key,  # type: ignore[arg-type]
                        each.value,  # type: ignore[arg-type]
                        each.headers,
                        epoch,
                    )


class Fetcher:
    """Reads partitions from offsets on: numbers, EARLIEST or LATEST."""

    def __init__(self, client: Client, start: Offsets, **options: Unpack[FetchOptions]) -> None:
        self._client = client
        self._start: dict[TopicPartition, int] = {}
        self._isolation: Isolation = options.get("isolation", "read_uncommitted")
        self._limits = FetchLimits(
            isolation_level(self._isolation),
            options.get("max_wait_ms", MAX_WAIT_MS),
            options.get("min_bytes", 1),
            options.get("max_bytes", MAX_BYTES),
            options.get("partition_max_bytes", PARTITION_MAX_BYTES),
        )
        self._reset_to = options.get("on_out_of_range")
        if self._reset_to not in (None, EARLIEST, LATEST):
            raise ConfigurationError("on_out_of_range is neither EARLIEST nor LATEST")
        self._positions: dict[TopicPartition, int] = {}
        self._lane = f"fetcher-{next(_lanes)}"
        self._asked: dict[asyncio.Task[Answer], dict[TopicPartition, int]] = {}
        self._leaders: dict[asyncio.Task[Answer], int] = {}
        self._failing: dict[TopicPartition, Deadline] = {}
        self._error: ClientError | None = None
        self._is_closed = False
        for at, offset in start.items():
            self.seek(at, offset)
        client.attach(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """Where the next poll goes on; empty before the first one."""
        return self._positions

    def seek(self, at: tuple[str, int], offset: int) -> None:
        """Go on at another offset, or in another partition."""
        if offset < 0 and offset not in (EARLIEST, LATEST):
            raise ConfigurationError(f"{TopicPartition(*at)} cannot be read from offset {offset}")
        self.drop(at)
        self._start[TopicPartition(*at)] = offset

    def drop(self, at: tuple[str, int]) -> None:
        """Read this partition no further."""
        self._positions.pop(TopicPartition(*at), None)
        self._start.pop(TopicPartition(*at), None)
        self._failing.pop(TopicPartition(*at), None)

    async def poll(self, timeout_ms: int | None = None) -> list[Fetched]:
        """What has come, with at least one batch in each; an empty list if nothing came in time.

        Without a time-out it waits for as long as one long poll takes.
        """
        if self._is_closed:
            raise ClosedError("the fetcher was closed")
        deadline = Deadline(self._limits.max_wait_ms if timeout_ms is None else timeout_ms)
        backoff = self._client.backoff()
        while True:
            self._raise_error()
            await self._settle_start()
            await self._ask_leaders()
            fetched = await self._collect(deadline)
            # What has come is given before an error that came with it: its position has moved on already.
            if fetched or (deadline.passed and self._error is None):
                return fetched
            if self._failing and not await backoff.pause(deadline):
                return []

    async def records(self, until: Offsets | int | None = None) -> AsyncIterator[ConsumerRecord]:
        """Records as they come, those of a partition in order; without `until` it never ends.

        `until` is the offset to stop before: for each partition, or LATEST for where each of them ends now.
        """
        ends = await self._ends(until)
        await self._settle_start()
        self._drop_finished(ends)
        while ends is None or self._start or self._positions:
            for fetched in await self.poll():
                end = None if ends is None else ends.get(fetched.at)
                for record in fetched.records():
                    if end is not None and record.offset >= end:
                        break
                    yield record
            self._drop_finished(ends)

    async def close(self) -> None:
        """End the requests that are under way, and their connections."""
        if self._is_closed:
            return
        self._is_closed = True
        self._client.detach(self)
        for task in self._asked:
            task.cancel()
        await asyncio.gather(*self._asked, return_exceptions=True)
        self._asked.clear()
        self._leaders.clear()
        await self._client.close_lane(self._lane)

    # --- where to read ------------------------------------------------------------------------------------------------

    async def _settle_start(self) -> None:
        """Turn what was wanted into offsets: special ones have to be asked for."""
        special = {at: offset for at, offset in self._start.items() if offset < 0}
        listed = await list_offsets(self._client, special, isolation=self._isolation) if special else {}
        for at, offset in list(self._start.items()):
            self._positions[at] = listed[at].offset if at in listed else offset
            del self._start[at]

    async def _ends(self, until: Offsets | int | None) -> dict[TopicPartition, int] | None:
        if until is None:
            return None
        if not isinstance(until, int):
            return {TopicPartition(*at): offset for at, offset in until.items()}
        wanted = dict.fromkeys((*self._start, *self._positions), until)
        listed = await list_offsets(self._client, wanted, isolation=self._isolation)
        return {at: each.offset for at, each in listed.items()}

    def _drop_finished(self, ends: Mapping[TopicPartition, int] | None) -> None:
        for at, position in list(self._positions.items()):
            if ends is not None and position >= ends.get(at, position + 1):
                self.drop(at)

    # --- asking -------------------------------------------------------------------------------------------------------

    async def _ask_leaders(self) -> None:
        busy = {at for asked in self._asked.values() for at in asked}
        idle = [at for at in self._positions if at not in busy]
        topics = await self._client.topics({at.topic for at in idle})
        leaders: dict[int, list[TopicPartition]] = {}
        for at in idle:
            found = topics[at.topic].partitions.get(at.partition) or await self._client.leader(at)
            if found.leader in self._client.metadata.brokers:
                leaders.setdefault(found.leader, []).append(at)
            else:  # it does not hold up the others: a later poll looks for its leader again
                error = ResponseError(None, "Metadata", ErrorCode.LEADER_NOT_AVAILABLE, str(at))
                self._fail(at, error, is_cured=self._is_new(at.topic))
        for node_id, partitions in leaders.items():
            if node_id not in self._leaders.values():
                self._ask(node_id, partitions)

    def _is_new(self, topic: str) -> bool:
        """Whether the cluster was asked about a topic so recently that it is too early to ask again."""
        age_s = monotonic_s() - self._client.metadata.since_s(topic)
        return age_s * 1000 < self._client.settings.retry_backoff_ms

    def _ask(self, node_id: int, partitions: list[TopicPartition]) -> None:
        positions = {at: self._positions[at] for at in partitions}
        request = fetch_request(self._client.metadata, positions, self._limits)
        task = asyncio.create_task(
            self._client.ask("Fetch", always(request), broker=node_id, lane=self._lane, retry=False)
        )
        self._asked[task] = positions
        self._leaders[task] = node_id

    # --- what comes back ----------------------------------------------------------------------------------------------

    async def _collect(self, deadline: Deadline) -> list[Fetched]:
        if not self._asked:
            if not self._positions:
                await asyncio.sleep(deadline.left_s)  # nothing is read
            return []
        done, _ = await asyncio.wait(self._asked, timeout=deadline.left_s, return_when=asyncio.FIRST_COMPLETED)
        fetched: list[Fetched] = []
        for task in [each for each in self._asked if each in done]:
            positions = self._asked.pop(task)
            del self._leaders[task]
            fetched += self._taken(task, positions)
        return fetched

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _taken(self, task: asyncio.Task[Answer], positions: dict[TopicPartition, int]) -> Iterator[Fetched]:
        try:
            answer = task.result()
        except ClientError as error:
            self._fail_all(positions, error)
            return
        body = answer.of(FetchResponse)
        if body.error_code:
            self._error = ResponseError(answer.peer, "Fetch", body.error_code)
        for at, data in partitions_in(body, self._client.metadata):
            if self._positions.get(at) != positions.get(at):
                continue  # sought elsewhere meanwhile, or dropped
            if data.error_code:
                self._take_error(answer, at, data, body)
                continue
            self._failing.pop(at, None)
            if data.records:
                try:
                    fetched = self._advanced(answer, at, data)
                except ProtocolError as error:
                    self._error = error
                else:
                    yield fetched

    def _advanced(self, answer: Answer, at: TopicPartition, data: FetchResponsePartitionData) -> Fetched:
        position = self._positions[at]
        records = data.records or b""
        try:
            next_position = max((batch.next_offset for batch in split_batches(records)), default=position)
        except WireError as error:
            raise ProtocolError(answer.peer, f"records of {at} from offset {position} on: {error}") from None
        if next_position == position:
            reason = (
                f"no complete batch of {at} at offset {position} in {len(records)} bytes; raise partition_max_bytes"
            )
            raise ProtocolError(answer.peer, reason)
        self._positions[at] = next_position
        return Fetched(
            at,
            position,
            next_position,
            records,
            tuple(AbortedTransaction(each.first_offset, each.producer_id) for each in data.aborted_transactions or ()),
            data.high_watermark,
            data.last_stable_offset,
            data.log_start_offset,
        )

    def _take_error(
        self, answer: Answer, at: TopicPartition, data: FetchResponsePartitionData, body: FetchResponse
    ) -> None:
        error = ResponseError(answer.peer, "Fetch", data.error_code, f"{at} at offset {self._positions[at]}")
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self._reset_to is not None:
            self.seek(at, self._reset_to)
        elif retry_action(data.error_code, Routing.LEADER) is None:
            self._error = error
        else:
            leader = data.current_leader
            learned = self._client.metadata.learn_leader(at, leader.leader_id, leader.leader_epoch, body.node_endpoints)
            self._fail(at, error, is_cured=learned)

    def _fail_all(self, positions: Mapping[TopicPartition, int], error: ClientError) -> None:
        """A request failed; partitions that were sought elsewhere meanwhile, or dropped, have no part in it."""
        for at, position in positions.items():
            if self._positions.get(at) == position:
                self._fail(at, error)

    def _fail(self, at: TopicPartition, error: ClientError, *, is_cured: bool = False) -> None:
        """Note a failure that may pass; one that lasts for too long is raised."""
        until = self._failing.setdefault(at, self._client.deadline())
        if not error.retriable or until.passed:
            self._error = error
        if not is_cured:
            self._client.metadata.expire(at.topic)


def partitions_in(
    body: FetchResponse, metadata: Metadata
) -> Iterable[tuple[TopicPartition, FetchResponsePartitionData]]:
    """What an answer says of each partition; it knows topics by name or, in later versions, by id."""
    for topic in body.responses:
        name = topic.topic or metadata.name_of(topic.topic_id)
        if name is not None:
            for data in topic.partitions:
                yield TopicPartition(name, data.partition_index), data


async def fetch(
    client: Client,
    start: Offsets,
    *,
    until: Offsets | int | None = None,
    **options: Unpack[FetchOptions],
) -> AsyncIterator[ConsumerRecord]:
    """Read records from offsets on. Who stops early should do so in `contextlib.aclosing`."""
    async with Fetcher(client, start, **options) as fetcher:
        async for record in fetcher.records(until):
            yield record
