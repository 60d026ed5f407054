"""The workers of the share group. They check payments, and release those that they cannot check.

A payment with an unreadable card is released every time, until the broker archives it. During a `storm`, nine of ten
other payments are released, too, as if a downstream service were failing; at its third delivery a payment is always
accepted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Final

from ottla.cli.demo.journal import Journal
from ottla.cli.demo.plan import ACCEPTED_AT, PAYMENTS, RELEASED_SHARE, RISK_CHECKS, RISK_WORKERS
from ottla.cli.demo.workloads.member import passing
from ottla.cli.demo.workloads.ordered import Ordered
from ottla.cli.demo.workloads.producers import POISON
from ottla.cli.demo.workloads.ranges import Range, ranges_of
from ottla.client import AcknowledgeType, ClientError, ShareConsumer, ShareRecord, TopicPartition
from ottla.client.share.acknowledgements import AcknowledgementBatch

__all__ = ["STORM", "run"]

STORM: Final = "storm"
MAX_RECORDS: Final = 50
POLL_MS: Final = 300


async def run(given: Ordered) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, RISK_WORKERS + 1):
            tasks.create_task(_Worker(given, f"risk-{number}").work())


class _Worker:
    def __init__(self, given: Ordered, name: str) -> None:
        self._given = given
        self._name = name
        self._random = Random(f"{name} {given.plan.seed}")

    async def work(self) -> None:
        given = self._given
        client = given.client_named(self._name)
        async with (
            client,
            ShareConsumer(
                client,
                RISK_CHECKS,
                [PAYMENTS],
                acknowledgement="explicit",
                max_records=MAX_RECORDS,
                max_wait_ms=POLL_MS,
                on_acknowledged=_Kept(given.journal, self._name),
            ) as consumer,
        ):
            while not given.ended.is_set():
                await passing(self._turn(consumer))

    async def _turn(self, consumer: ShareConsumer) -> None:
        delivered: Counter[int] = Counter()
        for acquired in await consumer.poll(POLL_MS):
            for record in acquired.records():
                delivered[record.delivery_count] += 1
                consumer.acknowledge(self._verdict(record), record)
        if delivered:
            self._given.journal.note("delivered", worker=self._name, counts=dict(delivered))
        await consumer.commit()

    def _verdict(self, record: ShareRecord) -> AcknowledgeType:
        if POISON.encode() in (record.value or b""):
            return AcknowledgeType.RELEASE
        is_storm = self._given.told == STORM and record.delivery_count < ACCEPTED_AT
        if is_storm and self._random.random() < RELEASED_SHARE:
            return AcknowledgeType.RELEASE
        return AcknowledgeType.ACCEPT


class _Kept:
    """Records which acknowledgements the broker has confirmed, and whose outcome is unknown."""

    def __init__(self, journal: Journal, name: str) -> None:
        self._journal = journal
        self._name = name

    def __call__(
        self, at: TopicPartition, batches: tuple[AcknowledgementBatch, ...], error: ClientError | None
    ) -> None:
        accepted = _accepted(at, batches)
        if accepted:
            self._journal.note("accepted" if error is None else "doubted", worker=self._name, ranges=accepted)


def _accepted(at: TopicPartition, batches: tuple[AcknowledgementBatch, ...]) -> list[Range]:
    offsets = [
        (at, offset)
        for first, last, types in batches
        for offset, verdict in zip(range(first, last + 1), types * (last - first + 1), strict=False)
        if verdict == AcknowledgeType.ACCEPT
    ]
    return ranges_of(offsets)
