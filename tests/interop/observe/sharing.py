"""A share group at work while it is observed: records accepted, released, rejected and given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from ottla.client import Client, Producer, ProducerRecord, ShareConsumer, topics
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter
from ottla.health.samples import Sample
from ottla.observe import QUIET, Observer, Options
from ottla.observe.kinds import INTERVALS_S

GROUP, TOPIC = "risk-checks", "payments"
RECORDS, LIMIT = 10, 2
REJECTED, POISON = 3, 7
EVERY_S = 0.2
TIMEOUT_S = 60
LIMITS = {"group.share.min.delivery.count.limit": str(LIMIT)}
"""What the broker must allow for groups to have the limit."""


class Seen:
    """The samples so far, for those who wait for one."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._is_new = asyncio.Event()

    def take(self, sample: Sample) -> None:
        self.samples.append(sample)
        self._is_new.set()

    async def until(self, is_so: Callable[[list[Sample]], bool]) -> None:
        while not is_so(self.samples):
            self._is_new.clear()
            await self._is_new.wait()


class Observed(NamedTuple):
    samples: list[Sample]

    def of(self, kind: str) -> list[Sample]:
        return [each for each in self.samples if each.kind == kind and each.body is not None]


async def observed_work(servers: str, metrics: tuple[str, ...] = ()) -> Observed:
    """One record is rejected, one is released until it is given up, and all others are accepted."""
    seen = Seen()
    options = Options(dict.fromkeys(INTERVALS_S, EVERY_S), metrics=metrics)
    async with asyncio.timeout(TIMEOUT_S), Client(servers, **QUIET) as watching, Client(servers) as working:
        await _prepare(working)
        observer = Observer(watching, "run", options, on_sample=seen.take)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(observer.run())
            # The first consumer makes the topic of the state; its tail is read from where it ends when first seen.
            async with ShareConsumer(working, GROUP, [TOPIC], acknowledgement="explicit") as consumer:
                await seen.until(_has_tail)
                await _work(working, consumer, seen, sees_windows=bool(metrics))
                await seen.until(lambda samples: _is_told(samples, metrics))
            observer.stop()
    return Observed(seen.samples)


async def _prepare(client: Client) -> None:
    await topics.create(client, topics.NewTopic(TOPIC, partitions=1))
    settings = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": str(LIMIT)}
    changes = [Change(Operation.SET, key, value) for key, value in settings.items()]
    await alter(client, Resource(ResourceType.GROUP, GROUP), changes)


async def _work(client: Client, consumer: ShareConsumer, seen: Seen, *, sees_windows: bool) -> None:
    """The records stay in flight until they were seen so, if that can be."""
    await Producer(client).send_all([ProducerRecord(TOPIC, b"%d" % number) for number in range(RECORDS)])
    settled: set[int] = set()
    given_up = 0
    while len(settled) < RECORDS - 1 or given_up < LIMIT:
        for record in [record for acquired in await consumer.poll() for record in acquired.records()]:
            if record.offset == POISON:
                consumer.release(record)
                given_up += 1
            elif record.offset == REJECTED:
                consumer.reject(record)
                settled.add(record.offset)
            else:
                consumer.accept(record)
                settled.add(record.offset)
        if sees_windows and settled:
            await seen.until(lambda samples: any(each.kind == "share_window" and each.body for each in samples))
        await consumer.commit()


def _has_tail(seen: list[Sample]) -> bool:
    """Whether the topic of the state was seen, and its tail looked at since."""
    known = [each.seq for each in seen if each.kind == "topic" and each.entity == "__share_group_state"]
    looks = [each.seq for each in seen if each.kind == "share_offsets" and each.body is not None]
    return bool(known) and sum(seq > known[0] for seq in looks) >= 3


def _is_told(seen: list[Sample], metrics: tuple[str, ...]) -> bool:
    archived = [
        batch
        for each in seen
        if each.kind == "share_state" and each.body is not None
        for batch in each.body.get("batches", ())
        if batch["state"] == 4 and batch["first"] <= POISON <= batch["last"]
    ]
    counted = [each for each in seen if each.kind == "share_metrics" and (each.body or {}).get("rejected") == 1]
    return bool(archived) and (bool(counted) or not metrics)
