"""A consumer of a share group: records of a topic are handed out like work from a queue, and acknowledged one by one.

    async with ShareConsumer(client, "workers", ["jobs"]) as consumer:
        async for record in consumer:
            process(record)                   # asking for the next one accepts it

    async with ShareConsumer(client, "workers", ["jobs"], acknowledgement="explicit") as consumer:
        async for record in consumer:
            try:
                process(record)
            except Broken:
                consumer.reject(record)       # or release it, to be delivered again
            else:
                consumer.accept(record)

Theory of operation. The group's coordinator assigns partitions, which several members may have at the same time; each
partition's leader hands out records, and keeps a lock on each until the member says what became of it (see
`membership` and `session`). A fetch is sent when somebody waits for records and none are there, so that the locks of
records do not run while nobody looks at them; acknowledgements go with the next fetch to the same leader, or at once
with `commit`. Requests to several leaders run at the same time, on connections of the consumer's own: a leader that
loses the connection gives the member's records to others.

Implicit acknowledgement: what was given is accepted when more is asked for. The iterator goes record by record, `poll`
by all that it gave last. What has not been accepted when the consumer closes is released. Explicit acknowledgement:
each record is accepted, released or rejected by a call, in any order, while further records come; `renew` starts the
locks of records anew that take longer. A consumer that ends by a crash says nothing, and its records are released.

A fetch brings many records, and the lock of the last one runs while the first is processed. So the iterator looks at
the clock: when half of the lock's time is over it sends what is done by then, and starts the locks anew of what it has
not given yet. Where it may not, it gives records until the locks end; what is left then is for others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self

from ottla.client.backoff import Deadline
from ottla.client.client import Client
from ottla.client.clock import monotonic_s
from ottla.client.errors import ClientError, ClosedError, ConfigurationError
from ottla.client.metadata import TopicPartition
from ottla.client.share.acknowledgements import AcknowledgementBatch
from ottla.client.share.exchange import Exchange, Fetched, Outcomes
from ottla.client.share.membership import Membership
from ottla.client.share.records import AcknowledgeType, Acquired, ShareRecord
from ottla.client.share.session import NOTHING, Limits, ShareSession, TopicIdPartition
from ottla.wire import WireError

__all__ = ["ShareConsumer"]

Acknowledgement = Literal["implicit", "explicit"]
AcquireMode = Literal["batch_optimized", "record_limit"]
OnAcknowledged = Callable[[TopicPartition, tuple[AcknowledgementBatch, ...], ClientError | None], object]
ACQUIRE_MODES: Final = {"batch_optimized": 0, "record_limit": 1}
MAX_WAIT_MS: Final = 500
MAX_BYTES: Final = 50 * 1024 * 1024
MAX_RECORDS: Final = 500
_lanes = count(1)
_log = logging.getLogger("ottla.client.share")


class _Reading(NamedTuple):
    """Where the iterator is."""

    acquired: Acquired
    """What has not been accepted by it yet."""
    records: Iterator[ShareRecord]
    check_at_s: float
    """When to look after the locks of what has not been given yet."""


class ShareConsumer:
    """A member of a share group; entering it joins, leaving it says farewell.

    `max_records` is how many records a fetch asks for. With acquire_mode="batch_optimized" whole batches come, which
    may be more; "record_limit" never gives more (Kafka 4.2). `on_acknowledged` hears what became of acknowledgements
    that were sent: the partition, the batches, and an error if the leader refused them.
    """

    def __init__(
        self,
        client: Client,
        group_id: str,
        topics: Iterable[str],
        *,
        acknowledgement: Acknowledgement = "implicit",
        acquire_mode: AcquireMode = "batch_optimized",
        max_records: int = MAX_RECORDS,
        max_wait_ms: int = MAX_WAIT_MS,
        min_bytes: int = 1,
        max_bytes: int = MAX_BYTES,
        rack_id: str | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> None:
        self._client = client
        self._is_implicit = _is_implicit(acknowledgement)
        self._mode = _acquire_mode(acquire_mode)
        self._limits = Limits(max_wait_ms, min_bytes, max_bytes, max_records, max_records, self._mode)
        self._news = asyncio.Event()
        names = _subscription(topics)
        self._membership = Membership(client, group_id, names, rack_id, self._news.set)
        self._lane = f"share-{next(_lanes)}"
        self._exchange = Exchange(client, self._lane, self._settle_outcomes)
        self._group_id = group_id
        self._on_acknowledged = on_acknowledged
        self._sessions: dict[int, ShareSession] = {}
        self._fetches: dict[int, asyncio.Task[Fetched]] = {}
        self._ready: deque[Acquired] = deque()
        self._given: list[Acquired] = []
        self._reading: _Reading | None = None
        self._current: ShareRecord | None = None
        self._held: dict[TopicPartition, dict[int, Acquired]] = {}
        self._heard: list[Outcomes] = []
        """What those who wait for answers to acknowledgements have heard."""
        self._turns = 0
        self._is_closed = False

    async def __aenter__(self) -> Self:
        self._client.attach(self)
        self._membership.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def member_id(self) -> str:
        return self._membership.member_id

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this member may fetch; others may have them as well."""
        return frozenset(at for tp in self._membership.assignment if (at := self._named(tp)) is not None)

    @property
    def held_count(self) -> int:
        """How many records were given and not yet acknowledged (explicit acknowledgement only)."""
        return sum(map(len, self._held.values()))

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics instead."""
        self._membership.subscribe(_subscription(topics))

    # --- reading ------------------------------------------------------------------------------------------------------

    async def poll(self, timeout_ms: int | None = None) -> list[Acquired]:
        """What has come; an empty list if nothing came in time. With implicit acknowledgement, the last is accepted.

        Without a time-out it waits for as long as one fetch may take.
        """
        self._accept_given()
        deadline = Deadline(self._limits.max_wait_ms if timeout_ms is None else timeout_ms)
        await self._await_records(deadline)
        return self._give_ready()

    async def fetch(self, max_records: int, max_wait_ms: int) -> list[Acquired]:
        """What one fetch brings; an empty list if there is nothing in time. No request is under way afterwards.

        For who does not poll for a while: locks run meanwhile. With acquire_mode="record_limit" leaders take turns.
        """
        self._accept_given()
        limits = self._limits._replace(max_wait_ms=max_wait_ms, max_records=max_records, batch_size=max_records)
        deadline = Deadline(max_wait_ms)
        while await self._ask_leaders(limits, self._client.deadline(None)) and not self._fetches:
            if deadline.passed:
                break
            await self._await_news(deadline)
        if self._fetches:
            await asyncio.wait(self._fetches.values())
        self._collect()
        return self._give_ready()

    def _give_ready(self) -> list[Acquired]:
        given = [self._give(self._ready.popleft()) for _ in range(len(self._ready))]
        if self._is_implicit:
            self._given += given
        return given

    async def batches(self) -> AsyncIterator[Acquired]:
        """What comes, piece by piece; with implicit acknowledgement, asking for the next accepts the last."""
        while not self._is_closed:
            self._accept_given()
            await self._await_records(Deadline(self._limits.max_wait_ms))
            if self._ready:
                acquired = self._give(self._ready.popleft())
                if self._is_implicit:
                    self._given = [acquired]
                yield acquired

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ShareRecord:
        while not self._is_closed:
            if self._reading is not None and monotonic_s() >= self._reading.check_at_s:
                await self._look_after(self._reading)
            if self._reading is not None and (record := self._next_record(self._reading)) is not None:
                self._current = record
                return record
            self._accept_given()
            await self._await_records(Deadline(self._limits.max_wait_ms))
            if self._ready:
                acquired = self._give(self._ready.popleft())
                self._reading = _Reading(acquired, acquired.records(), _half_time_s(acquired))
        raise StopAsyncIteration

    async def _look_after(self, reading: _Reading) -> None:
        """Time is running: send what is done, and keep the locks of what has not been given yet."""
        given, rest = self._divided(reading)
        if self._is_implicit:
            self._settle(given, AcknowledgeType.ACCEPT)
        left_s = rest.lock_ends_at_s - monotonic_s()
        if left_s <= 0:
            self._reading = self._current = None
            self._give_up(rest)
            return
        mine = self._reading = _Reading(rest, reading.records, rest.lock_ends_at_s)
        deadline = Deadline(left_s * 1000)
        await self._send_acknowledgements(deadline)
        renewed = await self._renewed(rest, deadline)
        if self._reading is mine and renewed is not rest:
            self._reading = _Reading(renewed, reading.records, _half_time_s(renewed))
        for waiting in list(self._ready):
            renewed = await self._renewed(waiting, deadline)
            if waiting in self._ready:
                self._ready[self._ready.index(waiting)] = renewed

    async def _renewed(self, acquired: Acquired, deadline: Deadline) -> Acquired:
        """The same with new locks, or as it is if that cannot be had."""
        if not acquired.ranges:
            return acquired
        now_s = monotonic_s()
        ranges = {_place(acquired): _offsets(acquired)[1]}
        try:
            await self._exchange.renew(self._session(acquired.node_id), ranges, deadline)
        except ClientError as error:
            _log.info("cannot renew the locks of %s: %s", acquired.at, error)
            return acquired
        return replace(acquired, acquired_at_s=now_s)

    def _divided(self, reading: _Reading) -> tuple[Acquired, Acquired]:
        """What the iterator has given, and what it has not."""
        if self._current is None:
            return reading.acquired.before(0), reading.acquired
        after = self._current.offset + 1
        return reading.acquired.before(after), reading.acquired.since(after)

    def _give_up(self, acquired: Acquired) -> None:
        """The locks have ended: others have these records, or will have them."""
        _log.warning("%d records of %s were not processed in time", len(acquired), acquired.at)
        held = self._held.get(acquired.at, {})
        for first, last, _ in acquired.ranges:
            for offset in range(first, last + 1):
                held.pop(offset, None)

    def _next_record(self, reading: _Reading) -> ShareRecord | None:
        """The next record of what the iterator reads; None, and it reads nothing any more, at the end."""
        try:
            record = next(reading.records, None)
        except WireError as error:
            self._reject_unreadable(reading.acquired, error)
            return None
        if record is None:
            self._reading = self._current = None
            if self._is_implicit:
                self._settle(reading.acquired, AcknowledgeType.ACCEPT)
        return record

    def _reject_unreadable(self, acquired: Acquired, error: WireError) -> None:
        """As Java does with a wrong checksum: nobody can read this batch, so nobody shall be given it again."""
        after = acquired.ranges[0].first_offset if self._current is None else self._current.offset + 1
        end = next(batch.next_offset for batch in acquired.batches() if batch.next_offset > after)
        _log.warning("%s from offset %d to %d cannot be read and is rejected: %s", acquired.at, after, end - 1, error)
        self._settle(acquired.since(after).before(end), AcknowledgeType.REJECT)
        self._accept_given()
        if self._ready and self._ready[0].data is acquired.data:
            rest = self._ready.popleft().since(end)
            self._ready.extendleft([rest] if rest.ranges else [])

    def _give(self, acquired: Acquired) -> Acquired:
        if not self._is_implicit:
            held = self._held.setdefault(acquired.at, {})
            for first, last, _ in acquired.ranges:
                held.update(dict.fromkeys(range(first, last + 1), acquired))
        return acquired

    def _accept_given(self) -> None:
        """More is asked for: with implicit acknowledgement, what was given is accepted."""
        for acquired in self._given:
            self._settle(acquired, AcknowledgeType.ACCEPT)
        self._given = []
        if self._reading is None:
            return
        given, rest = self._divided(self._reading)
        self._reading = self._current = None
        if self._is_implicit:
            self._settle(given, AcknowledgeType.ACCEPT)
        if rest.ranges:
            self._ready.appendleft(rest)

    # --- acknowledging ------------------------------------------------------------------------------------------------

    def accept(self, *done: ShareRecord | Acquired) -> None:
        """These were processed."""
        self.acknowledge(AcknowledgeType.ACCEPT, *done)

    def release(self, *done: ShareRecord | Acquired) -> None:
        """These are to be delivered again, to any member."""
        self.acknowledge(AcknowledgeType.RELEASE, *done)

    def reject(self, *done: ShareRecord | Acquired) -> None:
        """Nobody can process these."""
        self.acknowledge(AcknowledgeType.REJECT, *done)

    def acknowledge(self, verdict: AcknowledgeType, *done: ShareRecord | Acquired) -> None:
        """Say what became of records, one by one or all of an `Acquired`; it is sent with the next fetch or commit.

        ConfigurationError for a record that is not held: it was acknowledged already.
        """
        if self._is_implicit:
            raise ConfigurationError('this consumer acknowledges implicitly; use acknowledgement="explicit"')
        if verdict not in (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT):
            raise ConfigurationError(f"{verdict.name} cannot be sent directly; to continue processing, call renew")
        for each in done:
            for owner, first, last in self._find_held(each):
                held = self._held[owner.at]
                for offset in range(first, last + 1):
                    del held[offset]
                self._session(owner.node_id).acknowledgements(_place(owner)).add_range(first, last, verdict)

    async def renew(self, *still: ShareRecord | Acquired, timeout_ms: int | None = None) -> None:
        """Start the locks of these records anew, now: they take longer. Needs brokers of Kafka 4.2 or later.

        ResponseError if a leader refuses it: the lock has ended already, or the group does not allow it.
        """
        if self._is_implicit:
            raise ConfigurationError('only acknowledgement="explicit" can renew locks')
        renewed: dict[int, dict[TopicIdPartition, list[tuple[int, int]]]] = {}
        for each in still:
            for owner, first, last in self._find_held(each):
                renewed.setdefault(owner.node_id, {}).setdefault(_place(owner), []).append((first, last))
        deadline = self._client.deadline(timeout_ms)
        for node_id, ranges in renewed.items():
            await self._exchange.renew(self._session(node_id), ranges, deadline)

    async def commit(self, timeout_ms: int | None = None) -> dict[TopicPartition, ClientError | None]:
        """Send all acknowledgements now and wait for the answers: an error, or None, for each partition.

        With implicit acknowledgement, all that was given is accepted, the record in hand included.
        """
        self._check_open()
        self._accept_given()
        outcomes = await self._send_acknowledgements(self._client.deadline(timeout_ms))
        return {at: error for tp, (_, error) in outcomes.items() if (at := self._named(tp)) is not None}

    async def _send_acknowledgements(self, deadline: Deadline) -> Outcomes:
        sessions = [session for session in self._sessions.values() if session.has_acknowledgements]
        heard: Outcomes = {}
        self._heard.append(heard)
        try:
            rounds = await asyncio.gather(*(self._exchange.acknowledge(each, deadline) for each in sessions))
        finally:
            self._heard = [each for each in self._heard if each is not heard]
        return heard | {tp: outcome for found in rounds for tp, outcome in found.items()}

    def _settle(self, acquired: Acquired, ack_type: AcknowledgeType) -> None:
        """Acknowledge all of it in one go."""
        if self._is_implicit:
            acknowledgements = self._session(acquired.node_id).acknowledgements(_place(acquired))
            for first, last, _ in acquired.ranges:
                acknowledgements.add_range(first, last, ack_type)
        else:
            self.acknowledge(ack_type, acquired)

    def _find_held(self, each: ShareRecord | Acquired) -> Iterator[tuple[Acquired, int, int]]:
        """The held records in runs of offsets, each with what it was handed out with."""
        at, ranges = _offsets(each)
        held = self._held.get(at, {})
        for first, last in ranges:
            while first <= last:
                owner = held.get(first)
                if owner is None:
                    raise ConfigurationError(
                        f"offset {first} of {at} is not acquired: it was acknowledged already, or never delivered"
                    )
                end = first + 1
                while end <= last and held.get(end) is owner:
                    end += 1
                yield owner, first, end - 1
                first = end

    def _settle_outcomes(self, outcomes: Outcomes) -> None:
        """Tell the user what became of acknowledgements."""
        for heard in self._heard:
            heard.update(outcomes)
        for tp, (batches, error) in outcomes.items():
            at = self._named(tp) or TopicPartition("", tp.partition)
            if self._on_acknowledged is not None:
                self._on_acknowledged(at, batches, error)
            elif error is not None:
                _log.warning("acknowledgements of %s were rejected: %s", at, error)

    # --- fetching -----------------------------------------------------------------------------------------------------

    async def _await_records(self, deadline: Deadline) -> None:
        """Wait until something is ready, or the deadline has passed."""
        while await self._ask_leaders(self._limits, deadline):
            await self._await_news(deadline)

    async def _ask_leaders(self, limits: Limits, deadline: Deadline) -> bool:
        """Send fetches, unless something is ready; whether there is something to wait for."""
        self._check_open()
        self._drop_stale()
        if self._ready:
            return False
        self._membership.raise_failure()
        self._news.clear()
        self._collect()
        if not self._ready:
            await self._send_fetches(limits, deadline)
        return not (deadline.passed or self._ready or self._is_closed)

    async def _await_news(self, deadline: Deadline) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s(deadline)):
                await self._news.wait()

    def _drop_stale(self) -> None:
        """Nobody has asked for these while their locks lasted."""
        now_s = monotonic_s()
        for acquired in [each for each in self._ready if each.lock_ends_at_s <= now_s]:
            self._ready.remove(acquired)
            self._give_up(acquired)

    def _collect(self) -> None:
        """Take what leaders have answered; an error is raised once, and what else was brought waits meanwhile."""
        for node_id, task in list(self._fetches.items()):
            if task.done():
                del self._fetches[node_id]
                fetched = task.result()
                self._ready += fetched.acquired
                if fetched.error is not None:
                    raise fetched.error

    def _patience_s(self, deadline: Deadline) -> float:
        """How long to wait for news: while nothing is asked, look again soon whether a leader is known by now."""
        if self._fetches or not self._membership.assignment:
            return deadline.left_s
        return min(deadline.left_s, self._client.settings.retry_backoff_ms / 1000)

    async def _send_fetches(self, limits: Limits, deadline: Deadline) -> None:
        """Ask every leader that has no request under way."""
        wanted = await self._exchange.leaders(self._membership.assignment, self._membership.topics, deadline)
        for node_id in wanted:
            self._session(node_id)
        chosen = self._chosen(list(wanted))
        for node_id, session in self._sessions.items():
            places = wanted.get(node_id, [])
            is_full = bool(places) and node_id in chosen
            if node_id not in self._fetches and (is_full or session.differs(places) or session.has_acknowledgements):
                task = asyncio.create_task(self._exchange.fetch(session, places, limits if is_full else NOTHING))
                task.add_done_callback(lambda _: self._news.set())
                self._fetches[node_id] = task

    def _chosen(self, leaders: list[int]) -> list[int]:
        """Who is asked for records: all, or one at a time where the number of records is a strict limit."""
        if not self._limits.acquire_mode or not leaders:
            return leaders
        if self._fetches:
            return []
        self._turns += 1
        return [leaders[self._turns % len(leaders)]]

    def _session(self, node_id: int) -> ShareSession:
        if node_id not in self._sessions:
            self._sessions[node_id] = ShareSession(node_id, self._group_id, self.member_id)
        return self._sessions[node_id]

    def _named(self, tp: TopicIdPartition) -> TopicPartition | None:
        return self._exchange.named(tp)

    # --- the end ------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Send what was acknowledged, release all else, and leave the group."""
        if self._is_closed:
            return
        self._is_closed = True
        self._client.detach(self)
        self._news.set()
        if self._is_implicit and self._reading is not None and self._current is not None:
            # The iterator has asked for this record, and so accepted those before it.
            self._settle(self._reading.acquired.before(self._current.offset), AcknowledgeType.ACCEPT)
        await asyncio.gather(*self._fetches.values(), return_exceptions=True)
        await asyncio.gather(*(self._exchange.close(session) for session in self._sessions.values()))
        await self._membership.leave()
        await self._client.close_lane(self._lane)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the share consumer was closed")


def _half_time_s(acquired: Acquired) -> float:
    return acquired.lock_ends_at_s - acquired.lock_timeout_ms / 2000


def _place(acquired: Acquired) -> TopicIdPartition:
    return TopicIdPartition(acquired.topic_id, acquired.at.partition)


def _offsets(each: ShareRecord | Acquired) -> tuple[TopicPartition, list[tuple[int, int]]]:
    """The partition, and ranges of offsets."""
    if isinstance(each, ShareRecord):
        return TopicPartition(each.topic, each.partition), [(each.offset, each.offset)]
    return each.at, [(first, last) for first, last, _ in each.ranges]


def _subscription(topics: Iterable[str]) -> tuple[str, ...]:
    if isinstance(topics, str):
        raise ConfigurationError(f"topics must be a list of names, not the name {topics!r}")
    names = tuple(topics)
    if not names:
        raise ConfigurationError("a share consumer needs at least one topic")
    return names


def _is_implicit(acknowledgement: str) -> bool:
    if acknowledgement not in ("implicit", "explicit"):
        raise ConfigurationError(f"acknowledgement is {acknowledgement!r}; it can be implicit or explicit")
    return acknowledgement == "implicit"


def _acquire_mode(mode: str) -> int:
    if mode not in ACQUIRE_MODES:
        raise ConfigurationError(f"acquire_mode is {mode!r}; it can be {', '.join(ACQUIRE_MODES)}")
    return ACQUIRE_MODES[mode]
