"""A small asyncio client for any Kafka cluster.

    from ottla.client import EARLIEST, LATEST, Client, Producer, fetch, topics

    async with Client("localhost:9092") as client:
        await topics.create(client, topics.NewTopic("orders", partitions=3))
        await Producer(client).send("orders", b"tea", key=b"alice", partition=0)
        async for record in fetch(client, {("orders", 0): EARLIEST}, until=LATEST):
            ...
        async with ShareConsumer(client, "workers", ["orders"]) as consumer:
            async for record in consumer:    # asking for the next one accepts it
                ...
        answer = await client.send(DescribeClusterRequest())    # every API, by its message

What is not named here lies in the modules: `topics`, `configs`, `cluster`, `groups`, `offsets`, `errors`, `sasl`.
"""

from ottla.client.client import Client
from ottla.client.errors import ClientError, ResponseError
from ottla.client.fetcher import ConsumerRecord, Fetcher, fetch
from ottla.client.metadata import TopicPartition
from ottla.client.offsets import EARLIEST, LATEST, delete_records, list_offsets
from ottla.client.producer import Delivered, Producer, ProducerRecord
from ottla.client.sasl import Plain, Scram
from ottla.client.share import AcknowledgeType, ShareConsumer, ShareRecord

__all__ = [
    "EARLIEST",
    "LATEST",
    "AcknowledgeType",
    "Client",
    "ClientError",
    "ConsumerRecord",
    "Delivered",
    "Fetcher",
    "Plain",
    "Producer",
    "ProducerRecord",
    "ResponseError",
    "Scram",
    "ShareConsumer",
    "ShareRecord",
    "TopicPartition",
    "delete_records",
    "fetch",
    "list_offsets",
]
