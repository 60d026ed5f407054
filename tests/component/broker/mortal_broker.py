"""A broker that dies in a write: `python -m tests.component.broker.mortal_broker DIRECTORY NUMBER END PLUGIN`.

Of the writes to the logs of groups and of descriptions, the one of this number (0: none) does not return: half of its
bytes are written, or all of them, and the process is killed by a signal that it cannot catch. It prints its port, and
for each line that it reads how many such writes there were.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Sequence

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.node import Node
from ottla.log.disk import Buffer, OsDisk, OsFile

FOLDERS = ("__consumer_offsets-", "__ottla_topology_descriptions-")


class MortalFile(OsFile):
    owner: MortalDisk

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        disk = self.owner
        disk.count += 1
        if disk.count == disk.last:
            data = b"".join(bytes(each) for each in buffers)
            super().write([data[: len(data) // 2] if disk.is_half else data], position)
            os.kill(os.getpid(), signal.SIGKILL)
        super().write(buffers, position)


class MortalDisk(OsDisk):
    def __init__(self, last: int, *, is_half: bool) -> None:
        super().__init__(durable=False)
        self.last, self.is_half, self.count = last, is_half, 0

    def open(self, path: str, *, create: bool = False) -> OsFile:
        file = super().open(path, create=create)
        if not any(folder in path for folder in FOLDERS):
            return file
        mortal = MortalFile(os.dup(file.fileno()))
        mortal.owner = self
        file.close()
        return mortal


def say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


async def serve(directory: str, last: int, is_half: bool, plugin: str) -> None:
    config = NodeConfig(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "log.dirs": directory,
            "group.streams.topology.description.plugin.class": plugin,
        }
    )
    disk = MortalDisk(last, is_half=is_half)
    node = await Node.start(config, disk=disk)
    say(node.advertised["PLAINTEXT"].port)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def read() -> None:
        for _ in sys.stdin:
            say(disk.count)
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=read, daemon=True).start()
    await ended.wait()
    await node.kill()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "half", sys.argv[4]))
