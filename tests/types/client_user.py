"""How a user's typed program meets ottla.client; mypy checks that each answer has its type."""

from typing import assert_type

from ottla.client import (
    EARLIEST,
    LATEST,
    Client,
    ClientError,
    ConsumerRecord,
    Delivered,
    Producer,
    ShareConsumer,
    ShareRecord,
    TopicPartition,
    fetch,
    topics,
)
from ottla.client.share import Acquired
from ottla.wire.types import FetchRequest, FetchResponse, ShareGroupDescribeRequest, ShareGroupDescribeResponse


async def use(client: Client) -> None:
    assert_type(await client.send(FetchRequest(), partition=("orders", 0)), FetchResponse)
    share = await client.send(ShareGroupDescribeRequest(), coordinator=("group", "payments"), version=1)
    assert_type(share, ShareGroupDescribeResponse)
    assert_type(await Producer(client, acks="all").send("orders", b"tea"), Delivered)
    assert_type(await topics.describe(client, "orders"), list[topics.TopicDescription])
    async for record in fetch(client, {("orders", 0): EARLIEST}, until=LATEST, isolation="read_committed"):
        assert_type(record, ConsumerRecord)
        assert_type(record.value, bytes | None)
    async with ShareConsumer(client, "workers", ["jobs"], acknowledgement="explicit") as consumer:
        async for job in consumer:
            assert_type(job, ShareRecord)
            consumer.accept(job)
        assert_type(await consumer.poll(), list[Acquired])
        assert_type(await consumer.commit(), dict[TopicPartition, ClientError | None])

    ShareConsumer(client, "workers", ["jobs"], acknowledgement="both")  # type: ignore[arg-type]
    await client.send(FetchRequest(), partition="orders")  # type: ignore[call-overload]
    await client.send(FetchRequest(), node=1)  # type: ignore[call-overload]
    Client("localhost:9092", clientid="me")  # type: ignore[call-arg]
    Client("localhost:9092", request_timeout_ms="5")  # type: ignore[arg-type]
    fetch(client, {("orders", 0): 0}, isolation="serializable")  # type: ignore[arg-type]
