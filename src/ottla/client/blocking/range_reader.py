"""A range of offsets of one partition, as the broker sends it: chunks of whole record batches.

The next request is on its way while the caller decodes the last answer. A request asks for about as many bytes as the
rest of the range has, by the size of the records so far: much of what lies behind a short range would be sent in vain.
The reader never resets its position: an offset
that is not in the log any more is the caller's to judge (ResponseError with OFFSET_OUT_OF_RANGE). What passes by
itself, such as a leader that moves or a broker that restarts, is retried as long as no time-out passes without
progress.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, NamedTuple

from ottla.client.backoff import Deadline
from ottla.client.blocking.client import BlockingBackoff, BlockingClient
from ottla.client.blocking.connection import BlockingConnection
from ottla.client.errors import ClientError, ProtocolError, ResponseError, UnknownBrokerError
from ottla.client.fetch_request import FetchLimits, fetch_request
from ottla.client.metadata import NO_NODE, Broker, TopicPartition
from ottla.client.offsets import Isolation, isolation_level
from ottla.client.retry import Routing, retry_action
from ottla.client.versions import choose_version
from ottla.wire.aborted import AbortedTransaction
from ottla.wire.batch import split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.fault import WireError
from ottla.wire.types.fetch import FetchResponse, FetchResponsePartitionData

__all__ = ["Chunk", "ReadOptions", "ReadStats", "StalledError", "read_range"]

MIB: Final = 1024 * 1024
FIRST_GUESS_BYTES: Final = 128
"""Of a record, before any were seen. Too small a guess takes one more request."""
SLACK: Final = 1.1
SLACK_BYTES: Final = 64 * 1024
EMPTY_ANSWERS: Final = 2
"""After so many answers without a batch, although the log goes on behind the range, the rest of the range is gone."""
_LENGTH_AND_MAGIC: Final = Struct(">i4xb")
_OFFSET: Final = Struct(">q")
_DELTA: Final = Struct(">i")
_HEADER_BYTES: Final = 61


class ReadOptions(NamedTuple):
    isolation: Isolation = "read_uncommitted"
    topic_id: bytes | None = None
    """Read from the topic with this id, and not from another one of the same name."""
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 32 * MIB
    partition_max_bytes: int = 8 * MIB
    rack_id: str = ""
    """Where the reader is; brokers may name a replica nearby to read from."""
    stall_timeout_ms: int = 120_000
    """How long to go on without any progress."""


USUAL_OPTIONS: Final = ReadOptions()


@dataclass
class ReadStats:
    """What reading has taken so far."""

    fetches: int = 0
    bytes: int = 0
    wait_s: float = 0.0
    retries: int = 0


class Chunk(NamedTuple):
    """Whole batches; the first may begin before `position`, the last may end behind the range."""

    data: memoryview
    position: int
    next_position: int
    aborted: tuple[AbortedTransaction, ...]


class StalledError(ClientError):
    """No progress for too long."""

    def __init__(self, at: TopicPartition, where: str, waited_ms: int, last: ClientError | None) -> None:
        because = "" if last is None else f": {last}"
        super().__init__(
            f"no response from {where} for topic {at.topic} partition {at.partition} in {waited_ms} ms{because}"
        )


def read_range(
    client: BlockingClient,
    at: TopicPartition,
    start: int,
    until: int,
    options: ReadOptions = USUAL_OPTIONS,
    stats: ReadStats | None = None,
) -> Iterator[Chunk]:
    """What there is from `start` to before `until`, in order."""
    reader = _Reader(client, at, start, until, options, stats or ReadStats())
    try:
        yield from reader.chunks()
    finally:
        reader.let_go()


@dataclass
class _Reader:
    client: BlockingClient
    at: TopicPartition
    position: int
    until: int
    options: ReadOptions
    stats: ReadStats
    connection: BlockingConnection | None = None
    replica: int = NO_NODE
    """The replica that the leader told us to read from."""
    empty_answers: int = 0
    record_bytes: float = FIRST_GUESS_BYTES
    deadline: Deadline = field(init=False)
    backoff: BlockingBackoff = field(init=False)
    last_error: ClientError | None = None
    where: str = "the brokers"

    def __post_init__(self) -> None:
        o = self.options
        self.limits = FetchLimits(
            isolation_level(o.isolation), o.max_wait_ms, o.min_bytes, o.max_bytes, o.partition_max_bytes, o.rack_id
        )
        self._made_progress()

    def chunks(self) -> Iterator[Chunk]:
        while self.position < self.until:
            try:
                chunk = self._next()
            except ClientError as error:
                self._recover(error)
                continue
            if chunk is not None:
                yield chunk
                self._made_progress()  # the caller may have taken longer than any time-out

    def let_go(self) -> None:
        if self.connection is not None:
            self.client.give_back(self.connection)
            self.connection = None

    # --- asking -------------------------------------------------------------------------------------------------------

    def _next(self) -> Chunk | None:
        """One answer; None if it brought nothing. The next request is sent before it is given."""
        if self.connection is None:
            self._connect()
            self._send()
        assert self.connection is not None
        began_s = time.monotonic()
        body = self.connection.receive()
        self.stats.wait_s += time.monotonic() - began_s
        self.stats.fetches += 1
        assert isinstance(body, FetchResponse)
        if body.error_code:
            raise ResponseError(self.connection.peer, "Fetch", body.error_code)
        data = next((each for topic in body.responses for each in topic.partitions), None)
        if data is not None and data.error_code:
            self._learn_leader(data, body)
            about = f"{self.at} at offset {self.position}"
            raise ResponseError(self.connection.peer, "Fetch", data.error_code, about)
        chunk = None if data is None else self._taken(data)
        if self.position < self.until:
            self._send_ahead()
        return chunk

    def _connect(self) -> None:
        self.connection = self.client.borrow(self._broker().peer)
        self.where = str(self.connection.peer.address)

    def _broker(self) -> Broker:
        leader = self.client.leader(self.at, self.deadline)
        if not self._is_same_topic:  # what the client remembers may be an old one
            self.client.metadata.expire(self.at.topic)
            leader = self.client.leader(self.at, self.deadline)
        if not self._is_same_topic:
            reason, about = "the topic was deleted and created again", f"topic {self.at.topic}"
            raise ResponseError(leader.peer, "Metadata", ErrorCode.INCONSISTENT_TOPIC_ID, about, reason)
        if self.replica == NO_NODE:
            return leader
        brokers = self.client.metadata.brokers
        if self.replica not in brokers:
            # It may have come back since we last asked. The leader has no records for us as long as it is there.
            raise UnknownBrokerError(self.replica, list(brokers))
        return brokers[self.replica]

    @property
    def _is_same_topic(self) -> bool:
        return self.options.topic_id in (None, self.client.metadata.topics[self.at.topic].topic_id)

    def _send_ahead(self) -> None:
        if self.connection is None:
            return  # we are about to go to another replica
        try:
            self._send()
        except ClientError:  # what has come is given first; the next attempt is to another connection
            self.connection.shut()
            self.connection = None

    def _send(self) -> None:
        assert self.connection is not None
        version = choose_version("Fetch", self.connection.versions, self.connection.peer)
        request = fetch_request(self.client.metadata, {self.at: self.position}, self._limits_of_the_rest())
        self.connection.send(request, version)

    def _limits_of_the_rest(self) -> FetchLimits:
        rest_bytes = round((self.until - self.position) * self.record_bytes * SLACK) + SLACK_BYTES
        wanted = min(max(rest_bytes, self.limits.min_bytes), self.limits.partition_max_bytes)
        return self.limits._replace(partition_max_bytes=wanted)

    # --- what comes back ----------------------------------------------------------------------------------------------

    def _taken(self, data: FetchResponsePartitionData) -> Chunk | None:
        if data.preferred_read_replica not in (NO_NODE, self.replica) and not data.records:
            self.replica = data.preferred_read_replica
            self.let_go()
            return None
        records = memoryview(data.records or b"")
        if not records:
            self._note_empty(data)
            return None
        self.stats.bytes += len(records)
        position = self.position
        end, next_position = whole_batches(records)
        if next_position <= position:
            assert self.connection is not None
            raise ProtocolError(self.connection.peer, f"no complete batch of {self.at} from offset {position} on")
        self.position = next_position
        self.record_bytes = end / (next_position - position)
        self.empty_answers = 0
        aborted = tuple(
            AbortedTransaction(each.first_offset, each.producer_id) for each in data.aborted_transactions or ()
        )
        return Chunk(records[:end], position, next_position, aborted)

    def _note_empty(self, data: FetchResponsePartitionData) -> None:
        """Nothing came. If the log goes on behind the range, what was in it is compacted away up to its end."""
        end = data.last_stable_offset if self.options.isolation == "read_committed" else data.high_watermark
        self.empty_answers = self.empty_answers + 1 if end >= self.until else 0
        if self.empty_answers >= EMPTY_ANSWERS:
            self.position = self.until
        elif self.deadline.passed:
            raise StalledError(self.at, self.where, self.options.stall_timeout_ms, self.last_error)

    def _learn_leader(self, data: FetchResponsePartitionData, body: FetchResponse) -> None:
        leader = data.current_leader
        self.client.metadata.learn_leader(self.at, leader.leader_id, leader.leader_epoch, body.node_endpoints)

    # --- failures -----------------------------------------------------------------------------------------------------

    def _made_progress(self) -> None:
        self.deadline = Deadline(self.options.stall_timeout_ms)
        self.backoff = self.client.backoff()
        self.last_error = None

    def _recover(self, error: ClientError) -> None:
        """Get ready for another attempt, if one may go well and there is time for it."""
        if not self._is_curable(error):
            raise error
        self.stats.retries += 1
        self.last_error = error
        self.replica = NO_NODE
        if self.connection is not None:
            self.connection.shut()
            self.connection = None
        self.client.metadata.expire(self.at.topic)
        if not self.backoff.sleep(self.deadline):
            raise StalledError(self.at, self.where, self.options.stall_timeout_ms, error) from None

    def _is_curable(self, error: ClientError) -> bool:
        if not isinstance(error, ResponseError):
            return error.retriable
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE and self.replica != NO_NODE:
            return True  # a follower may be behind; the leader knows
        if error.api == "Metadata":
            return error.code == ErrorCode.LEADER_NOT_AVAILABLE
        return error.code == ErrorCode.CORRUPT_MESSAGE or retry_action(error.code, Routing.LEADER) is not None


def whole_batches(records: memoryview) -> tuple[int, int]:
    """Where the whole batches end, and the offset behind the last of them; (0, -1) if there is none."""
    position, last = 0, -1
    while len(records) - position >= _HEADER_BYTES:
        length, magic = _LENGTH_AND_MAGIC.unpack_from(records, position + 8)
        if magic != 2 or length < _HEADER_BYTES - 12:
            return _odd_batches(records)
        if position + 12 + length > len(records):
            break
        last, position = position, position + 12 + length
    if last < 0:
        return 0, -1
    return position, _OFFSET.unpack_from(records, last)[0] + _DELTA.unpack_from(records, last + 23)[0] + 1


def _odd_batches(records: memoryview) -> tuple[int, int]:
    """The same for batches of older formats, and the place to find out what is wrong with damaged ones."""
    end, next_offset = 0, -1
    try:
        for batch in split_batches(records):
            end, next_offset = batch.position + batch.size_bytes, batch.next_offset
    except WireError:
        if end == 0:
            raise
    return end, next_offset
