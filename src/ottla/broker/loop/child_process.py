"""A child process that computes: Python code that would hold up the event loop, even from a thread.

The child runs one function, which gets a list of byte strings and gives another one. It is started with the first call
and stays for the next ones. `call` waits for the answer, so it belongs in a thread (`offload`), where it holds no
interpreter lock while it waits. A call that takes too long ends with the child; the next one starts another.

The child has the module path of its parent, writes what the function prints to the parent's standard error, and ends
with its parent: its standard input ends then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from struct import Struct
from threading import Lock, Timer
from typing import IO, TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from subprocess import Popen

__all__ = ["ChildFailure", "ChildProcess", "Worker", "load_entry", "serve"]

_BOOT: Final = (
    "import sys; entry, *sys.path = sys.argv[1:]; from ottla.broker.loop.child_process import serve; serve(entry)"
)
_SIZE: Final = Struct(">I")
_DONE: Final = b"done"
_FAILED: Final = b"failed"

Answer = Callable[[Sequence[bytes]], Sequence[bytes]]


class ChildFailure(Exception):
    """A call brought no answer. The text says why."""


class Worker(Protocol):
    """What stands for a child process in a simulation, too."""

    def call(self, request: Sequence[bytes], limit_ms: int) -> Sequence[bytes]:
        """The answer to a request. Raises ChildFailure."""
        ...

    def close(self) -> None:
        """End it, whatever it does. The next call starts another."""


class ChildProcess:
    """`entry` is the function that it runs, as `module:name`."""

    def __init__(self, entry: str) -> None:
        self._entry = entry
        self._process: Popen[bytes] | None = None
        self._in_use = Lock()
        self._is_closing = False

    def call(self, request: Sequence[bytes], limit_ms: int) -> Sequence[bytes]:
        with self._in_use:
            process = self._process = self._process or _start(self._entry)
            if self._is_closing:
                process.kill()
            limit = _Limit(process, limit_ms)
            try:
                status, *answer = _exchange(process, request)
            except (OSError, EOFError):
                code = self._discard(process)
                is_over = limit.is_over
                why = f"no answer within {limit_ms} ms" if is_over else f"its process has ended with code {code}"
                raise ChildFailure(why) from None
            finally:
                limit.cancel()
        if status == _FAILED:
            raise ChildFailure(answer[0].decode())
        return answer

    def _discard(self, process: Popen[bytes]) -> int:
        self._process = None
        process.kill()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(OSError):  # what it did not take any more is lost
                pipe.close()
        return process.wait()

    def close(self) -> None:
        self._is_closing = True
        process = self._process
        if process is not None:
            process.kill()  # a call that is under way ends with it
        with self._in_use:
            if self._process is not None:
                self._discard(self._process)
        self._is_closing = False


class _Limit:
    """Ends a process when its time is over."""

    def __init__(self, process: Popen[bytes], limit_ms: int) -> None:
        self.is_over = False
        self._process = process
        self._timer = Timer(limit_ms / 1000, self._end)
        self._timer.daemon = True
        self._timer.start()

    def _end(self) -> None:
        self.is_over = True
        self._process.kill()

    def cancel(self) -> None:
        self._timer.cancel()


def _start(entry: str) -> Popen[bytes]:
    from subprocess import PIPE, Popen

    try:
        return Popen([sys.executable, "-P", "-c", _BOOT, entry, *sys.path], stdin=PIPE, stdout=PIPE)
    except OSError as error:
        raise ChildFailure(f"no process can be started: {error}") from error


def _exchange(process: Popen[bytes], request: Sequence[bytes]) -> list[bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    _write(process.stdin, request)
    return _read(process.stdout)


def _write(pipe: IO[bytes], parts: Sequence[bytes]) -> None:
    pipe.write(_SIZE.pack(len(parts)))
    for part in parts:
        pipe.write(_SIZE.pack(len(part)))
        pipe.write(part)
    pipe.flush()


def _read(pipe: IO[bytes]) -> list[bytes]:
    (count,) = _SIZE.unpack(_take(pipe, _SIZE.size))
    return [_take(pipe, *_SIZE.unpack(_take(pipe, _SIZE.size))) for _ in range(count)]


def _take(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


# --- in the child -----------------------------------------------------------------------------------------------------


def serve(entry: str) -> None:
    """Answer requests until there are none."""
    import os
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the parent, too, which ends this in its time
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    function = load_entry(entry)
    with suppress(EOFError, BrokenPipeError):  # the parent has ended, or needs no more
        while True:
            _write(answers, _answered(function, _read(requests)))
    os._exit(0)


def _answered(function: Answer, request: Sequence[bytes]) -> list[bytes]:
    import traceback

    try:
        return [_DONE, *function(request)]
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller is told
        traceback.print_exc()
        return [_FAILED, f"{type(error).__name__}: {error}".encode()]


def load_entry(entry: str) -> Answer:
    from importlib import import_module

    module, _, name = entry.partition(":")
    function: Answer = getattr(import_module(module), name)
    return function
