"""Transactions that are open, and producers that hold one open which no coordinator knows of.

The coordinators know their transactions. A partition whose last stable offset lags behind its end has an open one, and
its leader knows the producer. Such a producer is unknown if it held the same transaction open before and after the
coordinators were asked, and none of them told of it.
"""

from __future__ import annotations

from typing import Final

from ottla.client import LATEST, ClientError, TopicPartition
from ottla.client.offsets import ListedOffset, try_list_offsets
from ottla.client.open_transactions import (
    ListedTransaction,
    OpenProducer,
    TransactionDescription,
    open_producers,
    try_describe,
    try_list,
)
from ottla.health.facts import Transaction, TransactionPartition
from ottla.observe.looks.parting import by_node, parted
from ottla.observe.memory import Moment, rounds
from ottla.observe.sighting import Sighting, no_sight, sight

__all__ = ["look_at_transactions"]

IDLE: Final = frozenset({"Empty", "Dead", "CompleteCommit", "CompleteAbort"})

Held = dict[tuple[TopicPartition, int], OpenProducer]
"""By partition and producer."""


async def look_at_transactions(at: Moment) -> list[Sighting]:
    before = await _held(at, await _behind(at))
    lists, refused = parted(at, "transactions", by_node(await try_list(at.client)))
    listed = [each for some in lists.values() for each in some if each.state not in IDLE]
    names = {each.transactional_id for each in listed}
    gone = at.memory.transactions_present.take(at.now_ms, names, is_complete=not refused)
    unknown = [] if refused else await _unknown(at, before, {each.producer_id for each in listed})
    return [*refused, *gone, *await _described(at, listed, before), *unknown]


async def _behind(at: Moment) -> list[TopicPartition]:
    """Partitions with records that are not yet committed or aborted."""
    places = sorted(
        TopicPartition(name, number)
        for name, topic in at.memory.topics.items()
        for number, each in topic.partitions.items()
        if each.leader >= 0
    )[: at.bounds.open_partitions]
    behind = []
    for some in rounds(places, at.bounds.partitions_per_round):
        stable = await try_list_offsets(at.client, dict.fromkeys(some, LATEST), isolation="read_committed")
        ends = await try_list_offsets(at.client, dict.fromkeys(some, LATEST))
        for place in some:
            last, end = stable[place], ends[place]
            if isinstance(last, ListedOffset) and isinstance(end, ListedOffset) and last.offset < end.offset:
                behind.append(place)
    return behind


async def _held(at: Moment, places: list[TopicPartition]) -> Held:
    outcomes = await open_producers(at.client, places) if places else {}
    return {
        (place, each.producer_id): each
        for place, producers in outcomes.items()
        if not isinstance(producers, ClientError)
        for each in producers
    }


async def _described(at: Moment, listed: list[ListedTransaction], held: Held) -> list[Sighting]:
    seen = []
    for node_id in sorted({each.coordinator for each in listed}):
        names = [each.transactional_id for each in listed if each.coordinator == node_id]
        for name, outcome in (await try_describe(at.client, node_id, names)).items():
            if isinstance(outcome, ClientError):
                seen.append(no_sight("transactions", name, at.error_of(outcome)))
            elif outcome.state not in IDLE:
                seen.append(sight(name, _known(outcome, held)))
    return seen


def _known(each: TransactionDescription, held: Held) -> Transaction:
    def first_offset(place: TopicPartition) -> int | None:
        producer = held.get((place, each.producer_id))
        return None if producer is None else producer.first_offset

    return Transaction(
        id=each.transactional_id,
        state=each.state,
        producer=each.producer_id,
        producer_epoch=each.producer_epoch,
        started=each.started_ms,
        timeout=each.timeout_ms,
        partitions=tuple(
            TransactionPartition(topic=place.topic, partition=place.partition, first_offset=first_offset(place))
            for place in each.partitions
        ),
    )


async def _unknown(at: Moment, before: Held, known: set[int]) -> list[Sighting]:
    suspects = {key: each for key, each in before.items() if each.producer_id not in known}
    after = await _held(at, sorted({place for place, _ in suspects}))
    producers: dict[int, list[tuple[TopicPartition, OpenProducer]]] = {}
    for (place, producer), each in suspects.items():
        now = after.get((place, producer))
        if now is not None and now.first_offset == each.first_offset:
            producers.setdefault(producer, []).append((place, each))
    return [sight(f"producer:{producer}", _nobodys(producer, held)) for producer, held in sorted(producers.items())]


def _nobodys(producer: int, held: list[tuple[TopicPartition, OpenProducer]]) -> Transaction:
    return Transaction(
        producer=producer,
        producer_epoch=held[0][1].producer_epoch,
        started=held[0][1].last_written_ms,
        partitions=tuple(
            TransactionPartition(topic=place.topic, partition=place.partition, first_offset=each.first_offset)
            for place, each in held
        ),
    )
