"""A client that works in a thread while a test does something to the cluster."""

from __future__ import annotations

import threading
from concurrent.futures import Future

TIME_LIMIT_S = 240


class Background:
    """Runs from its making until it is stopped. The program does not wait for it: without a cluster it may not end."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._is_over = threading.Event()
        self._work: Future[None] = Future()
        threading.Thread(target=self._work_on, name=type(self).__name__, daemon=True).start()

    def _work_on(self) -> None:
        try:
            self._run()
        except BaseException as error:  # noqa: BLE001 - `check` and `finish` raise it
            self._work.set_exception(error)
        else:
            self._work.set_result(None)

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
