"""Runs work that waits for the disk in threads, and a callback on the event loop afterwards.

Only calls that release the interpreter lock for their whole length belong here, such as syncs and removals of files: a
busy Python thread would slow down the loop. Code that must not go on before the work is done (a partition is deleted, a
node stops) waits for it with `Job.finish` or `Offload.finish_all`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Job", "Offload"]

log = logging.getLogger(__name__)

THREADS: Final = 4


class Job:
    """Work in a thread. Its callback runs once, on the loop."""

    __slots__ = ("_future", "_is_finished", "_owner", "_then")

    def __init__(self, owner: Offload, future: Future[None], then: Callable[[], None]) -> None:
        self._owner = owner
        self._future = future
        self._then = then
        self._is_finished = False

    @property
    def is_finished(self) -> bool:
        return self._is_finished

    def finish(self) -> None:
        """Wait for the work, then run its callback."""
        if self._is_finished:
            return
        self._is_finished = True
        self._owner.forget(self)
        error = self._future.exception()
        if error is not None:
            log.error("a background task failed: %r", error)
        self._then()


class Offload:
    """The threads of a node, started with the first work."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._executor: ThreadPoolExecutor | None = None
        self._jobs: dict[Job, None] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __call__(self, work: Callable[[], None], then: Callable[[], None]) -> Job:
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="ottla-disk")
        future = self._executor.submit(work)
        job = Job(self, future, then)
        self._jobs[job] = None
        future.add_done_callback(lambda _: self._loop.call_soon_threadsafe(job.finish))
        return job

    def forget(self, job: Job) -> None:
        del self._jobs[job]

    def finish_all(self) -> None:
        """Wait for all work, including work that callbacks start."""
        while self._jobs:
            next(iter(self._jobs)).finish()

    def close(self) -> None:
        self.finish_all()
        if self._executor is not None:
            self._executor.shutdown()
