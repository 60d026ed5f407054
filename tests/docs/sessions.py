"""A reader at work: a directory, a shell that goes on from block to block, further terminals, and a broker.

Ports that pages name are taken by others on many machines. Each has a free port in its place, in commands and in what
they print; `ottla serve` without a port, and commands without an address, mean that of 9092.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.docs.blocks import ROOT, Step, pattern, plain

PORTS = ("9092", "9093", "9094", "9192", "9404", "9405", "8080")
TIME_LIMIT_S = 120.0
_PORT = re.compile(rf"\b({'|'.join(PORTS)})\b")
_OTTLA = """#!/bin/sh
case "$*" in
  "serve "*--port*|"serve "*--config*|serve*listeners=*) ;;
  serve*) shift; set -- serve --port $PAGE_PORT "$@" ;;
esac
exec {python} -m ottla "$@"
"""


class Session:
    """The shell of one page, with the ottla of this checkout or of another environment's Python."""

    def __init__(self, directory: Path, port: int | None, temporary: str, python: Path | None) -> None:
        self.directory = directory
        self.ports = free_ports() | ({} if port is None else {"9092": str(port)})
        self._back = {there: named for named, there in self.ports.items()}
        self._there = re.compile(rf"\b({'|'.join(self._back)})\b")
        self._terminals: list[Terminal] = []
        tools = directory.parent / f"{directory.name}-bin"
        tools.mkdir()
        (tools / "ottla").write_text(_OTTLA.format(python=python or sys.executable))
        (tools / "ottla").chmod(0o755)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("OTTLA", "PYTEST"))},
            "XDG_CONFIG_HOME": str(directory),
            # Running clusters are looked for there: those of other tests must not be found.
            "TMPDIR": temporary,
            "PATH": f"{tools}:{Path(python or sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}" if python is None else "",
            "PAGE_PORT": self.ports["9092"],
            "OTTLA_BOOTSTRAP": f"127.0.0.1:{self.ports['9092']}",
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }

    def here(self, text: str) -> str:
        """A text of the page with the ports of this session."""
        return _PORT.sub(lambda port: self.ports[port[1]], text)

    def as_told(self, text: str) -> str:
        """What was printed, with the ports of the page."""
        return plain(self._there.sub(lambda port: self._back[port[1]], text))

    def save(self, name: str, text: str) -> None:
        (self.directory / name).write_text(self.here(text), encoding="utf-8")

    def run(self, step: Step, time_limit_s: float = TIME_LIMIT_S) -> str:
        """Run a command to its end; gives what it printed. Errors and output go the same way, as in a terminal."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.here(step.command)],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=time_limit_s,
            check=False,
        )
        printed = self.as_told(done.stdout)
        assert done.returncode == 0 or step.output, f"$ {step.command}\n{printed}"
        return printed

    def open_terminal(self, step: Step) -> None:
        """Run a command until Ctrl-C, and wait for what it is to print."""
        terminal = Terminal(self.here(step.command), self.directory, self._environment)
        self._terminals.append(terminal)
        wanted = re.compile(pattern(step.output).pattern.removesuffix(r"\Z"))
        terminal.wait_for(lambda printed: wanted.search(self.as_told(printed)) is not None)

    def interrupt(self) -> None:
        """Ctrl-C in every terminal."""
        while self._terminals:
            self._terminals.pop().interrupt()


class Terminal:
    def __init__(self, command: str, directory: Path, environment: Mapping[str, str]) -> None:
        self.printed = directory.parent / f"{directory.name}-{time.monotonic_ns()}.txt"
        with self.printed.open("wb") as file:
            self._process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=directory, env=environment, stdout=file, stderr=subprocess.STDOUT
            )

    def wait_for(self, is_there: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + TIME_LIMIT_S
        while not is_there(self.printed.read_text()):
            assert self._process.poll() is None, self.printed.read_text()
            assert time.monotonic() < deadline, self.printed.read_text()
            time.sleep(0.05)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(TIME_LIMIT_S)


def free_ports() -> dict[str, str]:
    """A port that is named -> a free one. Those of a node and of its controller are neighbours."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            base = listener.getsockname()[1]
        try:
            with socket.create_server(("127.0.0.1", base + 1)):
                break
        except OSError:
            continue
    found = {"9092": str(base), "9093": str(base + 1)}
    for port in PORTS[2:]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            found[port] = str(listener.getsockname()[1])
    return found


@contextmanager
def session(directory: Path, port: int | None, python: Path | None = None) -> Iterator[Session]:
    """`port` is that of a broker that runs already; `python` that of an environment with ottla."""
    directory.mkdir()
    with tempfile.TemporaryDirectory(prefix="ottla-page-", ignore_cleanup_errors=True) as temporary:
        shell = Session(directory, port, temporary, python)
        try:
            yield shell
        finally:
            shell.interrupt()
