"""The tour through the broker."""

import asyncio
import time

from rich.text import Text

from ottla.cli.tour.step import Stage, Step

ORDERS = [b"tea", b"coffee", b"cake"]


def serve(stage: Stage) -> None:
    import ottla.testing

    began = time.perf_counter()
    with ottla.testing.broker(auto_create_topics_enable=False) as broker:
        took_ms = (time.perf_counter() - began) * 1000
        stage.code("with ottla.testing.broker() as broker: ...")
        stage.show(f"ready at {broker.bootstrap_servers} after {took_ms:.0f} ms")
        read = asyncio.run(_produce_and_fetch(broker.bootstrap_servers))
        for offset, value in enumerate(read):
            stage.show(f"  offset {offset}: {value.decode()}")
        stage.check("the produced records are fetched", read == ORDERS)
        broker.kill()
        broker.restart()
        again = asyncio.run(_fetch(broker.bootstrap_servers))
        stage.check("the records are still there after a crash and a restart", again == ORDERS)
    stage.show(Text("As a separate process, for any client: ottla serve --data DIR", style="bold"))


async def _produce_and_fetch(bootstrap_servers: str) -> list[bytes]:
    from ottla.client import Client, Producer, topics

    async with Client(bootstrap_servers) as client:
        await topics.create(client, topics.NewTopic("orders", partitions=1))
        producer = Producer(client)
        for value in ORDERS:
            await producer.send("orders", value, partition=0)
    return await _fetch(bootstrap_servers)


async def _fetch(bootstrap_servers: str) -> list[bytes]:
    from ottla.client import EARLIEST, LATEST, Client, fetch

    async with Client(bootstrap_servers) as client:
        return [bytes(record.value or b"") async for record in fetch(client, {("orders", 0): EARLIEST}, until=LATEST)]


STEPS = (Step("a broker", "A node that serves clients and keeps every acknowledged record.", serve),)
