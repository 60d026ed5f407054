"""The probe of open transactions, including hanging ones, which no coordinator knows.

Coordinators list their transactions. A partition whose last stable offset is below its end has an open transaction, and
its leader knows the producer. A transaction is hanging if the same producer holds it open before and after the
coordinators were asked, and none of them lists it.
"""

from __future__ import annotations

from ottla.client import LATEST, ClientError, TopicPartition
from ottla.client.offsets import ListedOffset, try_list_offsets
from ottla.client.open_transactions import (
    IDLE,
    ListedTransaction,
    OpenProducer,
    TransactionDescription,
    open_producers,
    try_describe,
    try_list,
)
from ottla.health.facts import Transaction, TransactionPartition
from ottla.observe.memory import ProbeContext, rounds
from ottla.observe.probe_result import ProbeResult, probe_error, probe_result
from ottla.observe.probes.partial_results import by_node, split_errors

__all__ = ["probe_transactions"]

Held = dict[tuple[TopicPartition, int], OpenProducer]
"""By partition and producer."""


async def probe_transactions(ctx: ProbeContext) -> list[ProbeResult]:
    before = await _held(ctx, await _behind(ctx))
    lists, refused = split_errors(ctx, "transactions", by_node(await try_list(ctx.client)))
    listed = [each for some in lists.values() for each in some if each.state not in IDLE]
    names = {each.transactional_id for each in listed}
    gone = ctx.memory.transactions_present.take(ctx.now_ms, names, is_complete=not refused)
    unknown = [] if refused else await _unknown(ctx, before, {each.producer_id for each in listed})
    return [*refused, *gone, *await _described(ctx, listed, before), *unknown]


async def _behind(ctx: ProbeContext) -> list[TopicPartition]:
    """Partitions with records that are not yet committed or aborted."""
    partitions = sorted(
        TopicPartition(name, number)
        for name, topic in ctx.memory.topics.items()
        for number, each in topic.partitions.items()
        if each.leader >= 0
    )[: ctx.bounds.open_partitions]
    behind = []
    for some in rounds(partitions, ctx.bounds.partitions_per_round):
        stable = await try_list_offsets(ctx.client, dict.fromkeys(some, LATEST), isolation="read_committed")
        ends = await try_list_offsets(ctx.client, dict.fromkeys(some, LATEST))
        for tp in some:
            last, end = stable[tp], ends[tp]
            if isinstance(last, ListedOffset) and isinstance(end, ListedOffset) and last.offset < end.offset:
                behind.append(tp)
    return behind


async def _held(ctx: ProbeContext, partitions: list[TopicPartition]) -> Held:
    outcomes = await open_producers(ctx.client, partitions) if partitions else {}
    return {
        (tp, each.producer_id): each
        for tp, producers in outcomes.items()
        if not isinstance(producers, ClientError)
        for each in producers
    }


async def _described(ctx: ProbeContext, listed: list[ListedTransaction], held: Held) -> list[ProbeResult]:
    results = []
    for node_id in sorted({each.coordinator for each in listed}):
        names = [each.transactional_id for each in listed if each.coordinator == node_id]
        for name, outcome in (await try_describe(ctx.client, node_id, names)).items():
            if isinstance(outcome, ClientError):
                results.append(probe_error("transactions", name, ctx.error_of(outcome)))
            elif outcome.state not in IDLE:
                results.append(probe_result(name, _known(outcome, held)))
    return results


def _known(each: TransactionDescription, held: Held) -> Transaction:
    def first_offset(tp: TopicPartition) -> int | None:
        producer = held.get((tp, each.producer_id))
        return None if producer is None else producer.first_offset

    return Transaction(
        id=each.transactional_id,
        state=each.state,
        producer=each.producer_id,
        producer_epoch=each.producer_epoch,
        started=each.started_ms,
        timeout=each.timeout_ms,
        partitions=tuple(
            TransactionPartition(topic=tp.topic, partition=tp.partition, first_offset=first_offset(tp))
            for tp in each.partitions
        ),
    )


async def _unknown(ctx: ProbeContext, before: Held, known: set[int]) -> list[ProbeResult]:
    suspects = {key: each for key, each in before.items() if each.producer_id not in known}
    after = await _held(ctx, sorted({tp for tp, _ in suspects}))
    producers: dict[int, list[tuple[TopicPartition, OpenProducer]]] = {}
    for (tp, producer), each in suspects.items():
        now = after.get((tp, producer))
        if now is not None and now.first_offset == each.first_offset:
            producers.setdefault(producer, []).append((tp, each))
    return [
        probe_result(f"producer:{producer}", _nobodys(producer, held)) for producer, held in sorted(producers.items())
    ]


def _nobodys(producer: int, held: list[tuple[TopicPartition, OpenProducer]]) -> Transaction:
    return Transaction(
        producer=producer,
        producer_epoch=held[0][1].producer_epoch,
        started=held[0][1].last_written_ms,
        partitions=tuple(
            TransactionPartition(topic=tp.topic, partition=tp.partition, first_offset=each.first_offset)
            for tp, each in held
        ),
    )
