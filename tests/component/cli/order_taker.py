"""Carries out `ottla cluster stop|start N --data DIR` for a test, in place of `ottla cluster up`."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.cli.local_cluster.control import Control

PROGRAM = f"{sys.executable} -m ottla"


class OrderTaker:
    """Takes orders in a thread during the `with` statement, or in this one while a process runs (`serve`)."""

    def __init__(self, directory: Path, perform: Callable[[str, int], object]) -> None:
        """`perform` gets the command and the node."""
        self.orders: list[str] = []
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self._perform = perform
        self._control = Control(directory, self._take)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while not self._is_over.is_set():
            self._control.serve(0.1)

    def serve(self, process: subprocess.Popen[str]) -> str:
        """Take orders until a process ends, and give what it printed: standard output goes first."""
        while process.poll() is None:
            self._control.serve(0.1)
        output, errors = process.communicate()
        return output + errors

    def close(self) -> None:
        self._control.close()

    def _take(self, command: str, nodes: Sequence[int]) -> list[str]:
        for node_id in nodes:
            self.orders.append(f"{command} {node_id}")
            self._perform(command, node_id)
        return []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self.close()

    def options(self, **others: str) -> list[str]:
        """The commands that `ottla cluster replace` is given."""
        commands = {name: f"{PROGRAM} cluster {name} {{node}} --data {self._directory}" for name in ("stop", "start")}
        return [word for name, text in (commands | others).items() for word in (f"--{name}", text)]
