"""A client that works in a thread while a test does something to the cluster."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

TIME_LIMIT_S = 240


class Background:
    """Runs from its making until it is stopped."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._is_over = threading.Event()
        self._work = ThreadPoolExecutor(1).submit(self._run)

    def _run(self) -> None:
        raise NotImplementedError

    def check(self) -> None:
        """AssertionError if it has failed."""
        if self._work.done():
            self._raise()

    def stop(self) -> None:
        self._is_over.set()

    def finish(self) -> None:
        self.stop()
        self._raise()

    def _raise(self) -> None:
        error = self._work.exception(TIME_LIMIT_S)
        if error is not None:
            raise AssertionError(f"{type(self).__name__} has failed: {error}") from error
