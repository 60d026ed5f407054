"""Spark in three surroundings: in this process, on a standalone cluster of two workers, and behind Spark Connect.

One at a time: each has a JVM or more, and a process cannot have a classic session and one of Spark Connect at once.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

from ottla.spark import register, session
from tests.interop import process
from tests.interop.apache import free_ports
from tests.interop.jars import SPARK_KAFKA, libraries

LOCAL, STANDALONE, CONNECT = "local", "standalone", "connect"
SPARK_HOME = Path(pyspark.__file__).parent
CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
START_TIMEOUT_S = 90
POLL_S = 0.1
CONF = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "600m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def jars() -> str:
    """Spark's own connector, with which ours is compared."""
    return ",".join(str(path) for path in sorted(libraries(SPARK_KAFKA).glob("*.jar")))


CONNECT_VARIABLES = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE")


class Sessions:
    """Gives the session of a surrounding and ends the one before it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._kind = ""
        self._spark: Any = None
        self._around: Any = None

    def get(self, kind: str) -> Any:
        if kind != self._kind:
            self.end()
            starts = {LOCAL: self._local, STANDALONE: self._standalone, CONNECT: self._connect}
            self._spark = starts[kind]()
            self._kind = kind
        return self._spark

    def end(self) -> None:
        if self._spark is not None:
            self._spark.stop()
        if self._around is not None:
            self._around.__exit__(None, None, None)
        for name in CONNECT_VARIABLES:
            os.environ.pop(name, None)
        self._kind, self._spark, self._around = "", None, None

    def _local(self) -> Any:
        return session("local[2]", conf={**CONF, "spark.jars": jars()})

    def _standalone(self) -> Any:
        self._around = standalone_cluster(self._directory)
        master = self._around.__enter__()
        os.environ["PYSPARK_PYTHON"] = sys.executable
        conf = {**CONF, "spark.jars": jars(), "spark.executor.cores": "1", "spark.cores.max": "2"}
        spark = session(master, conf=conf)
        register(spark)  # asks the executors for their version
        return spark

    def _connect(self) -> Any:
        from pyspark.sql import SparkSession

        self._around = connect_server(self._directory)
        address = self._around.__enter__()
        spark = SparkSession.builder.remote(address).create()
        register(spark)
        return spark


def plain_environment() -> dict[str, str]:
    """For a child: without what a session of Spark Connect has left here, and with this Python for executors."""
    kept = {name: value for name, value in os.environ.items() if name not in CONNECT_VARIABLES}
    return kept | {"PYSPARK_PYTHON": sys.executable}


# --- processes --------------------------------------------------------------------------------------------------------


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """A master and two workers; the wheel has no scripts for them, but the classes."""
    port, *ui = free_ports(4)
    master = f"spark://127.0.0.1:{port}"
    with _running(directory / "master.log", _java_class("master.Master", "--port", port, "--webui-port", ui[0])):
        _await_port(port)
        first = _worker(directory / "worker-1", ui[1], master)
        second = _worker(directory / "worker-2", ui[2], master)
        with first, second:
            yield master


@contextmanager
def _worker(directory: Path, ui: int, master: str) -> Iterator[None]:
    directory.mkdir(exist_ok=True)
    words = ("--webui-port", ui, "-c", 1, "-m", "1024M", "-d", directory, master)
    with _running(directory / "worker.log", _java_class("worker.Worker", *words)):
        _await(lambda: "Successfully registered" in (directory / "worker.log").read_text(), "a worker")
        yield


def _java_class(name: str, *words: object) -> list[str]:
    program = str(SPARK_HOME / "bin" / "spark-class")
    return [program, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *map(str, words)]


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    (port,) = free_ports(1)
    conf = {**CONF, "spark.jars": jars(), "spark.connect.grpc.binding.port": port}
    words = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    # The wheel has no script for it in every version, but the class.
    program = [str(SPARK_HOME / "bin" / "spark-submit"), "--class", CONNECT_SERVER, "--master", "local[2]"]
    with _running(directory / "connect.log", [*program, *words, "spark-internal"]):
        _await_port(port)
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _running(log: Path, command: list[str]) -> Iterator[None]:
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    with log.open("wb") as output:
        started = subprocess.Popen(
            process.tied(command), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
    try:
        yield
    finally:
        process.stop(started, timeout_s=20)


def _await_port(port: int) -> None:
    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    _await(answers, f"port {port}")


def _await(condition: Any, what: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {START_TIMEOUT_S} s"
        time.sleep(POLL_S)
