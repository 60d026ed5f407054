"""Apache Kafka in the place of the story's nodes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from ottla.cli.demo.children import ChildDied
from ottla.cli.demo.plan import NODES, Plan
from tests.interop.node.brokers import APACHE
from tests.interop.quorum.members import Quorum


class ApacheNodes:
    what = "Apache Kafka 4.3.1"
    metrics_urls: Sequence[str] = ()

    def __init__(self, directory: Path, plan: Plan) -> None:
        voters = dict.fromkeys(range(1, NODES + 1), APACHE)
        self._quorum = Quorum(directory, voters=voters, **plan.broker_settings)
        self._killed: set[int] = set()

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap_servers for node in self._quorum.nodes.values())

    async def start(self) -> None:
        await asyncio.to_thread(self._quorum.__enter__)

    async def kill(self, node_id: int) -> None:
        self._killed.add(node_id)
        await asyncio.to_thread(self._quorum.nodes[node_id].kill)

    async def restart(self, node_id: int) -> None:
        await asyncio.to_thread(self._quorum.start, node_id)
        self._killed.remove(node_id)

    def check(self) -> None:
        for number, node in self._quorum.nodes.items():
            if not node.running and number not in self._killed:
                raise ChildDied(f"Apache Kafka's node {number} ended; it said:\n{node.log[-2000:]}")

    def close(self) -> None:
        self._quorum.__exit__(None, None, None)
