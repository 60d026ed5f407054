"""A client of a simulated cluster: a process on a host of its own, which works until the world ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final

from ottla.client import topics
from ottla.client.client import Client
from ottla.client.errors import ClientError, ResponseError, error_name
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from simulation.cluster.world import ClusterWorld

__all__ = ["DATA_TOPIC", "SimulatedClient"]

_SETTINGS: Final[dict[str, Any]] = {
    "request_timeout_ms": 2_000,
    "default_api_timeout_ms": 5_000,
    "connect_timeout_ms": 2_000,
    "metadata_max_age_ms": 2_000,
}
_PATIENT: Final = _SETTINGS | {"request_timeout_ms": 8_000, "default_api_timeout_ms": 12_000}
_IS_PATIENT: Final = 0.3


DATA_TOPIC: Final = "orders"
"""What producers write to and consumers read."""


class SimulatedClient:
    """One client; kinds of clients say what it does (`work`), again and again."""

    KIND = "client"
    partitions = 3
    """Of the data topic."""

    def __init__(self, world: ClusterWorld) -> None:
        self.world = world
        self.name = f"{self.KIND}-{world.client_number()}"
        self.random = Random(f"{world.seed} {self.name}")
        self.is_patient = Random(f"patience of {self.name} in {world.seed}").random() < _IS_PATIENT
        """Whether it waits for an answer for longer than it takes to elect other leaders."""
        self.process = world.process(self.name)
        self.client: Client
        self.is_over = False
        self.main: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.main = self.process.run(self.world.loop, self._main())

    async def _main(self) -> None:
        while not self.is_over:
            try:
                settings = _PATIENT if self.is_patient else _SETTINGS
                async with Client(self.world.bootstrap_servers, client_id=self.name, **settings) as self.client:
                    while not self.is_over:
                        await self.work()
            except ClientError:
                await self.pause(100, 500)

    async def work(self) -> None:
        """Do one thing. A ClientError lets the client begin anew, with new connections."""
        raise NotImplementedError

    async def data_topic(self) -> str:
        """The data topic, which the first client creates that finds none."""
        if DATA_TOPIC not in self.client.metadata.topics:
            new = topics.NewTopic(DATA_TOPIC, self.partitions, self.world.shape.replication_factor)
            outcome = (await topics.try_create(self.client, new))[DATA_TOPIC]
            if isinstance(outcome, ResponseError) and outcome.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise outcome
            await self.client.topics([DATA_TOPIC])
        return DATA_TOPIC

    async def pause(self, low_ms: int, high_ms: int) -> None:
        await asyncio.sleep(self.random.uniform(low_ms, high_ms) / 1000)

    async def do(self, kind: str, subject: Any, call: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401
        """Do something that the history shall tell; gives what it brought, or True; None after an error."""
        history = self.world.history
        number = history.begin(self.name, kind, subject)
        try:
            result = await call()
        except ClientError as error:
            history.end(number, error=error_name(error.code) if isinstance(error, ResponseError) else str(error)[:60])
            return None
        history.end(number, result=True if result is None else result)
        return True if result is None else result
