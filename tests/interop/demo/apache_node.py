"""Apache Kafka in the place of the story's node."""

import asyncio
from pathlib import Path

from ottla.cli.demo.children import ChildDied
from ottla.cli.demo.plan import Plan
from tests.interop.apache import ApacheKafka


class ApacheNode:
    what = "Apache Kafka 4.3.1"
    metrics_url = None

    def __init__(self, directory: Path, plan: Plan) -> None:
        self._kafka = ApacheKafka(directory, **plan.broker_settings)
        self.data_dir = self._kafka.data_dir

    @property
    def bootstrap(self) -> str:
        return self._kafka.bootstrap_servers

    async def start(self) -> None:
        await asyncio.to_thread(self._kafka.start)

    async def kill(self) -> None:
        await asyncio.to_thread(self._kafka.kill)

    def check(self) -> None:
        if not self._kafka.running:
            raise ChildDied(f"Apache Kafka ended; it said:\n{self._kafka.log[-2000:]}")

    def close(self) -> None:
        if self._kafka.running:
            self._kafka.kill()
