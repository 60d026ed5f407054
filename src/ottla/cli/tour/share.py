"""The tour through share groups: two workers share a queue, and one job makes them fail."""

import asyncio
from typing import TYPE_CHECKING

from rich.text import Text

from ottla.cli.tour.step import Stage, Step

if TYPE_CHECKING:
    from ottla.client import Client, ShareConsumer, ShareRecord
    from ottla.inflight.window import Window

GROUP, TOPIC = "workers", "jobs"
JOBS = [b"resize 1", b"resize 2", b"poison", b"resize 3", b"resize 4", b"resize 5"]
POISON = 2
LIMIT = 3
"""The delivery limit of a record."""


def queue(stage: Stage) -> None:
    import ottla.testing

    with ottla.testing.broker(auto_create_topics_enable=False, group_share_delivery_count_limit=LIMIT) as broker:
        stage.code('async with ShareConsumer(client, "workers", ["jobs"], acknowledgement="explicit") as consumer: ...')
        asyncio.run(_work(stage, broker.bootstrap_servers))
        broker.kill()
        broker.restart()
        left = asyncio.run(_left(broker.bootstrap_servers))
        stage.check("after a crash and a restart nothing is delivered again", left == [])


async def _work(stage: Stage, bootstrap_servers: str) -> None:
    from ottla.client import Client, Producer, ProducerRecord, ShareConsumer, topics

    async with Client(bootstrap_servers) as client:
        await topics.create(client, topics.NewTopic(TOPIC, partitions=1))
        await _from_the_beginning(client)
        await Producer(client).send_all([ProducerRecord(TOPIC, job) for job in JOBS])
        one = ShareConsumer(
            client, GROUP, [TOPIC], acknowledgement="explicit", acquire_mode="record_limit", max_records=3
        )
        two = ShareConsumer(client, GROUP, [TOPIC], acknowledgement="explicit")
        async with one, two:
            first, second = await _take(one), await _take(two)
            offsets = [record.offset for record in (*first, *second)]
            stage.check("two workers have the same partition, and no job twice", offsets == list(range(len(JOBS))))
            _do(stage, "one", one, first)
            _do(stage, "two", two, second)
            await one.commit()
            await two.commit()
            _show(stage, await _window(client))
            await _try_again(stage, one)
        from ottla.client.group_offsets import share_starts

        (standing,) = (await share_starts(client, GROUP)).values()
        stage.show(Text(f"$ ottla share offsets {GROUP}", style="bold"))
        stage.show(f"  {standing.lag} records left")
        stage.check(f"the job that failed {LIMIT} times is archived, and the queue is empty", standing.lag == 0)


async def _from_the_beginning(client: "Client") -> None:
    from ottla.client.configs import Change, Operation, Resource, ResourceType, alter

    earliest = Change(Operation.SET, "share.auto.offset.reset", "earliest")
    await alter(client, Resource(ResourceType.GROUP, GROUP), [earliest])


async def _take(consumer: "ShareConsumer") -> "list[ShareRecord]":
    """The next jobs."""
    while not (found := await consumer.poll()):
        pass
    return [record for acquired in found for record in acquired.records()]


def _do(stage: Stage, name: str, consumer: "ShareConsumer", records: "list[ShareRecord]") -> None:
    """Accept what can be done, and release what cannot."""
    for record in records:
        is_done = record.value != b"poison"
        (consumer.accept if is_done else consumer.release)(record)
        outcome = "done" if is_done else f"failed, delivery {record.delivery_count} of {LIMIT}"
        stage.show(f"  {name}: {(record.value or b'').decode()}: {outcome}")


async def _try_again(stage: Stage, consumer: "ShareConsumer") -> None:
    counts = [1]
    while counts[-1] < LIMIT:
        records = await _take(consumer)
        counts += [record.delivery_count for record in records]
        _do(stage, "one", consumer, records)
        await consumer.commit()
    stage.check("only the failed job is redelivered, and its deliveries are counted", counts == [1, 2, 3])


async def _window(client: "Client") -> "Window":
    from ottla.cli.share.find import group_windows, share_group

    (window,) = await group_windows(client, await share_group(client, GROUP))
    return window


def _show(stage: Stage, window: "Window") -> None:
    stage.show(Text(f"$ ottla share inflight {GROUP}", style="bold"))
    for each in window.ranges:
        stage.show(f"  {each.first_offset}-{each.last_offset} {each.state}, delivered {each.delivery_count} times")
    waiting = [(each.first_offset, each.last_offset) for each in window.ranges if each.state == "AVAILABLE"]
    stage.check("the failed job stays in flight; later jobs are done", waiting == [(POISON, POISON)])


async def _left(bootstrap_servers: str) -> "list[ShareRecord]":
    """The records that are still delivered."""
    from ottla.client import Client, ShareConsumer

    async with Client(bootstrap_servers) as client, ShareConsumer(client, GROUP, [TOPIC]) as consumer:
        while not consumer.assignment:
            await consumer.poll()
        return [record for acquired in await consumer.poll() for record in acquired.records()]


STEPS = (
    Step(
        "a share group",
        "A topic as a queue: each job is delivered to one worker, and is locked until the worker acknowledges it.",
        queue,
    ),
)
