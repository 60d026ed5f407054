"""How far a group is behind: in records, and in seconds.

In records it is the distance from the committed offset to the end of the partition, as Kafka's own tools count it. In
seconds it is what `ottla.wire.lag` says: the oldest record that has not been processed is fetched, and its timestamp
compared with the clock of who asks. So a group that is behind by one record may be behind by an hour, and one that
reads old records (their timestamps are the producer's) is behind by their age.

Reading the timestamps costs few requests: each leader is asked for the first batch of all its partitions at once, and
again only for those that did not fit, `ROUNDS` times at most. What is not known then stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ottla.client.client import Answer, Client
from ottla.client.errors import ClientError, ResponseError, error_name
from ottla.client.fetcher import partitions_in
from ottla.client.leaders import LeaderCall, Outcomes, Reply, by_topic
from ottla.client.metadata import TopicPartition
from ottla.client.offsets import EARLIEST, LATEST, try_list_offsets
from ottla.client.topics import TopicDescription, try_describe
from ottla.wire import WireError
from ottla.wire.batch import AnyBatch, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.lag import lag_ms
from ottla.wire.types.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponsePartitionData,
)

__all__ = ["Lag", "lags", "times_at"]

ROUNDS: Final = 3
ANSWER_MAX_BYTES: Final = 8 * 1024 * 1024
BATCH_MAX_BYTES: Final = 64 * 1024
"""Of one partition; a batch that is larger comes alone, in a round of its own."""
SECOND_MS: Final = 1000


class Lag(NamedTuple):
    """A partition as a group sees it. None is what could not be found out; `note` says why."""

    committed: int | None
    start_offset: int | None = None
    end_offset: int | None = None
    records: int | None = None
    oldest_at_ms: int | None = None
    """The timestamp of the first record that has not been processed."""
    note: str = ""

    def seconds(self, now_ms: int) -> float | None:
        """How old the oldest record is that has not been processed; 0 if all are."""
        ms = lag_ms(self.records, self.oldest_at_ms, now_ms)
        return None if ms is None else ms / SECOND_MS


async def lags(
    client: Client, committed: Mapping[TopicPartition, int | None], *, seconds: bool = True
) -> dict[TopicPartition, Lag]:
    """How far these offsets are behind; None stands for a partition without one. `seconds` reads timestamps, too."""
    known = dict(await try_describe(client, *{at.topic for at in committed})) if committed else {}
    absent = {at: why for at in committed if (why := _absence(known, at))}
    present = [at for at in committed if at not in absent]
    starts = await try_list_offsets(client, dict.fromkeys(present, EARLIEST))
    ends = await try_list_offsets(client, dict.fromkeys(present, LATEST))
    found = {at: Lag(offset, note=absent.get(at, "")) for at, offset in committed.items()}
    for at in present:
        start, end = starts[at], ends[at]
        if isinstance(start, ClientError) or isinstance(end, ClientError):
            found[at] = Lag(committed[at], note=_reason(start if isinstance(start, ClientError) else end))
        else:
            found[at] = _lag(committed[at], start.offset, end.offset)
    return await _with_times(client, found) if seconds else found


def _absence(known: Mapping[str, TopicDescription | ResponseError], at: TopicPartition) -> str:
    topic = known.get(at.topic)
    if not isinstance(topic, TopicDescription):
        return _reason(topic) if isinstance(topic, ResponseError) else "the topic is unknown"
    leader = next((each.leader for each in topic.partitions if each.partition == at.partition), None)
    if leader is None:
        return "the topic has no such partition"
    return "no leader" if leader < 0 else ""


def _reason(error: object) -> str:
    if isinstance(error, ResponseError):
        gone = error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return "the topic does not exist" if gone else f"{error_name(error.code)} ({error.code})"
    return str(error)


def _lag(committed: int | None, start: int, end: int) -> Lag:
    if committed is None:
        return Lag(None, start, end)
    note = f"{start - committed} deleted before they were read" if committed < start else ""
    return Lag(committed, start, end, max(0, end - committed), note=note)


# --- seconds ----------------------------------------------------------------------------------------------------------


async def _with_times(client: Client, found: dict[TopicPartition, Lag]) -> dict[TopicPartition, Lag]:
    """The same with the timestamps of the oldest records that are still to be processed."""
    wanted = {at: max(lag.committed or 0, lag.start_offset or 0) for at, lag in found.items() if lag.records}
    times = await times_at(client, wanted)
    return {at: _timed(lag, times.get(at)) for at, lag in found.items()}


async def times_at(client: Client, wanted: Mapping[TopicPartition, int]) -> Outcomes[int | None]:
    """The timestamps of the first records from these offsets on, None where there is none or it could not be read."""
    times: Outcomes[int | None] = {}
    for _ in range(ROUNDS):
        pending = {at: offset for at, offset in wanted.items() if times.get(at) is None}
        if not pending:
            break
        times |= await _ask_times(client, pending)
    return times


def _timed(lag: Lag, time: int | ClientError | None) -> Lag:
    if isinstance(time, ClientError):
        return lag._replace(note=lag.note or f"time unknown: {_reason(time)}")
    return lag._replace(oldest_at_ms=time)


async def _ask_times(client: Client, offsets: Mapping[TopicPartition, int]) -> Outcomes[int | None]:
    def build(partitions: list[TopicPartition], _: int) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=ANSWER_MAX_BYTES,
            topics=tuple(
                FetchRequestFetchTopic(
                    topic=name,
                    topic_id=client.metadata.id_of(name),
                    partitions=tuple(
                        FetchRequestFetchPartition(
                            partition=at.partition, fetch_offset=offsets[at], partition_max_bytes=BATCH_MAX_BYTES
                        )
                        for at in each
                    ),
                )
                for name, each in by_topic(partitions).items()
            ),
        )

    def read(answer: Answer) -> Iterable[Reply[int | None]]:
        for at, data in partitions_in(answer.of(FetchResponse), client.metadata):
            yield Reply(at, data.error_code, None, _first_time(data, offsets.get(at, 0)))

    return await LeaderCall("Fetch", build, read).ask(client, offsets, client.deadline())


def _first_time(data: FetchResponsePartitionData, offset: int) -> int | None:
    """The timestamp of the first record from the offset on; a transaction's marker counts if nothing else is there."""
    marker_ms: int | None = None
    try:
        for batch in split_batches(data.records or b""):
            time_ms = next(_times(batch, offset), None)
            if time_ms is not None and not batch.is_control:
                return time_ms
            marker_ms = time_ms if marker_ms is None else marker_ms
    except WireError:
        return marker_ms  # the log is damaged there, or cut off at the size that was asked for
    return marker_ms


def _times(batch: AnyBatch, offset: int) -> Iterator[int]:
    return (record.timestamp for record in batch.records() if record.offset >= offset)
