"""Clients of all kinds at work on one topic of a cluster, until its nodes have been through what a test does to them.

    with ClusterLoad(servers, directory, replicas=3) as load:
        ...                                            # kill, stop or replace nodes
        load.wait_for_progress()                       # everybody has got further
        load.finish()                                  # and everybody got what Kafka promises

Producers write numbered records with acks=all, idempotent or not: librdkafka's and Java's. A flow of Java's clients
passes them on to another topic in transactions that hold the offsets, too; a producer of librdkafka writes to all
partitions of a third one in each of its transactions. A consumer group reads and commits. The members of a share group,
Java's and librdkafka's, accept each record. An application of Kafka Streams counts words. No client is started twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.component.broker.kill_load import PARTITIONS, PATIENT, TOPIC, Load, Placed, check, read_log
from tests.component.when_ready import watermarks, when_ready
from tests.interop import process
from tests.interop.quorum.background import TIME_LIMIT_S, Background
from tests.interop.quorum.producer_ledgers import JavaLedger, check_ledgers
from tests.interop.quorum.topic_history import TopicHistory
from tests.interop.quorum.word_count import COUNTS, WORDS, WordCount
from tests.interop.share.brokers import Cluster
from tests.interop.share.workers import Driver, History, JavaWorker, librdkafka_member
from tests.interop.transactions.flow_programs import JAVA, flow_command

SETTINGS = {
    "min.insync.replicas": "2",
    "group.min.session.timeout.ms": "1000",
    "broker.session.timeout.ms": "9000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    **{
        f"{topic}.{setting}": value
        for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
        for setting, value in (("num.partitions", "6"), ("replication.factor", "3"))
    },
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.min.isr": "2",
}
"""Of the nodes: coordinators on all of them, and none that can acknowledge something alone."""
PRODUCERS = {
    "idempotent": {"enable.idempotence": True, "max.in.flight": 1},
    "idempotent-lz4": {"enable.idempotence": True, "max.in.flight": 1, "compression.type": "lz4", "linger.ms": 5},
    "all": {"acks": "all", "max.in.flight": 1},
}
"""Of librdkafka, one batch at a time. With several under way, a new leader of Apache Kafka may refuse the first because
it does not lead yet, and the next because one is missing: librdkafka (2.16.0, its issue 4953) then begins a new epoch
and sends all that was not answered once more, also what the former leader has written. A leader of ottla refuses both
alike. Java's producers have several under way, and send them again in the same epoch."""
PASSED, ATOMIC = "passed", "atomic"
TOPICS = (TOPIC, PASSED, ATOMIC, WORDS, COUNTS)
COORDINATORS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
PAUSE_S = 0.1
BACK_OFF = {key: value for key, value in PATIENT.items() if key.startswith("reconnect") or key == "log_level"}
SHARE_GROUP, READERS, FLOW = "sharers", "readers", "flow"
"""Groups; the last is a transactional id, too."""
FLOW_TIMEOUT_MS = 120_000
"""Of its sessions and transactions: longer than a node is away, on a machine that is busy with other things as well."""


class Flow:
    """A program that passes the records on in transactions."""

    def __init__(self, servers: str, directory: Path) -> None:
        self.log_path = directory / "flow.log"
        command = flow_command(JAVA, servers, TOPIC, PASSED, FLOW, FLOW, "7", str(FLOW_TIMEOUT_MS))
        with self.log_path.open("wb") as output:
            self.process = process.start(command, output)


class Transactions(Background):
    """Writes a number to each partition in a transaction, and commits or aborts it.

    It sends no offsets: when a broker has been away for a while, librdkafka 2.15 may wait for ever for the coordinator
    of the group.
    """

    def __init__(self, servers: str, pause_s: float) -> None:
        self.committed: list[int] = []
        self._pause_s = pause_s
        super().__init__(servers)

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._servers, "transactional.id": ATOMIC, **BACK_OFF})
        self._try(lambda: producer.init_transactions(TIME_LIMIT_S))
        for number in count():
            if self._is_over.is_set():
                return
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(ATOMIC, str(number).encode(), partition=partition)
            # librdkafka ends for good if it aborts a transaction that its coordinator has not begun yet, because the
            # one before is still ending (docs/reference/differences.md: end-after-markers).
            self._try(lambda: producer.flush(TIME_LIMIT_S))
            is_abort = number % 5 == 0
            if is_abort or not self._try(lambda: producer.commit_transaction(TIME_LIMIT_S)):
                self._try(lambda: producer.abort_transaction(TIME_LIMIT_S))
            else:
                self.committed.append(number)
            self._is_over.wait(self._pause_s)

    def _try(self, call: Callable[[], object]) -> bool:
        """Whether a call has worked; not if the transaction has to be aborted."""
        while True:
            try:
                call()
            except KafkaException as failure:
                if failure.args[0].txn_requires_abort():
                    return False
                if not failure.args[0].retriable():
                    raise
            else:
                return True


class Reader(Background):
    """A member of a consumer group of the new kind, which commits what it has read."""

    def __init__(self, servers: str) -> None:
        self.read: list[tuple[int, int]] = []
        self.committed = dict.fromkeys(range(PARTITIONS), 0)
        """What the coordinator has acknowledged."""
        super().__init__(servers)

    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": READERS,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **BACK_OFF,
            }
        )
        consumer.subscribe([TOPIC])
        while not self._is_over.is_set():
            messages = [each for each in consumer.consume(500, 0.2) if each.error() is None]
            for message in messages:
                at = (message.partition(), message.offset())
                assert at[1] >= self.committed[at[0]], f"{at} was committed, and came again"
                self.read.append(at)
            if messages:
                self._commit(consumer)
        consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        try:
            for each in consumer.commit(asynchronous=False) or ():
                if each.error is None:
                    self.committed[each.partition] = each.offset
        except KafkaException as error:
            if error.args[0].code() == KafkaError._FATAL:
                raise  # anything else: the next one is as good


class ClusterLoad:
    """Runs from the start of the `with` statement until `finish`."""

    def __init__(
        self,
        servers: str,
        directory: Path,
        *,
        replicas: int,
        may_begin_anew: bool = False,
        does_expire: bool = False,
        pause_s: float = PAUSE_S,
    ) -> None:
        """`pause_s`: how long producers wait after each record of a partition. `may_begin_anew`: whether the flow may
        give a transaction up, and go on with a new producer. `does_expire`: whether the cluster deletes records before
        the end, so that they are read while they are written."""
        self._servers = servers
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._replicas = replicas
        self._may_begin_anew = may_begin_anew
        self._does_expire = does_expire
        self._pause_s = pause_s
        self._histories: dict[str, TopicHistory] = {}
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._open(opened)
            self._opened = opened.pop_all()
        return self

    def _open(self, opened: ExitStack) -> None:
        servers = self._servers
        admin = AdminClient({"bootstrap.servers": servers})
        newest_counts = {COUNTS: {"cleanup.policy": "compact"}} if self._does_expire else {}
        targets = [
            NewTopic(name, PARTITIONS, self._replicas, config=newest_counts.get(name, {}))
            for name in TOPICS
            if name != TOPIC
        ]
        for created in admin.create_topics(targets).values():
            created.result(TIME_LIMIT_S)
        self.producers = Load(servers, PRODUCERS, replicas=self._replicas, pause_s=self._pause_s)
        opened.callback(self.producers.stop)
        if self._does_expire:
            for topic in (TOPIC, PASSED, ATOMIC, WORDS):
                self._histories[topic] = TopicHistory(servers, topic)
                opened.callback(self._histories[topic].stop)
        Cluster(servers).configure(SHARE_GROUP, {"share.auto.offset.reset": "earliest"})
        self.transactions = Transactions(servers, self._pause_s)
        opened.callback(self.transactions.stop)
        self.reader = Reader(servers)
        opened.callback(self.reader.stop)
        self._open_java(opened)

    def _open_java(self, opened: ExitStack) -> None:
        """Programs of Java, one after the other: they take their time to start."""
        servers = self._servers
        self._java = JavaLedger(servers, self._directory / "producers.txt", pause_ms=round(self._pause_s * 1000))
        opened.callback(self._java.kill)
        self._until(self._java.has_started, lambda: "the producers of Java have not started")
        self.flow = Flow(servers, self._directory)
        opened.callback(process.kill, self.flow.process)
        driver = Driver("java-4.3.1", servers)
        self._members: list[History] = [driver.history, librdkafka_member(servers, SHARE_GROUP, TOPIC)]
        for member in self._members:
            opened.callback(member.end)
        JavaWorker(driver, SHARE_GROUP, TOPIC, {"share.acknowledgement.mode": "explicit"}).work()
        self._words = WordCount(servers, self._directory / "streams", partitions=PARTITIONS, replicas=self._replicas)
        opened.callback(self._words.kill)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(f"--- {self.flow.log_path.name}\n{process.tail(self.flow.log_path, 10)}")
        self._opened.close()

    # --- how far they are ---------------------------------------------------------------------------------------------

    def progress(self) -> dict[str, int]:
        """How many records each client has got through."""
        assert self.flow.process.poll() is None, f"the flow has ended: {process.tail(self.flow.log_path)}"
        for each in (self.reader, self.transactions, self._words, *self._histories.values()):
            each.check()
        return {
            "producers": self.producers.count(),
            "reader": len(self.reader.read),
            "transactions": len(self.transactions.committed),
            "flow": _end(self._servers, PASSED),
            "share group": sum(len(each.accepted) for each in self._members),
            "streams": _end(self._servers, COUNTS),
        }

    def wait_for_progress(self) -> None:
        """Until each of them has got further."""
        before = self.progress()

        def is_further() -> bool:
            now = self.progress()
            return all(now[name] > done for name, done in before.items())

        self._until(is_further, lambda: f"{before} → {self.progress()}")

    def _until(self, is_so: Callable[[], bool], what: Callable[[], str]) -> None:
        deadline = time.monotonic() + TIME_LIMIT_S
        while not is_so():
            assert not self.producers.errors, self.producers.errors[:3]
            assert time.monotonic() < deadline, what()
            time.sleep(0.2)

    # --- what has become of it ----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End the load, wait until everybody has got through all of it, and check."""
        violations = self.violations()
        assert not violations, "\n".join(violations)

    def violations(self) -> list[str]:
        """End the load; gives what was promised to a client and is not so."""
        self.producers.finish()
        self._java.finish()
        records = self._histories[TOPIC].read() if self._does_expire else read_log(self._servers)
        found = []
        for check_client in (
            self._check_producers,
            self._check_reader,
            self._check_share,
            self._check_flow,
            self._check_transactions,
            self._check_streams,
        ):
            try:
                check_client(records)
            except AssertionError as error:
                found.append(f"{check_client.__name__.removeprefix('_check_')}: {error}")
        return found

    def _check_producers(self, records: list[Placed]) -> None:
        """Nothing acknowledged is lost; what idempotent producers have sent is there once, and in order."""
        check(self.producers, records)
        check_ledgers(records, self._java.acknowledged, self._java.sent)

    def _check_reader(self, records: list[Placed]) -> None:
        """Every record came, and none again whose offset was committed; the reader itself looks for those."""
        places = _places(records)
        self._until(lambda: places <= set(self.reader.read), lambda: f"{len(places - set(self.reader.read))} not read")
        self.reader.finish()

    def _check_share(self, records: list[Placed]) -> None:
        """Each record was delivered; none that a leader said was accepted came to be accepted again."""
        self._until(lambda: self._share_lag() == 0, lambda: f"{self._share_lag()} not accepted")
        delivered = {(each.partition, each.offset) for member in self._members for each in member.records}
        assert delivered == _places(records), f"{len(delivered ^ _places(records))} records differ"
        accepted = Counter(place for member in self._members for place in member.accepted)
        assert not (twice := [place for place, times in accepted.items() if times > 1]), f"accepted twice: {twice[:5]}"

    def _share_lag(self) -> int | None:
        return Cluster(self._servers).lag(SHARE_GROUP)

    def _check_flow(self, records: list[Placed]) -> None:
        """Every record was passed on once, in order."""
        self._until(
            lambda: sum(map(len, self._values(PASSED))) >= len(records),
            lambda: f"of {len(records)} records, not all were passed on: {self.progress()}",
        )
        assert self._values(PASSED) == _by_partition(records), "not exactly once, or not in order"
        log = self.flow.log_path.read_text()
        assert self._may_begin_anew or "begins anew" not in log, log

    def _check_transactions(self, records: list[Placed]) -> None:
        """All of a transaction that was committed is there, and nothing of others."""
        self.transactions.finish()
        numbers = [str(number).encode() for number in self.transactions.committed]
        assert self._values(ATOMIC) == [numbers] * PARTITIONS, "not all of a transaction or nothing"

    def _check_streams(self, records: list[Placed]) -> None:
        """Every word was counted once."""
        self._words.finish()
        self._words.check_counts(line.decode() for lines in self._values(WORDS) for line in lines)

    def _values(self, topic: str) -> list[list[bytes]]:
        """The committed values of each partition, in order, from the beginning."""
        if self._does_expire:
            return _by_partition(self._histories[topic].read())
        return committed_values(self._servers, topic)


def _by_partition(records: Iterable[Placed]) -> list[list[bytes]]:
    values: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    for each in records:
        values[each.partition].append(each.value)
    return values


def _places(records: Iterable[Placed]) -> set[tuple[int, int]]:
    return {(each.partition, each.offset) for each in records}


def _end(servers: str, topic: str) -> int:
    """The sum over all partitions; -1 if a leader does not answer."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none", "log_level": 0})
    try:
        return sum(watermarks(consumer, topic, partition)[1] for partition in range(PARTITIONS))
    except KafkaException:
        return -1
    finally:
        consumer.close()


def committed_values(servers: str, topic: str) -> list[list[bytes]]:
    """The values of each partition that are committed, in order."""
    settings = {"bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
    values: list[list[bytes]] = []
    for partition in range(PARTITIONS):
        when_ready(lambda partition=partition: watermarks(consumer, topic, partition))
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[bytes] = []
        while (message := consumer.poll(TIME_LIMIT_S)) is not None:
            if message.error() is None:
                found.append(message.value())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                break
        values.append(found)
    consumer.close()
    return values
