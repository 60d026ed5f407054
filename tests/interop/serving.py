"""`ottla serve` as a process, with the same handles as `apache.ApacheKafka`: start, stop, kill, on the same port."""

import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop import process
from tests.interop.apache import CLUSTER_ID, POLL_S, _property, free_ports
from tests.interop.process import ProgramFailed

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30
READY = "ottla ready"


class OttlaServe:
    """One node on a directory. `start` and the `with` statement wait until it serves."""

    def __init__(
        self,
        directory: Path,
        *,
        data_dir: Path | None = None,
        prefix: tuple[str, ...] = (),
        program: str = "ottla",
        cluster_id: str = CLUSTER_ID,
        format_arguments: Iterable[str] = (),
        **settings: object,
    ) -> None:
        """`prefix` comes before the command: a program that starts it under other conditions. `program` is a module.

        With `format_arguments` the directory is formatted by `ottla storage format`; without them, at the first start.
        """
        self.directory = directory
        self._prefix = prefix
        self._program = program
        self.cluster_id = cluster_id
        self.format_arguments = tuple(format_arguments)
        self.data_dir = data_dir or directory / "data"
        self.log_path = directory / "ottla.log"
        self.settings = {_property(key): str(value) for key, value in settings.items()}
        self.links: dict[str, str] = {}
        """Where other nodes are reached, by the addresses that the cluster knows; each is `host:port`."""
        self._ports = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def controller_servers(self) -> str:
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the node was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return None if self._process is None else self._process.poll()

    @property
    def log(self) -> str:
        """What the node printed since its last start."""
        return self.log_path.read_text(errors="replace")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            self.kill()

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Boot; ProgramFailed with what the node printed if it does not work."""
        self.launch()
        self.wait(timeout_s=timeout_s)

    def launch(self) -> None:
        """Begin to boot; `wait` comes after it. A voter serves only when others of its quorum run, too."""
        assert not self.running, "the node runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.write_properties()
        if self.format_arguments and not (self.data_dir / "meta.properties").exists():
            arguments = ("--config", str(path), "--cluster-id", self.cluster_id, *self.format_arguments)
            process.run(self._python(self._program, "storage", "format", *arguments))
        serve = [self._program, "serve", "--config", str(path)]
        if self.links:
            pairs = [f"{known}={other}" for known, other in self.links.items()]
            serve = ["ottla.testing.clusters.node_main", str(path), *pairs]
        with self.log_path.open("wb") as output:
            # A node of `node_main` ends when its input is closed, as it is when we end.
            stdin = subprocess.PIPE if self.links else subprocess.DEVNULL
            self._process = process.start(self._python(*serve), output, stdin=stdin)

    def _python(self, *words: str) -> list[str]:
        return [*self._prefix, sys.executable, "-m", *words]

    def wait(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Until a launched node serves. ProgramFailed with what it printed if it ends instead."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if READY in self.log:
                return
            if not self.running:
                raise ProgramFailed("ottla serve", "ended while starting", process.tail(self.log_path))
            time.sleep(POLL_S)
        self.kill()
        raise ProgramFailed("ottla serve", f"did not start within {timeout_s:g} s", process.tail(self.log_path))

    def write_properties(self) -> Path:
        """The server.properties of the node."""
        client, controller = self._ports
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
            "auto.create.topics.enable": "false",
            "log.dirs": str(self.data_dir),
            **self.settings,
        }
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """A clean stop, as SIGTERM gives it."""
        assert self._process is not None, "the node was never started"
        is_clean = process.stop(self._process, timeout_s=timeout_s)
        if not is_clean or self._process.returncode:
            raise ProgramFailed("ottla serve", f"did not stop: {self._process.returncode}", process.tail(self.log_path))

    def wait_for_end(self, *, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """The exit code of a node that ends by itself."""
        assert self._process is not None, "the node was never started"
        return self._process.wait(timeout_s)

    def kill(self) -> None:
        """A crash: SIGKILL."""
        assert self._process is not None, "the node was never started"
        process.kill(self._process)
