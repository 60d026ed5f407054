"""Consumers in groups with one face, whoever wrote them, and running in threads of their own."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol, Self, TypeVar

TIME_LIMIT_S = 60
PARTITIONS = 4
PER_PARTITION = 25
SESSION_MS = 6000
POLL_S = 0.05
T = TypeVar("T")
Place = tuple[int, int]
"""Partition and offset."""


class Member(Protocol):
    """A consumer in a group, whoever wrote it."""

    def poll(self) -> list[Place]:
        """Partition and offset of what came."""
        ...

    def assignment(self) -> set[int]: ...
    def commit(self) -> None: ...
    def committed(self) -> dict[int, int | None]: ...
    def close(self) -> None:
        """Leave the group."""
        ...


# --- the clients ------------------------------------------------------------------------------------------------------


class Confluent:
    def __init__(self, servers: str, group: str, topic: str, **settings: object) -> None:
        from confluent_kafka import Consumer

        self._topic = topic
        base: dict[str, object] = {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if settings.get("group_protocol") != "consumer":  # whose members take these times from the broker
            base |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 300}
        self._consumer = Consumer(base | {key.replace("_", "."): value for key, value in settings.items()})
        self._consumer.subscribe([topic])

    def poll(self) -> list[Place]:
        messages = self._consumer.consume(500, 0.2)
        for message in messages:
            assert message.error() is None, message.error()
        return [(message.partition(), message.offset()) for message in messages]

    def assignment(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        from confluent_kafka import KafkaError, KafkaException

        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:  # nothing was read since the last commit
                raise

    def committed(self) -> dict[int, int | None]:
        from confluent_kafka import KafkaError, KafkaException, TopicPartition

        wanted = [TopicPartition(self._topic, index) for index in range(PARTITIONS)]
        deadline_s = time.monotonic() + TIME_LIMIT_S
        while True:
            try:
                found = self._consumer.committed(wanted, TIME_LIMIT_S)
                break
            except KafkaException as error:  # librdkafka looks for the new coordinator, and leaves asking it to us
                if error.args[0].code() != KafkaError.NOT_COORDINATOR or time.monotonic() > deadline_s:
                    raise
                time.sleep(0.1)
        return {each.partition: each.offset if each.offset >= 0 else None for each in found}

    def close(self) -> None:
        self._consumer.close()


class KafkaPython:
    def __init__(self, servers: str, group: str, topic: str, **settings: object) -> None:
        from kafka import KafkaConsumer

        self._topic = topic
        self._consumer = KafkaConsumer(
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=300,
            reconnect_backoff_max_ms=1_000,  # else it does not come back for half a minute to a node that was down
            **settings,
        )
        # A leader that joins before it knows the topic gives nobody anything, and may not notice when it learns of it.
        until(f"metadata of {topic}", lambda: bool(self._consumer.partitions_for_topic(topic)))
        self._consumer.subscribe([topic])

    def poll(self) -> list[Place]:
        found = self._consumer.poll(timeout_ms=200)
        return [(at.partition, record.offset) for at, records in found.items() for record in records]

    def assignment(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        from kafka.errors import RebalanceInProgressError

        with suppress(RebalanceInProgressError):  # who joins last may bring another rebalance
            self._consumer.commit()

    def committed(self) -> dict[int, int | None]:
        from kafka import TopicPartition

        return {index: self._consumer.committed(TopicPartition(self._topic, index)) for index in range(PARTITIONS)}

    def close(self) -> None:
        self._consumer.close()


class Aiokafka:
    """Runs its loop only while it is asked something."""

    def __init__(self, servers: str, group: str, topic: str, **settings: Any) -> None:
        from aiokafka import AIOKafkaConsumer

        self._topic = topic
        self._loop = asyncio.new_event_loop()

        async def start() -> Any:
            consumer = AIOKafkaConsumer(
                topic,
                bootstrap_servers=servers,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=300,
                **settings,
            )
            await consumer.start()
            return consumer

        self._consumer = self._run(start())

    def _run(self, what: Any) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(what, TIME_LIMIT_S))

    def poll(self) -> list[Place]:
        found = self._run(self._consumer.getmany(timeout_ms=200))
        return [(at.partition, record.offset) for at, records in found.items() for record in records]

    def assignment(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._run(self._consumer.commit())

    def committed(self) -> dict[int, int | None]:
        from aiokafka import TopicPartition

        return {
            index: self._run(self._consumer.committed(TopicPartition(self._topic, index)))
            for index in range(PARTITIONS)
        }

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._loop.close()


CLIENTS: dict[str, Callable[..., Member]] = {
    "confluent-kafka": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
}


# --- running ----------------------------------------------------------------------------------------------------------


def filled(servers: str, name: str) -> str:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})  # which must outlive its future
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(TIME_LIMIT_S)
    producer = Producer({"bootstrap.servers": servers})
    for index in range(PARTITIONS):
        for number in range(PER_PARTITION):
            producer.produce(name, f"{index}-{number}", partition=index)
    assert producer.flush(TIME_LIMIT_S) == 0
    return name


def until(what: str, step: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIME_LIMIT_S
    while not step():
        assert time.monotonic() < deadline, f"never came: {what}"


class Running:
    """A member in a thread of its own, polling as programs do, with a queue of other things to do in between."""

    def __init__(self, make: Callable[..., Member], *arguments: str, **settings: Any) -> None:
        self.read: set[Place] = set()
        self.partitions: set[int] = set()
        self._wishes: queue.SimpleQueue[tuple[Callable[[Member], Any], Future[Any]]] = queue.SimpleQueue()
        self._is_over = threading.Event()
        self._forgotten = threading.Event()
        self._forgotten.set()
        self._thread = threading.Thread(target=self._run, args=(make, arguments, settings))
        self._failure: BaseException | None = None
        self._thread.start()

    def _run(self, make: Callable[..., Member], arguments: tuple[str, ...], settings: dict[str, Any]) -> None:
        try:
            member = make(*arguments, **settings)
            while not self._is_over.is_set():
                while not self._wishes.empty():
                    wish, outcome = self._wishes.get()
                    outcome.set_result(wish(member))
                self.read.update(member.poll())
                self.partitions = member.assignment()
            self._forgotten.wait(TIME_LIMIT_S)
            member.close()
        except BaseException as failure:
            self._failure = failure
            raise

    def ask(self, wish: Callable[[Member], T]) -> T:
        outcome: Future[T] = Future()
        self._wishes.put((wish, outcome))
        return outcome.result(TIME_LIMIT_S)

    def freeze(self) -> None:
        """Do nothing any more, not even send heartbeats if they come from the same thread, until the end."""
        self._forgotten.clear()
        self._is_over.set()

    def end(self) -> None:
        self._forgotten.set()
        self._is_over.set()
        self._thread.join(TIME_LIMIT_S)
        assert not self._thread.is_alive(), "the member did not end"
        assert self._failure is None, self._failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._thread.is_alive():
            self.end()


def shared(*members: Running) -> None:
    """Wait until the members have all partitions, each of them the same number, none twice."""

    def step() -> bool:
        time.sleep(POLL_S)
        parts = [set(member.partitions) for member in members]
        even = all(len(part) == PARTITIONS // len(members) for part in parts)
        return even and set().union(*parts) == set(range(PARTITIONS))

    until(f"{len(members)} members share", step)


def all_read(*members: Running) -> None:
    def step() -> bool:
        time.sleep(POLL_S)
        return set().union(*(set(member.read) for member in members)) == EVERYTHING

    until("all records", step)


EVERYTHING = {(index, number) for index in range(PARTITIONS) for number in range(PER_PARTITION)}


def all_committed(*members: Running) -> None:
    """Let members commit until they have committed the end of all that they own.

    What a member read before a rebalance does not count: it reads that again, and commits only then.
    """

    def step() -> bool:
        for member in members:
            member.ask(lambda each: each.commit())
        kept = members[0].ask(lambda each: each.committed())
        return all(kept[index] == PER_PARTITION for member in members for index in member.partitions)

    until("everything is committed", step)
