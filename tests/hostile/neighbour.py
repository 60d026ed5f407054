"""An honest client beside hostile ones: it asks and writes all the time and notes how long it waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.wire.types import MetadataRequest
from tests.component.broker.raw_client import RawClient, Topic, batch

PAUSE_S = 0.005


class Neighbour:
    def __init__(self, client: RawClient, topic: Topic) -> None:
        self._client = client
        self._topic = topic
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="neighbour")
        self.waits_ms: list[float] = []
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def await_served(self, times: int = 1) -> None:
        """Until it was served so many times."""
        while len(self.waits_ms) < times and self.failure is None:
            time.sleep(PAUSE_S)

    @property
    def longest_ms(self) -> float:
        return max(self.waits_ms)

    def _live(self) -> None:
        try:
            while not self._is_over.wait(PAUSE_S):
                began = time.perf_counter()
                self._ask()
                self.waits_ms.append((time.perf_counter() - began) * 1000)
        except BaseException as error:  # noqa: BLE001  # told to the test's own thread
            self.failure = error

    def _ask(self) -> None:
        self._client.ask(MetadataRequest(topics=()), 12)
        assert self._client.produce(self._topic, batch(b"honest")).error_code == 0


@contextmanager
def neighbour(bootstrap_servers: str) -> Iterator[Neighbour]:
    client = RawClient.at(bootstrap_servers)
    found = Neighbour(client, client.topic())
    found.start()
    try:
        yield found
    finally:
        found.stop()
        client.close_all()
