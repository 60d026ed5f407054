"""A share group that holds some records of a topic, and has accepted, released and rejected others."""

from __future__ import annotations

from typing import Any

from ottla.client import Client, Producer, ProducerRecord, ShareConsumer, topics
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter

JOBS = "jobs"


async def begin_with(client: Client, *groups: str) -> None:
    """Ten records in the topic `jobs`, which these groups read from the beginning."""
    await topics.create(client, topics.NewTopic(JOBS, partitions=1))
    for group in groups:
        earliest = Change(Operation.SET, "share.auto.offset.reset", "earliest")
        await alter(client, Resource(ResourceType.GROUP, group), [earliest])
    await Producer(client).send_all([ProducerRecord(JOBS, b"%d" % number) for number in range(10)])


async def worker(client: Client, group: str) -> ShareConsumer:
    """Of ten records 0 and 1 are accepted, 2 is released, 3 is rejected, 4 is accepted; of the rest three are held."""
    consumer = await ShareConsumer(
        client, group, [JOBS], acknowledgement="explicit", acquire_mode="record_limit", max_records=5
    ).__aenter__()
    for record in await polled(consumer):
        verdict = {2: consumer.release, 3: consumer.reject}.get(record.offset, consumer.accept)
        verdict(record)
    await consumer.commit()
    held = {record.offset for record in await polled(consumer)}
    assert held == {2, 5, 6, 7, 8}, held
    return consumer


async def polled(consumer: ShareConsumer) -> list[Any]:
    while not (found := await consumer.poll()):
        pass
    return [record for acquired in found for record in acquired.records()]
