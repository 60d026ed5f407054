"""A Kafka Streams application that counts words, exactly once, while the nodes of its cluster come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

from ottla.client.errors import ClientError
from tests.interop.quorum.background import Background
from tests.interop.streams.apps import App
from tests.interop.streams.feeding import feed, wait_for
from tests.interop.streams.groups import lines

PREFIX = "count"
GROUP, WORDS, COUNTS = f"{PREFIX}-app", f"{PREFIX}-words", f"{PREFIX}-out"
PAUSE_S = 2
TRANSACTION_TIMEOUT_MS = 120_000
"""Longer than a node is away. An application does not go on after it was told that its transaction is over."""
_ENDED = {"ERROR", "PENDING_ERROR", "PENDING_SHUTDOWN", "NOT_RUNNING"}


class WordCount(Background):
    """The application, and the client that feeds it. The topics WORDS and COUNTS are there."""

    def __init__(self, servers: str, directory: Path, *, partitions: int, replicas: int) -> None:
        self._partitions = partitions
        settings = {
            "processing.guarantee": "exactly_once_v2",
            "replication.factor": replicas,
            "producer.transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        }
        self._app = App("count", PREFIX, servers, directory, **settings)
        super().__init__(servers)

    def _run(self) -> None:
        for number in count():
            if self._is_over.is_set():
                return
            with suppress(ClientError):
                feed(self._servers, WORDS, lines(number))
            self._is_over.wait(PAUSE_S)

    def check(self) -> None:
        super().check()
        states = [line.removeprefix("STATE ") for line in self._app.lines if line.startswith("STATE ")]
        said = [line for line in self._app.lines if line.startswith(("ERROR", "Caused by"))]
        assert not _ENDED & set(states), f"the application has ended: {said or self._app.lines[-3:]}"

    def check_counts(self, lines: Iterable[str]) -> None:
        """Every word was counted, and none twice, after `finish`.

        The client that feeds may have written a line twice if it was not answered: `lines` are those in the topic.
        """
        words = Counter(word for line in lines for word in line.split())
        expected = {word: str(number) for word, number in words.items()}
        wait_for(self._servers, COUNTS, expected, self._partitions)
        self.check()

    def kill(self) -> None:
        self.stop()
        self._app.kill()
