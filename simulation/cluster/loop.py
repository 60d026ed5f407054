"""The event loop of a simulated cluster: virtual time, and processes that die and pause.

When nothing is ready, the clock jumps to the next timer. What is ready is known from the network (`readable`), so a
turn costs nothing for sockets that are idle.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ottla.testing.disk import Crash
from ottla.testing.trace import Violation
from ottla.testing.virtual_loop import watch_socket
from simulation.cluster.processes import CURRENT, Process, ProcessState

if TYPE_CHECKING:
    from simulation.cluster.network import Network, Socket

__all__ = ["ClusterLoop", "has_lost_error"]

_TURNS_MAX: Final = 50_000
"""More turns than this without time passing are a loop without end."""
_CANCELLED_MAX: Final = 500


class ClusterLoop(asyncio.BaseEventLoop):
    """Runs the code of all processes of a world."""

    _ready: deque[Any]
    _scheduled: list[Any]
    _timer_cancelled_count: int

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._turns = 0
        self._readers: dict[int, Any] = {}
        self._writers: dict[int, Any] = {}
        self.network: Network
        self.readable: dict[int, Socket] = {}
        """Sockets that have something to read, by number."""
        self.violations: list[Violation] = []
        self.tasks: list[asyncio.Task[Any]] = []
        """Those of no process."""
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._complain)

    # --- time ---------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now_s

    @property
    def now_ms(self) -> int:
        return int(self._now_s * 1000 + 1e-6)

    def _run_once(self) -> None:
        self._drop_cancelled()
        self._poll()
        ready, scheduled = self._ready, self._scheduled
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            self._pass_time()
        self._turns += 1
        if self._turns > _TURNS_MAX:
            raise Violation("comes to rest", f"no time passes after {self.now_ms} ms: {ready[0] if ready else ''}")
        while scheduled and scheduled[0]._when <= self._now_s:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                self._run_handle(handle)

    def _pass_time(self) -> None:
        """Nothing is left to do now: go to the next timer."""
        if not self._scheduled:
            raise RuntimeError("everything waits, and nothing will happen any more")
        if self._scheduled[0]._when > self._now_s:
            self._now_s, self._turns = self._scheduled[0]._when, 0

    def _run_handle(self, handle: Any) -> None:  # noqa: ANN401
        process: Process | None = handle._context.get(CURRENT)
        if process is None or process.state is ProcessState.RUNNING:
            handle._run()
            if self.violations:
                raise self.violations[0]
        elif process.state is ProcessState.PAUSED:
            process.held.append(handle)

    def _poll(self) -> None:
        ready = self._ready
        for number in list(self.readable):
            handle = self._readers.get(number)
            if handle is not None and _may_run(handle):
                ready.append(handle)
        if self._writers:
            for number, handle in list(self._writers.items()):
                if self.network.sockets[number].is_writable and _may_run(handle):
                    ready.append(handle)

    def _drop_cancelled(self) -> None:
        scheduled = self._scheduled
        if self._timer_cancelled_count > _CANCELLED_MAX and self._timer_cancelled_count * 2 > len(scheduled):
            for handle in scheduled:
                if handle._cancelled:
                    handle._scheduled = False
            scheduled[:] = [handle for handle in scheduled if not handle._cancelled]
            heapq.heapify(scheduled)
            self._timer_cancelled_count = 0
        while scheduled and scheduled[0]._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(scheduled)._scheduled = False

    def _write_to_self(self) -> None:
        """There are no threads to be woken by."""

    # --- processes ----------------------------------------------------------------------------------------------------

    def resume(self, process: Process) -> None:
        """Let a paused process go on; what became due meanwhile runs in its order."""
        process.state = ProcessState.RUNNING
        self._ready.extend(process.held)
        process.held.clear()

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:  # noqa: ANN401
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        context = options.get("context")
        process = CURRENT.get() if context is None else context.get(CURRENT)
        tasks = self.tasks if process is None else process.tasks
        tasks.append(task)
        if len(tasks) % 1000 == 0:
            tasks[:] = [each for each in tasks if not each.done() or has_lost_error(each)]
        return task

    def _complain(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Code has raised what nobody handles. That is a bug, unless its process has just died of it."""
        error = context.get("exception")
        if error is not None:
            self.found_bug(context["message"], error)

    def found_bug(self, what: str, error: BaseException) -> None:
        """End the world after this turn."""
        if isinstance(error, Violation):
            self.violations.append(error)
        elif not isinstance(error, Crash):
            violation = Violation("works", f"{what}: {error!r}")
            violation.__cause__ = error
            self.violations.append(violation)

    # --- sockets ------------------------------------------------------------------------------------------------------

    def add_reader(self, fd: int, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]  # noqa: ANN401
        watch_socket(self._readers, fd, asyncio.Handle(callback, args, self))

    def remove_reader(self, fd: int) -> bool:  # type: ignore[override]
        return watch_socket(self._readers, fd, None)

    def add_writer(self, fd: int, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]  # noqa: ANN401
        watch_socket(self._writers, fd, asyncio.Handle(callback, args, self))

    def remove_writer(self, fd: int) -> bool:  # type: ignore[override]
        return watch_socket(self._writers, fd, None)

    def forget_socket(self, number: int) -> None:
        self.remove_reader(number)
        self.remove_writer(number)
        self.readable.pop(number, None)

    async def create_connection(self, protocol_factory: Callable[[], Any], host: str, port: int, **_: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        """A connection of a client. OSError if nobody listens."""
        from simulation.cluster.transport import connect

        return await connect(self, protocol_factory, (host, port))


def has_lost_error(task: asyncio.Task[Any]) -> bool:
    """Whether a task has failed and nobody has asked for its result."""
    return bool(task._log_traceback)


def _may_run(handle: Any) -> bool:  # noqa: ANN401
    process = handle._context.get(CURRENT)
    return process is None or process.state is ProcessState.RUNNING
