"""Kafka Streams applications as processes: started, asked, closed and killed one by one."""

from __future__ import annotations

import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.interop import process
from tests.interop.compiling import class_files
from tests.interop.jars import APACHE_KAFKA, classpath
from tests.interop.process import ProgramFailed

SOURCES = Path(__file__).parent / "java"
TIMEOUT_S = 90
_QUIET = {"org.slf4j.simpleLogger.defaultLogLevel": "warn"}


def compiled() -> Path:
    """The folder of class files."""
    return class_files("streams-app-classes", sorted(SOURCES.rglob("*.java")), APACHE_KAFKA)


class App:
    """One instance. `settings` are those of Kafka Streams."""

    def __init__(self, topology: str, prefix: str, servers: str, directory: Path, **settings: object) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        given = {
            "bootstrap.servers": servers,
            "application.id": f"{prefix}-app",
            "client.id": f"{prefix}-{directory.name}",
            "state.dir": str(directory),
        } | {key.replace("_", "."): str(value) for key, value in settings.items()}
        command = process.java(
            classpath(APACHE_KAFKA, compiled()),
            "streams.App",
            topology,
            prefix,
            *(f"{key}={value}" for key, value in given.items()),
            options=process.QUICK_START,
            properties=_QUIET,
        )
        self.lines: list[str] = []
        self.started_at_s = time.monotonic()
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            process.tied(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self.lines.append("END")
            self._changed.notify_all()

    def wait_for(self, wanted: str, *, since: int = 0, timeout_s: float = TIMEOUT_S) -> str:
        """The first line from `since` on that begins so."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                for line in self.lines[since:]:
                    if line.startswith(wanted):
                        return line
                if "END" in self.lines[since:] or not self._changed.wait(deadline - time.monotonic()):
                    raise ProgramFailed("the application", f"never said {wanted!r}", "\n".join(self.lines[-60:]))

    def running(self) -> App:
        self.wait_for("STATE RUNNING")
        return self

    def ask(self, command: str) -> str:
        since = len(self.lines)
        self._tell(command)
        return self.wait_for("ANSWER", since=since).removeprefix("ANSWER ")

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        self._tell("close")
        self.wait_for("CLOSED true")
        self._process.wait(TIMEOUT_S)

    def kill(self) -> None:
        """As a crash would."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(TIMEOUT_S)
        self._reader.join(TIMEOUT_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
