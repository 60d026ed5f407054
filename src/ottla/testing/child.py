"""A broker under test in a process of its own: `runners.ProcessRunner` starts `python -m ottla.testing.child`."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from ottla.testing.children import answer, orders
from ottla.testing.node_host import NodeHost


async def serve() -> None:
    given = orders()
    first = await anext(given)
    host = NodeHost(first["settings"], durable=first["durable"])
    try:
        answer(value=await host.start(first["listeners"], first["shift_ms"]))
    except Exception as error:  # noqa: BLE001  # whatever it is, our parent wants to know it
        answer(error=f"the broker cannot start: {error}")
        return
    this_task = asyncio.current_task()
    assert this_task is not None

    def failed() -> None:
        this_task.cancel()

    host.on_failure = failed
    async for order in given:
        if order["command"] == "stop":
            await host.end(clean=True)
            answer(value=None)
            return
        answer(value=host.perform(order["command"], order["arguments"]))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    with contextlib.suppress(asyncio.CancelledError):  # the node has failed
        asyncio.run(serve())
