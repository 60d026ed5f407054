"""Runs a broker under test: in a thread of this process, or in a process of its own.

Both have the same commands, so that a test need not know which one it has.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, Final, Protocol, TypeVar

from ottla.testing.children import ORDER_MAX_SECONDS, ChildError, ChildProcess

__all__ = ["BrokerError", "BrokerRunner", "ProcessRunner", "ThreadRunner"]

START_MAX_SECONDS: Final = 60.0

Result = TypeVar("Result")


class BrokerError(Exception):
    """The broker under test cannot carry out a command; the text says why."""


class BrokerRunner(Protocol):
    @property
    def is_running(self) -> bool: ...

    def start(self, listeners: str, shift_ms: int) -> dict[str, Any]:
        """Start the broker with its clocks moved ahead; returns its ports and names."""

    def end(self, *, clean: bool) -> None:
        """Stop the broker, or kill it."""

    def perform(self, command: str, **arguments: Any) -> Any:  # noqa: ANN401
        """Carry out a command, see `node_host.NodeHost`."""

    def close(self) -> None: ...


class ThreadRunner:
    """An event loop in a thread of this process."""

    def __init__(self, settings: Mapping[str, str], durable: bool) -> None:
        from ottla.testing.node_host import NodeHost

        self._host = NodeHost(settings, durable=durable)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="ottla-broker", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    @property
    def is_running(self) -> bool:
        return self._host.node is not None

    def start(self, listeners: str, shift_ms: int) -> dict[str, Any]:
        try:
            return self._wait(self._host.start(listeners, shift_ms), START_MAX_SECONDS)
        except Exception as error:
            raise BrokerError(f"the broker cannot start: {error}") from error

    def end(self, *, clean: bool) -> None:
        self._wait(self._host.end(clean=clean))

    def perform(self, command: str, **arguments: Any) -> Any:  # noqa: ANN401
        async def perform() -> Any:  # noqa: ANN401
            return self._host.perform(command, arguments)

        return self._wait(perform())

    def _wait(self, work: Coroutine[Any, Any, Result], seconds: float = ORDER_MAX_SECONDS) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ORDER_MAX_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


class ProcessRunner:
    """A process of its own; `kill` is the operating system's."""

    def __init__(self, settings: Mapping[str, str], durable: bool) -> None:
        self._settings = dict(settings)
        self._durable = durable
        self._child: ChildProcess | None = None

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.is_running

    def start(self, listeners: str, shift_ms: int) -> dict[str, Any]:
        self.close()  # it may have ended by itself
        self._child = ChildProcess("ottla.testing.child", "the broker")
        first = {"settings": self._settings, "durable": self._durable, "listeners": listeners, "shift_ms": shift_ms}
        try:
            facts: dict[str, Any] = self._ask(first, START_MAX_SECONDS)
        except BrokerError:
            self.close()
            raise
        return facts

    def end(self, *, clean: bool) -> None:
        try:
            if clean:
                self._ask({"command": "stop"})
        finally:
            self.close()

    def perform(self, command: str, **arguments: Any) -> Any:  # noqa: ANN401
        return self._ask({"command": command, "arguments": arguments})

    def _ask(self, order: Mapping[str, Any], seconds: float = ORDER_MAX_SECONDS) -> Any:  # noqa: ANN401
        if self._child is None:
            raise BrokerError("the broker does not run")
        try:
            return self._child.ask(order, seconds)
        except ChildError as error:
            raise BrokerError(str(error)) from None

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
