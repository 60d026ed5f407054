"""A member of a share group in a process of its own, which writes down what it is given and what it is told.

    python -m tests.interop.share.member_process SERVERS GROUP TOPIC HISTORY SEED [accept]

One line for each event, with the time first: `d PARTITION OFFSET COUNT` for a delivery, `s PARTITION OFFSET TYPE` for
an acknowledgement before it is sent, `a PARTITION OFFSET TYPE ERROR` when it is answered. It is meant to be killed.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from typing import TextIO

from ottla.client import Client, TopicPartition
from ottla.client.errors import ClientError
from ottla.client.share.acknowledgements import AcknowledgementBatch
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.records import AcknowledgeType, Acquired

KINDS = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, None)
WEIGHTS = (70, 15, 5, 10)


class Member:
    def __init__(self, history: TextIO, seed: int, accepts_all: bool) -> None:
        self._history = history
        self._random = random.Random(seed)
        self._accepts_all = accepts_all

    def note(self, *words: object) -> None:
        """Written at once: the next moment may be the last."""
        self._history.write(f"{time.monotonic():.6f} {' '.join(map(str, words))}\n")
        self._history.flush()

    def acknowledged(
        self, at: TopicPartition, batches: tuple[AcknowledgementBatch, ...], error: ClientError | None
    ) -> None:
        for first, last, types in batches:
            for index, offset in enumerate(range(first, last + 1)):
                kind = types[index if len(types) > 1 else 0]
                self.note("a", at.partition, offset, int(kind), getattr(error, "code", 0 if error is None else "lost"))

    async def take(self, consumer: ShareConsumer, acquired: Acquired) -> None:
        for record in acquired.records():
            self.note("d", record.partition, record.offset, record.delivery_count)
            (kind,) = (KINDS[0],) if self._accepts_all else self._random.choices(KINDS, WEIGHTS)
            if kind is not None:
                self.note("s", record.partition, record.offset, int(kind))
                consumer.acknowledge(kind, record)
        if self._random.random() < 0.5:
            await consumer.commit(5_000)


async def run(servers: str, group: str, topic: str, member: Member) -> None:
    while True:
        try:
            async with Client(servers) as client:
                how = {"acknowledgement": "explicit", "max_records": 20, "on_acknowledged": member.acknowledged}
                async with ShareConsumer(client, group, [topic], **how) as consumer:  # type: ignore[arg-type]
                    async for acquired in consumer.batches():
                        await member.take(consumer, acquired)
        except ClientError as error:
            member.note("e", type(error).__name__)
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    servers, group, topic, path, seed, *rest = sys.argv[1:]
    with open(path, "a") as history:
        asyncio.run(run(servers, group, topic, Member(history, int(seed), bool(rest))))
