"""`python -m ottla.cli.demo.workloads NAME ORDERS`: one workload, until its standard input is closed."""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable

from ottla.cli.demo.workloads import classic, consumer, producers, share, streams
from ottla.cli.demo.workloads.ordered import Ordered, ordered

WORKLOADS: dict[str, Callable[[Ordered], Awaitable[None]]] = {
    "classic": classic.run,
    "consumer": consumer.run,
    "producers": producers.run,
    "share": share.run,
    "streams": streams.run,
}


async def work(name: str, orders: str) -> None:
    given = ordered(json.loads(orders))
    given.journal.note("began")
    await WORKLOADS[name](given)
    given.journal.note("ended")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(work(*sys.argv[1:]))
