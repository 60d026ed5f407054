"""Child processes that take orders: one JSON object a line on their input, one answer a line on their output.

A child ends when its input is closed, so it never outlives its parent. `ChildProcess` is the parent's side; `orders`
and `answer` are the child's.
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
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

__all__ = ["ChildError", "ChildProcess", "answer", "orders"]

ORDER_MAX_SECONDS: Final = 30.0
_TAIL_BYTES: Final = 4096


class ChildError(Exception):
    """A child does not carry out an order; the text says why."""


class ChildProcess:
    """A running `python -m MODULE`. `what` is its name in errors, such as "the broker"."""

    def __init__(self, module: str, what: str) -> None:
        self._what = what
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the child
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._unanswered = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        threading.Thread(target=self._pump, name="ottla-child-answers", daemon=True).start()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, order: Mapping[str, Any], seconds: float = ORDER_MAX_SECONDS) -> Any:  # noqa: ANN401
        """Give an order, and wait for the answer. Answers to earlier orders that came too late are dropped."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the child is dead; the missing answer raises the error
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        self._unanswered += 1
        line: str | None = None
        try:
            while self._unanswered and line != "":
                line = self._answers.get(timeout=seconds)
                self._unanswered -= 1
        except queue.Empty:
            raise ChildError(f"{self._what} printed nothing for {seconds:g} s\n{self._tail()}") from None
        if not line:
            raise ChildError(f"{self._what}'s process exited\n{self._tail()}")
        found = json.loads(line)
        if "error" in found:
            raise ChildError(found["error"])
        return found["value"]

    def kill(self) -> None:
        """End it at once, if it has not ended yet."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._log.close()

    def _tail(self) -> str:
        self._log.seek(0, 2)
        self._log.seek(max(self._log.tell() - _TAIL_BYTES, 0))
        return self._log.read().decode(errors="replace")

    def _pump(self) -> None:
        """Pass the child's lines on; an empty line means their end."""
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError):  # closed by the other thread, after the child's end
            for line in self._process.stdout:
                self._answers.put(line)
        self._answers.put("")


# --- the child's side -------------------------------------------------------------------------------------------------


async def orders() -> AsyncIterator[Any]:
    """The orders of the parent, until it closes our input."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    threading.Thread(target=_read, args=(asyncio.get_running_loop(), lines), daemon=True).start()
    while line := await lines.get():
        yield json.loads(line)


def _read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str]) -> None:
    """Pass the lines of standard input on; an empty line means its end."""
    for line in sys.stdin:
        loop.call_soon_threadsafe(lines.put_nowait, line)
    with contextlib.suppress(RuntimeError):  # the loop has ended before
        loop.call_soon_threadsafe(lines.put_nowait, "")


def answer(**fields: Any) -> None:  # noqa: ANN401
    """Answer the parent: with `value`, or with `error`."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()
