"""Transactions as their coordinators know them, and the producers that hold some open in partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.client.client import Answer, Client, always
from ottla.client.each_broker import at_each_broker
from ottla.client.errors import ClientError, ResponseError, check
from ottla.client.leaders import LeaderCall, Outcomes, Reply, by_topic
from ottla.client.metadata import TopicPartition
from ottla.wire.types.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    DescribeProducersResponse,
)
from ottla.wire.types.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ottla.wire.types.list_transactions import ListTransactionsRequest, ListTransactionsResponse

__all__ = [
    "IDLE",
    "STATES",
    "ListedTransaction",
    "OpenProducer",
    "TransactionDescription",
    "open_producers",
    "try_describe",
    "try_list",
]

AT_A_TIME: Final = 100
STATES: Final = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
"""What coordinators call the states of a transaction."""
IDLE: Final = frozenset({"Empty", "Dead", "CompleteCommit", "CompleteAbort"})
"""The states in which nothing is open."""


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    started_ms: int | None
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]


class OpenProducer(NamedTuple):
    """A producer that has a transaction open in a partition."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_written_ms: int | None
    coordinator_epoch: int = 0
    """Of the coordinator that last ended a transaction of this producer here."""


async def try_list(client: Client, brokers_max: int | None = None) -> dict[int, list[ListedTransaction] | ClientError]:
    """What each coordinator lists, or why it does not; of at most so many."""
    return await at_each_broker(client, lambda node_id: _list_at(client, node_id), brokers_max)


async def _list_at(client: Client, node_id: int) -> list[ListedTransaction]:
    answer = await client.ask("ListTransactions", always(ListTransactionsRequest()), broker=node_id)
    body = answer.of(ListTransactionsResponse)
    check(answer.peer, "ListTransactions", body.error_code)
    return [
        ListedTransaction(each.transactional_id, each.producer_id, each.transaction_state, node_id)
        for each in body.transaction_states
    ]


async def try_describe(
    client: Client, node_id: int, transactional_ids: Sequence[str]
) -> dict[str, TransactionDescription | ClientError]:
    """Transactions that one broker coordinates, or of each why it cannot be described."""
    outcomes: dict[str, TransactionDescription | ClientError] = {}
    for begin in range(0, len(transactional_ids), AT_A_TIME):
        some = tuple(transactional_ids[begin : begin + AT_A_TIME])
        try:
            answer = await client.ask("DescribeTransactions", always(DescribeTransactionsRequest(some)), broker=node_id)
        except ClientError as error:
            outcomes |= dict.fromkeys(some, error)
        else:
            outcomes |= _described(answer)
    return outcomes


def _described(answer: Answer) -> dict[str, TransactionDescription | ClientError]:
    outcomes: dict[str, TransactionDescription | ClientError] = {}
    for each in answer.of(DescribeTransactionsResponse).transaction_states:
        name = each.transactional_id
        outcomes[name] = TransactionDescription(
            name,
            each.producer_id,
            each.producer_epoch,
            each.transaction_state,
            None if each.transaction_start_time_ms < 0 else each.transaction_start_time_ms,
            each.transaction_timeout_ms,
            tuple(TopicPartition(topic.topic, index) for topic in each.topics for index in topic.partitions),
        )
        if each.error_code:
            outcomes[name] = ResponseError(answer.peer, "DescribeTransactions", each.error_code, f"transaction {name}")
    return outcomes


async def open_producers(client: Client, partitions: Iterable[TopicPartition]) -> Outcomes[tuple[OpenProducer, ...]]:
    """Who holds a transaction open in each of these partitions, as their leaders know."""

    def build(some: list[TopicPartition], _: int) -> DescribeProducersRequest:
        return DescribeProducersRequest(
            tuple(
                DescribeProducersRequestTopicRequest(name, tuple(at.partition for at in each))
                for name, each in by_topic(some).items()
            )
        )

    return await LeaderCall("DescribeProducers", build, _read_producers).ask(client, partitions, client.deadline())


def _read_producers(answer: Answer) -> Iterable[Reply[tuple[OpenProducer, ...]]]:
    for topic in answer.of(DescribeProducersResponse).topics:
        for partition in topic.partitions:
            held = tuple(
                OpenProducer(
                    each.producer_id,
                    each.producer_epoch,
                    each.current_txn_start_offset,
                    None if each.last_timestamp < 0 else each.last_timestamp,
                    max(0, each.coordinator_epoch),
                )
                for each in partition.active_producers
                if each.current_txn_start_offset >= 0
            )
            at = TopicPartition(topic.name, partition.partition_index)
            yield Reply(at, partition.error_code, partition.error_message, held)
