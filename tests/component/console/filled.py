"""What the tests of the console write to a cluster before they look at it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.client import Client, Producer, ProducerRecord, topics
from ottla.client.topics import NewTopic
from ottla.testing import Broker
from tests.component.console.served import Browser

T = TypeVar("T")

OTHERS = ("/groups", "/nodes", "/findings", "/quorum", "/transactions", "/security", "/wire", "/pipeline")
"""Pages that other modules test."""


def on(broker: Broker, work: Callable[[Client], Awaitable[T]]) -> T:
    async def run() -> T:
        async with Client(broker.bootstrap_servers) as client:
            return await work(client)

    return asyncio.run(run())


def create(broker: Broker, *wanted: NewTopic) -> None:
    on(broker, lambda client: topics.create(client, *wanted))


def produce(broker: Broker, *records: ProducerRecord, codec: str = "none") -> None:
    async def send(client: Client) -> None:
        await Producer(client, compression=codec, idempotent=True).send_all(records)

    on(broker, send)


def every_link_answers(browser: Browser, path: str) -> None:
    """Follow the links of a page to pages about topics."""
    page = browser.page(path)
    links = [each.replace("&amp;", "&") for each in page.links]
    for link in {each for each in links if each.startswith("/") and not each.startswith(("/static/", *OTHERS))}:
        assert browser.ask(link).status == 200, (path, link)
