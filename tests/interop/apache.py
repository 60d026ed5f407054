"""Apache Kafka itself, from its jars: one combined KRaft node on loopback, and its command-line tools.

    with ApacheKafka(tmp_path, log_segment_bytes=1_048_576) as kafka:
        kafka.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", kafka.bootstrap_servers, "--list")
        kafka.stop()                                   # or kafka.kill(), as a crash
        print(dump_log(kafka.data_dir / "orders-0" / "00000000000000000000.log", "--deep-iteration"))
        kafka.start()                                  # boots again from the same directory, on the same port

A setting is given as a keyword (`log_segment_bytes`) or, unpacked from a dict, by Kafka's own name. With `data_dir` an
existing directory is booted as it is; one without meta.properties is formatted first. `classes` are plugins.
"""

import socket
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from tests.interop import process
from tests.interop.jars import APACHE_KAFKA, Report, classpath
from tests.interop.process import QUICK_START, ProgramFailed, java

CLUSTER_ID = "b3R0bGEtaW50ZXJvcC0wMQ"
NODE_ID = 1
START_TIMEOUT_S = 240
STOP_TIMEOUT_S = 60
SESSION_AFTER_CRASH = {"broker.session.timeout.ms": "4000"}
"""A boot after a crash waits for the session of the process that has crashed."""
START_ATTEMPTS = 3  # another process may take a free port between our looking and Kafka's binding
POLL_S = 0.05
STARTED = "Kafka Server started"
CLEAN = ".kafka_cleanshutdown"
PORT_TAKEN = "java.net.BindException"

ONE_NODE = {
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "30000",  # on a busy machine a node may not heed its own heartbeats for long
    "default.replication.factor": "1",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
}
"""What one node needs, and what makes it quick: small internal topics, no waiting for members that never come."""


def tool(
    main: str, *arguments: str, stdin: str = "", timeout_s: float = process.TOOL_TIMEOUT_S, check: bool = True
) -> str:
    """Run one of Kafka's command-line tools by its class and give what it printed."""
    return process.run(tool_command(main, *arguments), stdin=stdin, timeout_s=timeout_s, check=check)


def tool_command(main: str, *arguments: str) -> list[str]:
    quiet = {"org.slf4j.simpleLogger.defaultLogLevel": "warn"}
    return java(classpath(APACHE_KAFKA), main, *arguments, options=QUICK_START, properties=quiet)


def dump_log(files: Path | Iterable[Path], *flags: str, timeout_s: float = process.TOOL_TIMEOUT_S) -> str:
    """What kafka-dump-log says of one file or of several, read in one go."""
    paths = [files] if isinstance(files, Path) else list(files)
    names = ",".join(str(path) for path in paths)
    return tool("org.apache.kafka.tools.DumpLogSegments", "--files", names, *flags, timeout_s=timeout_s)


class ApacheKafka:
    """One node, broker and controller. `start` and the `with` statement wait until it serves."""

    def __init__(
        self,
        directory: Path,
        *,
        data_dir: Path | None = None,
        cluster_id: str = CLUSTER_ID,
        format_arguments: Iterable[str] = ("--standalone",),
        heap: str = "512m",
        classes: Path | None = None,
        report: Report = lambda text: None,
        java_properties: Mapping[str, str] = MappingProxyType({}),
        **settings: object,
    ) -> None:
        self.java_properties = java_properties
        self.directory = directory
        self.data_dir = data_dir or directory / "data"
        self.log_path = directory / "server.log"
        self.settings = {_property(key): str(value) for key, value in settings.items()}
        self.cluster_id = cluster_id
        self.format_arguments = tuple(format_arguments)
        self._heap = heap
        self._classpath = classpath(APACHE_KAFKA, classes, report)
        self._ports = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return self._ports[0]

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def controller_servers(self) -> str:
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def pid(self) -> int | None:
        """The running server's process id."""
        return self._process.pid if self.running and self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What the server printed since its last start."""
        return self.log_path.read_text(errors="replace")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a failure nobody looks at the directory any more: do not wait for a clean shutdown.
        if self.running and error is not None:
            self.kill()
        elif self.running:
            self.stop()

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Boot, after formatting a new directory. ProgramFailed with the end of the server log if it does not work."""
        assert not self.running, "Apache Kafka runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.format()
        for attempt in range(1, START_ATTEMPTS + 1):
            self._boot()
            if self._comes_up(timeout_s):
                return
            why = "does not start: its port was taken every time" if attempt == START_ATTEMPTS else ""
            if why or PORT_TAKEN not in self.log:
                raise ProgramFailed("Apache Kafka", why or "ended while starting", process.tail(self.log_path))
            self._ports = free_ports(2)

    def launch(self) -> None:
        """Begin to boot; `wait` comes after it. A voter serves only when others of its quorum run, too."""
        assert not self.running, "Apache Kafka runs already"
        self.format()
        self._boot()

    def wait(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Until a launched node serves. ProgramFailed with the end of the server log if it ends instead."""
        if not self._comes_up(timeout_s):
            raise ProgramFailed("Apache Kafka", "ended while starting", process.tail(self.log_path))

    def format(self) -> None:
        """Format the directory, unless it is one already."""
        if not (self.data_dir / "meta.properties").exists():
            self.data_dir.mkdir(parents=True, exist_ok=True)
            arguments = ("-t", self.cluster_id, "-c", str(self.write_properties()))
            tool("kafka.tools.StorageTool", "format", *arguments, *self.format_arguments, timeout_s=START_TIMEOUT_S)

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """A clean shutdown, as SIGTERM gives it."""
        assert self._process is not None, "Apache Kafka was never started"
        if not process.stop(self._process, timeout_s=timeout_s):
            raise ProgramFailed("Apache Kafka", f"did not stop within {timeout_s:g} s", process.tail(self.log_path))

    def kill(self) -> None:
        """A crash: SIGKILL, nothing flushed, no marker written."""
        assert self._process is not None, "Apache Kafka was never started"
        process.kill(self._process)

    def tool(self, main: str, *arguments: str, stdin: str = "", timeout_s: float = process.TOOL_TIMEOUT_S) -> str:
        """Run a tool; `--bootstrap-server` and the like are the caller's, since tools differ in them."""
        return tool(main, *arguments, stdin=stdin, timeout_s=timeout_s)

    def create_topic(self, name: str, *, partitions: int = 1, **settings: object) -> None:
        """A new topic with its settings, by kafka-topics."""
        configs = [word for key, value in settings.items() for word in ("--config", f"{_property(key)}={value}")]
        where = ("--bootstrap-server", self.bootstrap_servers, "--partitions", str(partitions))
        tool("org.apache.kafka.tools.TopicCommand", *where, "--create", "--topic", name, *configs)

    def _boot(self) -> None:
        logging = {
            "org.slf4j.simpleLogger.showDateTime": "true",
            "org.slf4j.simpleLogger.dateTimeFormat": "HH:mm:ss.SSS",
        }
        command = java(
            self._classpath,
            "kafka.Kafka",
            str(self.write_properties()),
            heap=self._heap,
            options=("-XX:+UseG1GC", "-Djava.awt.headless=true"),
            properties=logging | dict(self.java_properties),
        )
        with self.log_path.open("wb") as output:
            self._process = process.start(command, output)

    def _comes_up(self, timeout_s: float) -> bool:
        """True when the node serves, False when it ended by itself; one that does neither in time is killed."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if STARTED in self.log:
                return True
            if not self.running:
                return False
            time.sleep(POLL_S)
        self.kill()
        raise ProgramFailed("Apache Kafka", f"did not start within {timeout_s:g} s", process.tail(self.log_path))

    def write_properties(self) -> Path:
        """The server.properties of the node."""
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in self._properties().items()))
        return path

    def _properties(self) -> dict[str, str]:
        broker, controller = self._ports
        listeners = f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}"
        identity = {
            "process.roles": "broker,controller",
            "node.id": str(NODE_ID),
            "controller.quorum.bootstrap.servers": self.controller_servers,
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "log.dirs": str(self.data_dir),
        }
        has_run = any((self.data_dir / "__cluster_metadata-0").glob("*.log"))
        has_crashed = has_run and not (self.data_dir / CLEAN).exists()
        return identity | ONE_NODE | (SESSION_AFTER_CRASH if has_crashed else {}) | self.settings


def free_ports(count: int) -> tuple[int, ...]:
    """So many loopback ports that nobody listens on at this moment, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = tuple(each.getsockname()[1] for each in sockets)
    for each in sockets:
        each.close()
    return ports


def _property(key: str) -> str:
    return key if "." in key else key.replace("_", ".")
