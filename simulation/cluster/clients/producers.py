"""Producers: idempotent ones, and those that write in transactions."""

from __future__ import annotations

from typing import Final

from ottla.client import transactions
from ottla.client.errors import ClientError
from ottla.client.metadata import TopicPartition
from ottla.client.producer import Producer, ProducerRecord
from simulation.cluster.clients.client import SimulatedClient

__all__ = ["HastyProducer", "IdempotentProducer", "TransactionalProducer"]

_DELIVERY_TIMEOUT_MS: Final = 4_000
_PATIENT_TIMEOUT_MS: Final = 12_000
_TRANSACTION_TIMEOUT_MS: Final = 3_000


class IdempotentProducer(SimulatedClient):
    """Writes values that nobody else writes, each of them once."""

    KIND = "producer"

    _serial = 0

    async def work(self) -> None:
        topic = await self.data_topic()
        timeout_ms = _PATIENT_TIMEOUT_MS if self.is_patient else _DELIVERY_TIMEOUT_MS
        producer = Producer(self.client, idempotent=True, delivery_timeout_ms=timeout_ms)
        for _ in range(self.random.randint(1, 20)):
            await self.pause(*((5, 100) if self.world.shape.is_about_replication else (20, 500)))
            self._serial += 1
            value, partition = f"{self.name}:{self._serial}", self.random.randrange(self.partitions)

            async def send(value: str = value, partition: int = partition) -> tuple[int, int | None]:
                at = await producer.send(topic, value.encode(), partition=partition, timestamp_ms=self.world.wall_ms())
                return at.partition, at.offset

            await self.do("produce", value, send)
            if self.is_over:
                return


class HastyProducer(SimulatedClient):
    """Writes with acks=1: what only a leader has is lost with it, and must be cut when it comes back."""

    KIND = "hasty"

    _serial = 0

    async def work(self) -> None:
        topic = await self.data_topic()
        producer = Producer(self.client, acks=1, delivery_timeout_ms=_DELIVERY_TIMEOUT_MS)
        for _ in range(self.random.randint(1, 20)):
            await self.pause(5, 100)
            self._serial += 1
            value = f"{self.name}:{self._serial}".encode()
            partition = self.random.randrange(self.partitions)
            await producer.send(topic, value, partition=partition, timestamp_ms=self.world.wall_ms())
            if self.is_over:
                return


class TransactionalProducer(SimulatedClient):
    """Writes some values to several partitions, and commits or aborts them together, with or without an offset."""

    KIND = "transactional"

    _serial = 0

    async def work(self) -> None:
        await self.pause(*((5, 200) if self.world.shape.is_about_coordinators else (50, 800)))
        topic = await self.data_topic()
        identity = await self.do("take id", self.name, self._begin)
        if identity is None:
            return
        producer = Producer(self.client, identity=identity, delivery_timeout_ms=_DELIVERY_TIMEOUT_MS)
        # Before transaction version 2 all transactions of a producer have one epoch.
        for _ in range(1 if identity.is_implicit else self.random.randint(1, 8)):
            if self.is_over or not await self._transaction(topic, identity, producer):
                return
            producer.begin_next()

    async def _transaction(self, topic: str, identity: transactions.Identity, producer: Producer) -> bool:
        """Whether another one may follow."""
        self._serial += 1
        values = [f"{self.name}:{self._serial}.{number}" for number in range(self.random.randint(1, 5))]
        records = [
            ProducerRecord(
                topic,
                value.encode(),
                partition=self.random.randrange(self.partitions),
                timestamp_ms=self.world.wall_ms(),
            )
            for value in values
        ]
        mark = self.world.next_mark() if self.random.random() < 0.5 else None
        wants_commit = self.random.random() < 0.7
        history = self.world.history
        number = history.begin(self.name, "transaction", (tuple(values), mark, wants_commit))
        try:
            await producer.send_all(records)
            if mark is not None:
                marks = {TopicPartition(topic, 0): transactions.Mark(mark)}
                await transactions.commit_offsets(self.client, identity, f"group of {self.name}", marks)
            await self.pause(0, 300)
        except ClientError:
            wants_commit = False
        outcome, error = None, ""
        try:
            await transactions.end(self.client, identity, commit=wants_commit)
            outcome = "committed" if wants_commit else "aborted"
        except ClientError as failure:
            error = type(failure).__name__
        history.end(number, result=outcome, error=error, subject=(tuple(values), mark, wants_commit))
        return outcome == "committed"

    async def _begin(self) -> transactions.Identity:
        return await transactions.begin(self.client, self.name, timeout_ms=_TRANSACTION_TIMEOUT_MS)
