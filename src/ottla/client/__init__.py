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

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
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

_HOMES: Final = {
    "client": ("Client",),
    "errors": ("ClientError", "ResponseError"),
    "fetcher": ("ConsumerRecord", "Fetcher", "fetch"),
    "metadata": ("TopicPartition",),
    "offsets": ("EARLIEST", "LATEST", "delete_records", "list_offsets"),
    "producer": ("Delivered", "Producer", "ProducerRecord"),
    "sasl": ("Plain", "Scram"),
    "share": ("AcknowledgeType", "ShareConsumer", "ShareRecord"),
}
"""Module -> its names here. They are loaded when they are used: whoever imports one module needs not all of them."""


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            found: object = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
