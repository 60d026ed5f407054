"""The processes of the demo: started, commanded, killed, and always ended with the demo."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

__all__ = ["Child", "ChildDied", "Children"]

END_S: Final = 15.0
HASTE_S: Final = 1.0
TAIL_LINES: Final = 15


class ChildDied(Exception):
    """A process has ended unexpectedly; the text has the last lines of its output."""


class Child:
    """One process in a process group of its own: Ctrl-C reaches only the demo, and its children end with it."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, said: Path) -> None:
        self.name = name
        self.said = said
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def wait(self) -> int:
        return await self._process.wait()

    async def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        await self._process.stdin.drain()

    async def kill(self) -> None:
        """Kill it, like a crash."""
        self._signal(signal.SIGKILL)
        await self._process.wait()

    async def end(self, timeout_s: float = END_S) -> None:
        """Close its input and send SIGTERM; kill it if it does not end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if not await self._ends_within(timeout_s if self._process.stdin is not None else 0):
            self._signal(signal.SIGTERM)
            if not await self._ends_within(timeout_s):
                await self.kill()

    async def _ends_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)
        return not self.is_running

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines of its output."""
        said = self.said.read_text(errors="replace").splitlines() if self.said.exists() else []
        return "\n".join(said[-lines:])

    def check(self) -> None:
        """Raises ChildDied if it has ended."""
        if not self.is_running:
            raise ChildDied(f"{self.name} exited (code {self._process.returncode}); its output:\n{self.tail()}")


class Children:
    """Ends all running processes at the end of the context, the newest first."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.running: list[Child] = []

    async def __aenter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        running = [child for child in reversed(self.running) if child.is_running]
        if kind is not None:
            # After a failure or Ctrl-C, do not wait for the last commits of the workloads.
            await asyncio.gather(*(child.end(HASTE_S) for child in running))
            return
        for child in running:
            await child.end()

    async def start(
        self, name: str, command: Sequence[str], *, listens: bool = False, environment: dict[str, str] | None = None
    ) -> Child:
        """Start a process; its output goes to a file. One that `listens` takes lines on its standard input."""
        said = self._directory / f"{name}.log"
        with said.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *tied(command),
                stdin=asyncio.subprocess.PIPE if listens else asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=_environment() | (environment or {}),
            )
        child = Child(name, process, said)
        self.running.append(child)
        return child


def _environment() -> dict[str, str]:
    """Our environment without variables that a node or a command of ottla would read as settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")}


def tied(command: Sequence[str]) -> list[str]:
    """The same command, which the kernel kills if the demo dies (Linux only)."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else list(command)
