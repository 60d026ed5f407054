"""Share consumers with one face, whoever wrote them: Java's of several releases, librdkafka's and our own."""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeVar

from tests.interop import process
from tests.interop.compiling import class_files
from tests.interop.jars import APACHE_KAFKA, CLIENTS_4_2, CLIENTS_4_4, classpath

TIME_LIMIT_S = 240.0
POLL_S = 0.2
JAVA = {"java-4.2.1": CLIENTS_4_2, "java-4.3.1": APACHE_KAFKA, "java-4.4.0": CLIENTS_4_4}
LIBRDKAFKA, OTTLA = "librdkafka", "ottla"
SOURCES = Path(__file__).parent / "java"
Settings = Mapping[str, str]
"""By the names of Java's settings."""
T = TypeVar("T")
_names = count(1)


class DeliveredRecord(NamedTuple):
    """A record as a worker got it."""

    partition: int
    offset: int
    delivery_count: int
    value: str


class Worker(Protocol):
    """A share consumer."""

    def poll(self, timeout_s: float = POLL_S) -> list[DeliveredRecord]: ...
    def acknowledge(self, given: DeliveredRecord, verdict: str) -> None:
        """ACCEPT, RELEASE, REJECT or RENEW."""

    def commit(self) -> dict[int, str]:
        """The name of an error, or NONE, for each partition."""

    def close(self) -> None: ...


class RefusedError(AssertionError):
    """A client refused to do what it was told; `name` is Kafka's error or the exception's class."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


class History:
    """Reads what a program prints about the records that it got and accepted; its other lines are answers."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self.records: list[DeliveredRecord] = []
        self.accepted: list[tuple[int, int]] = []
        """Partition and offset of what a leader said it has accepted."""
        self.answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._program = program
        assert program.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(program.stdout,), daemon=True)
        self._reader.start()

    def _read(self, output: IO[str]) -> None:
        for line in output:
            kind, *rest = line.rstrip("\n").split("\t")
            if not line.endswith("\n"):
                return  # killed in the middle of it
            if kind == "record":
                self.records.append(_given(rest[0]))
            elif kind == "accepted":
                self.accepted += [(int(each.split(" ")[0]), int(each.split(" ")[1])) for each in rest]
            else:
                self.answers.put(line.rstrip("\n"))

    def end(self) -> None:
        """Kill the program, and read what it had printed."""
        process.kill(self._program)  # type: ignore[arg-type]
        self._reader.join(TIME_LIMIT_S)
        for stream in (self._program.stdin, self._program.stdout):
            if stream is not None:
                stream.close()


def librdkafka_member(bootstrap_servers: str, group: str, topic: str) -> History:
    """A member in a program of its own, which can be killed."""
    command = [sys.executable, "-m", "tests.interop.share.librdkafka_member", bootstrap_servers, group, topic]
    return History(
        subprocess.Popen(process.tied(command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    )


# --- Java -------------------------------------------------------------------------------------------------------------


class Driver:
    """A Java program that holds any number of consumers and does what it is told, line by line."""

    def __init__(self, release: str, bootstrap_servers: str) -> None:
        jars = JAVA[release]
        classes = class_files(f"share-driver-{release}", sorted(SOURCES.rglob("*.java")), jars)
        quiet = {"org.slf4j.simpleLogger.defaultLogLevel": "off"}
        path = classpath(jars, classes)
        command = process.java(path, "share.Driver", bootstrap_servers, options=process.QUICK_START, properties=quiet)
        self._process = subprocess.Popen(
            process.tied(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.history = History(self._process)

    def kill(self) -> None:
        """A crash of all its consumers."""
        self.history.end()

    def tell(self, *words: str) -> list[str]:
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        kind, *rest = self.history.answers.get(timeout=TIME_LIMIT_S).split("\t")
        if kind != "ok":
            raise RefusedError(rest[0], " ".join(rest[1:]))
        return [word for word in rest if word]


class JavaWorker:
    def __init__(self, driver: Driver, group: str, topic: str, settings: Settings) -> None:
        self._driver = driver
        self._name = f"worker-{next(_names)}"
        driver.tell("open", self._name, group, topic, *(word for pair in settings.items() for word in pair))

    def poll(self, timeout_s: float = POLL_S) -> list[DeliveredRecord]:
        return [_given(each) for each in self._driver.tell("poll", self._name, str(round(timeout_s * 1000)))]

    def acknowledge(self, given: DeliveredRecord, verdict: str) -> None:
        self._driver.tell("acknowledge", self._name, str(given.partition), str(given.offset), verdict)

    def commit(self) -> dict[int, str]:
        pairs = (each.split(" ") for each in self._driver.tell("commit", self._name))
        return {int(partition): name for partition, name in pairs}

    def work(self) -> None:
        """Poll and accept in a thread; the driver has the history."""
        self._driver.tell("work", self._name)

    def close(self) -> None:
        self._driver.tell("close", self._name)


def _given(text: str) -> DeliveredRecord:
    partition, offset, delivery_count, value = text.split(" ", 3)
    return DeliveredRecord(int(partition), int(offset), int(delivery_count), value)


# --- librdkafka -------------------------------------------------------------------------------------------------------


class LibrdkafkaWorker:
    def __init__(self, bootstrap_servers: str, group: str, topic: str, settings: Settings) -> None:
        from confluent_kafka import ShareConsumer

        own = {"bootstrap.servers": bootstrap_servers, "group.id": group, "log_level": 0}
        self._topic = topic
        self._consumer = ShareConsumer(own | dict(settings))
        self._consumer.subscribe([topic])

    def poll(self, timeout_s: float = POLL_S) -> list[DeliveredRecord]:
        found = []
        for message in self._consumer.poll(timeout_s):
            assert message.error() is None, message.error()
            value = message.value().decode()
            found.append(DeliveredRecord(message.partition(), message.offset(), message.delivery_count(), value))
        return found

    def acknowledge(self, given: DeliveredRecord, verdict: str) -> None:
        from confluent_kafka import AcknowledgeType

        kind = getattr(AcknowledgeType, verdict)
        self._consumer.acknowledge_offset(self._topic, given.partition, given.offset, kind)

    def commit(self) -> dict[int, str]:
        outcomes = self._consumer.commit_sync(TIME_LIMIT_S)
        return {at.partition: "NONE" if error is None else _name_of(error) for at, error in outcomes.items()}

    def close(self) -> None:
        self._consumer.close()


def _name_of(error: Any) -> str:
    return str(error.args[0].name())


# --- ours -------------------------------------------------------------------------------------------------------------


class OttlaWorker:
    """Our own, with its event loop in a thread."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str, settings: Settings) -> None:
        from ottla.client import Client, ShareConsumer

        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._held: dict[tuple[int, int], Any] = {}

        async def open_consumer() -> Any:
            self._client = await Client(bootstrap_servers).__aenter__()
            consumer = ShareConsumer(self._client, group, [topic], **_options(settings))
            return await consumer.__aenter__()

        self._consumer = self._run(open_consumer())

    def _run(self, what: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(TIME_LIMIT_S)

    def poll(self, timeout_s: float = POLL_S) -> list[DeliveredRecord]:
        found = []
        for acquired in self._run(self._consumer.poll(round(timeout_s * 1000))):
            for record in acquired.records():
                self._held[record.partition, record.offset] = record
                found.append(
                    DeliveredRecord(record.partition, record.offset, record.delivery_count, record.value.decode())
                )
        return found

    def assigned(self) -> bool:
        return bool(self._consumer.assignment)

    def acknowledge(self, given: DeliveredRecord, verdict: str) -> None:
        self._run(self._acknowledge(self._held[given.partition, given.offset], verdict))

    async def _acknowledge(self, record: Any, verdict: str) -> None:
        if verdict == "RENEW":
            await self._consumer.renew(record)
        else:
            getattr(self._consumer, verdict.lower())(record)

    def commit(self) -> dict[int, str]:
        return {at.partition: _text(error) for at, error in self._run(self._consumer.commit()).items()}

    def close(self) -> None:
        self._run(self._consumer.close())
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIME_LIMIT_S)
        self._loop.close()


def _options(settings: Settings) -> dict[str, Any]:
    names = {
        "share.acknowledgement.mode": "acknowledgement",
        "share.acquire.mode": "acquire_mode",
        "max.poll.records": "max_records",
        "fetch.max.wait.ms": "max_wait_ms",
    }
    return {names[key]: int(value) if value.isdigit() else value for key, value in settings.items()}


def _text(error: Any) -> str:
    from ottla.client.errors import ResponseError

    if error is None:
        return "NONE"
    return error.error.name if isinstance(error, ResponseError) and error.error else type(error).__name__


# --- all of them ------------------------------------------------------------------------------------------------------


class Workers:
    """Opens consumers of any kind; they share one Java program for each release. What is still open is closed."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._drivers: dict[str, Driver] = {}

    def driver(self, release: str) -> Driver:
        if release not in self._drivers:
            self._drivers[release] = Driver(release, self.bootstrap_servers)
        return self._drivers[release]

    def open(self, client: str, group: str, topic: str, settings: Settings | None = None) -> Worker:
        chosen = settings or {}
        if client in JAVA:
            return JavaWorker(self.driver(client), group, topic, chosen)
        kind = {LIBRDKAFKA: LibrdkafkaWorker, OTTLA: OttlaWorker}[client]
        return kind(self.bootstrap_servers, group, topic, chosen)

    def close(self) -> None:
        for driver in self._drivers.values():
            driver.kill()


@contextmanager
def closing(*workers: Worker) -> Iterator[None]:
    try:
        yield
    finally:
        for worker in workers:
            worker.close()


def until(what: str, step: Callable[[], T]) -> T:
    """Repeat a step until it gives something; its own waiting (a poll) paces it."""
    deadline = time.monotonic() + TIME_LIMIT_S
    while not (found := step()):
        assert time.monotonic() < deadline, f"never came: {what}"
    return found


def polled(worker: Worker) -> list[DeliveredRecord]:
    """The next records that come."""
    return until("records", worker.poll)


def silent(worker: Worker, seconds: float = 1.5) -> bool:
    """Whether nothing comes for so long."""
    return not worker.poll(seconds)


def settled(worker: Worker, given: Iterable[DeliveredRecord], verdict: str) -> dict[int, str]:
    """Say the same of all of these, and hear what the leader makes of it."""
    for each in given:
        worker.acknowledge(each, verdict)
    return worker.commit()
