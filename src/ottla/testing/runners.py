"""Runs a broker under test: in a thread of this process, or in a process of its own.

Both have the same commands, so that a test need not know which one it has. A child process reads one JSON object per
line from its standard input and answers each with one on its standard output. It ends when its input is closed, so it
never outlives the test.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, Final, Protocol, TypeVar

__all__ = ["BrokerError", "BrokerRunner", "ProcessRunner", "ThreadRunner"]

START_MAX_SECONDS: Final = 60.0
ORDER_MAX_SECONDS: Final = 30.0
_TAIL_BYTES: Final = 4096

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
            raise BrokerError(f"the broker does not start: {error}") from error

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
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the place
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._child: subprocess.Popen[str] | None = None

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    def start(self, listeners: str, shift_ms: int) -> dict[str, Any]:
        self._reap()  # it may have ended by itself
        self._child = self._spawn()
        first = {"settings": self._settings, "durable": self._durable, "listeners": listeners, "shift_ms": shift_ms}
        try:
            facts: dict[str, Any] = self._ask(first, START_MAX_SECONDS)
        except BrokerError:
            self._reap()
            raise
        return facts

    def _spawn(self) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-m", "ottla.testing.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._answers = queue.SimpleQueue()
        threading.Thread(target=_pump, args=(child, self._answers), name="ottla-broker-answers", daemon=True).start()
        return child

    def end(self, *, clean: bool) -> None:
        try:
            if clean:
                self._ask({"command": "stop"})
        finally:
            self._reap()

    def perform(self, command: str, **arguments: Any) -> Any:  # noqa: ANN401
        return self._ask({"command": command, "arguments": arguments})

    def _ask(self, order: Mapping[str, Any], seconds: float = ORDER_MAX_SECONDS) -> Any:  # noqa: ANN401
        if self._child is None or self._child.stdin is None:
            raise BrokerError("the broker does not run")
        with contextlib.suppress(BrokenPipeError):  # the child is dead; the missing answer raises the error
            self._child.stdin.write(json.dumps(order) + "\n")
            self._child.stdin.flush()
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise BrokerError(f"the broker said nothing for {seconds:g} s\n{self._tail()}") from None
        if not line:
            raise BrokerError(f"the broker's process ended\n{self._tail()}")
        answer = json.loads(line)
        if "error" in answer:
            raise BrokerError(answer["error"])
        return answer["value"]

    def _tail(self) -> str:
        self._log.seek(0, 2)
        self._log.seek(max(self._log.tell() - _TAIL_BYTES, 0))
        return self._log.read().decode(errors="replace")

    def _reap(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def close(self) -> None:
        self._reap()
        self._log.close()


def _pump(child: subprocess.Popen[str], answers: queue.SimpleQueue[str]) -> None:
    """Pass a child's lines on; an empty line means their end."""
    assert child.stdout is not None
    with contextlib.suppress(ValueError):  # closed by the other thread, after the child's end
        for line in child.stdout:
            answers.put(line)
    answers.put("")
