"""Carries out `ottla cluster stop|start N --data DIR` for a test, in place of `ottla cluster up`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.cli.local_cluster.control import Control

PROGRAM = f"{sys.executable} -m ottla"


class OrderTaker:
    """Runs from its making to the end of the `with` statement."""

    def __init__(self, directory: Path, perform: Callable[[str, int], object]) -> None:
        """`perform` gets the command and the node."""
        self.orders: list[str] = []
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self._perform = perform
        self._control = Control(directory, self._take)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._is_over.is_set():
            self._control.serve(0.1)

    def _take(self, command: str, nodes: Sequence[int]) -> list[str]:
        for node_id in nodes:
            self.orders.append(f"{command} {node_id}")
            self._perform(command, node_id)
        return []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._control.close()

    def options(self, **others: str) -> list[str]:
        """The commands that `ottla cluster replace` is given."""
        commands = {name: f"{PROGRAM} cluster {name} {{node}} --data {self._directory}" for name in ("stop", "start")}
        return [word for name, text in (commands | others).items() for word in (f"--{name}", text)]
