"""Changes metadata all the while: creates one topic after the other, and remembers which were answered."""

from __future__ import annotations

import threading
from typing import Final

from ottla.client import ClientError, ResponseError
from ottla.client.blocking import BlockingClient
from ottla.client.topics import NewTopic, create
from ottla.wire.errors import ErrorCode

__all__ = ["Writer"]

PAUSE_S: Final = 0.25
REQUEST_TIMEOUT_MS: Final = 3000
CALL_TIMEOUT_MS: Final = 20_000


class Writer:
    """A thread with a client of its own."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.answered: list[str] = []
        self.unanswered: list[str] = []
        self._servers = bootstrap_servers
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                with BlockingClient(
                    self._servers,
                    request_timeout_ms=REQUEST_TIMEOUT_MS,
                    connect_timeout_ms=REQUEST_TIMEOUT_MS,
                    default_api_timeout_ms=CALL_TIMEOUT_MS,
                ) as client:
                    self._create_topics(client)
            except ClientError:
                self._is_over.wait(PAUSE_S)  # no broker answers; others may, soon

    def _create_topics(self, client: BlockingClient) -> None:
        while not self._is_over.wait(PAUSE_S):
            name = f"topic-{len(self.answered) + len(self.unanswered):06d}"
            try:
                client.call(create, NewTopic(name))
            except ResponseError as error:
                # An earlier attempt has created it, and its answer was lost.
                exists = error.error is not None and error.error == ErrorCode.TOPIC_ALREADY_EXISTS
                (self.answered if exists else self.unanswered).append(name)
            except ClientError:
                self.unanswered.append(name)
                raise
            else:
                self.answered.append(name)
