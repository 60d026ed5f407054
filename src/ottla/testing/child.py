"""A broker under test in a process of its own: `runners.ProcessRunner` starts `python -m ottla.testing.child`."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from typing import Any

from ottla.testing.node_host import NodeHost


async def serve() -> None:
    lines: asyncio.Queue[str] = asyncio.Queue()
    threading.Thread(target=_read, args=(asyncio.get_running_loop(), lines), daemon=True).start()
    first = json.loads(await lines.get())
    host = NodeHost(first["settings"], durable=first["durable"])
    try:
        _answer(value=await host.start(first["listeners"], first["shift_ms"]))
    except Exception as error:  # noqa: BLE001  # whatever it is, our parent wants to know it
        _answer(error=f"the broker does not start: {error}")
        return
    host.on_failure = lambda: lines.put_nowait("")
    while line := await lines.get():
        order = json.loads(line)
        if order["command"] == "stop":
            await host.end(clean=True)
            _answer(value=None)
            return
        _answer(value=host.perform(order["command"], order["arguments"]))


def _read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str]) -> None:
    """Pass the lines of standard input on; an empty line means its end."""
    for line in sys.stdin:
        loop.call_soon_threadsafe(lines.put_nowait, line)
    loop.call_soon_threadsafe(lines.put_nowait, "")


def _answer(**answer: Any) -> None:  # noqa: ANN401
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(serve())
