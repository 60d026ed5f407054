"""Hand-over of what is not records: snapshots, deletions, log starts, settings of brokers, locks, indexes."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic

from tests.component.when_ready import watermarks as watermarks_of
from tests.component.when_ready import when_ready
from tests.interop.apache import ApacheKafka, dump_log
from tests.interop.handing_over import TIME_LIMIT_S, Ledger, Node, partitions, read_all
from tests.interop.process import ProgramFailed
from tests.interop.serving import OttlaServe

SNAPSHOT_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": 2000, "metadata.log.segment.bytes": 8 << 20}
METADATA_DIR = "__cluster_metadata-0"
MANY_TOPICS = 40


@pytest.fixture
def apache(apache_jars: Path, tmp_path: Path) -> Iterator[ApacheKafka]:
    kafka = ApacheKafka(tmp_path / "apache", data_dir=tmp_path / "data", **SNAPSHOT_OFTEN)
    yield kafka
    if kafka.running:
        kafka.kill()


@pytest.fixture
def ottla(tmp_path: Path) -> Iterator[OttlaServe]:
    node = OttlaServe(tmp_path / "ottla", data_dir=tmp_path / "data", **SNAPSHOT_OFTEN)
    yield node
    if node.running:
        node.kill()


@pytest.fixture(params=["to apache", "to ottla"])
def pair(request: pytest.FixtureRequest, apache: ApacheKafka, ottla: OttlaServe) -> tuple[Node, Node]:
    return (ottla, apache) if request.param == "to apache" else (apache, ottla)


def admin_of(node: Node) -> AdminClient:
    return AdminClient({"bootstrap.servers": node.bootstrap_servers})


def names(node: Node) -> set[str]:
    return set(admin_of(node).list_topics(timeout=TIME_LIMIT_S).topics)


def watermarks(node: Node, topic: str, partition: int) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": node.bootstrap_servers, "group.id": "none"})
    found = watermarks_of(consumer, topic, partition)
    consumer.close()
    return found


def snapshots(node: Node) -> list[Path]:
    """Without the one that formatting made."""
    found = (node.data_dir / METADATA_DIR).glob("*.checkpoint")
    return sorted(path for path in found if int(path.name.split("-")[0]))


def until(condition: Callable[[], object]) -> None:
    for _ in range(TIME_LIMIT_S * 10):
        if condition():
            return
        threading.Event().wait(0.1)
    raise AssertionError("it did not happen in time")


def test_snapshots(pair: tuple[Node, Node]):
    """The later node reads the metadata from the earlier one's snapshot."""
    earlier, later = pair
    earlier.start()
    admin = admin_of(earlier)
    topics = {f"topic-{number}" for number in range(MANY_TOPICS)}
    for created in admin.create_topics([NewTopic(name, 2, 1) for name in sorted(topics)]).values():
        created.result(TIME_LIMIT_S)
    until(lambda: snapshots(earlier))
    earlier.stop()
    text = dump_log(snapshots(earlier)[-1], "--cluster-metadata-decoder")
    assert "isvalid: false" not in text
    assert set(re.findall(r'"name":"(topic-\d+)"', text)) <= topics
    later.start()
    assert names(later) == topics


def test_deletions_and_new_partitions(pair: tuple[Node, Node]):
    earlier, later = pair
    earlier.start()
    admin = admin_of(earlier)
    for created in admin.create_topics([NewTopic("gone", 2, 1), NewTopic("grown", 1, 1)]).values():
        created.result(TIME_LIMIT_S)
    admin.create_partitions([NewPartitions("grown", 4)])["grown"].result(TIME_LIMIT_S)
    admin.delete_topics(["gone"])["gone"].result(TIME_LIMIT_S)
    earlier.kill()
    later.start()
    assert names(later) == {"grown"}
    assert len(admin_of(later).list_topics("grown", TIME_LIMIT_S).topics["grown"].partitions) == 4


def test_where_logs_start(pair: tuple[Node, Node]):
    earlier, later = pair
    ledger = Ledger()
    earlier.start()
    ledger.create_topics(earlier.bootstrap_servers)
    ledger.produce(earlier.bootstrap_servers)
    before = watermarks(earlier, "orders", 0)
    admin = admin_of(earlier)
    [deleted] = admin.delete_records([TopicPartition("orders", 0, 7)]).values()
    assert deleted.result(TIME_LIMIT_S).low_watermark == 7
    earlier.stop()
    later.start()
    assert watermarks(later, "orders", 0) == (7, before[1])


def test_what_recovery_has_cut(apache: ApacheKafka, ottla: OttlaServe):
    """Apache Kafka starts on a directory with it, leaves it alone, and removes it with the topic."""
    ledger = Ledger()
    ottla.start()
    ledger.create_topics(ottla.bootstrap_servers)
    ledger.produce(ottla.bootstrap_servers)
    ottla.kill()
    folder = ottla.data_dir / "orders-0"
    segment = folder / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)
    ottla.start()
    _, end = watermarks(ottla, "orders", 0)
    kept = folder / f"{end:020}.log.cut"
    content = kept.read_bytes()
    assert bytes(data).endswith(content)
    assert f"kept in {kept} ({len(content)} bytes)" in ottla.log
    shown = [json.loads(line) for line in run_cli("dump", kept).splitlines()]
    assert max(line["offset"] for line in shown if line["kind"] == "record") == max(
        each.offset for each in ledger.placed if each[:2] == ("orders", 0)
    )
    ottla.stop()
    assert f"note: {kept} keeps {len(content)} bytes that recovery has truncated from orders-0" in run_cli(
        "storage", "check", ottla.data_dir
    )
    ledger.placed = [each for each in ledger.placed if each[:2] != ("orders", 0) or each.offset < end]
    apache.settings["log.segment.delete.delay.ms"] = "100"
    for node, ending in ((apache, apache.kill), (apache, apache.stop), (ottla, ottla.stop)):
        node.start()
        for each in partitions():
            watermarks(node, *each)  # when it has a leader
        ledger.check(node.bootstrap_servers)
        ledger.produce(node.bootstrap_servers)
        assert kept.read_bytes() == content
        assert node is ottla or ".log.cut" not in node.log
        ending()
    apache.start()
    admin = admin_of(apache)
    admin.delete_topics(["orders"])["orders"].result(TIME_LIMIT_S)
    until(lambda: not list(apache.data_dir.rglob("*.cut")))
    apache.stop()


def run_cli(*arguments: object) -> str:
    command = [sys.executable, "-m", "ottla", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_settings_of_brokers(pair: tuple[Node, Node]):
    earlier, later = pair
    earlier.start()
    entry = ConfigEntry("log.retention.ms", "86400000", incremental_operation=AlterConfigOpType.SET)
    admin = admin_of(earlier)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(TIME_LIMIT_S)
    earlier.stop()
    later.start()
    admin = admin_of(later)
    asked = ConfigResource(ConfigResource.Type.BROKER, "1")
    found = admin.describe_configs([asked])[asked].result(TIME_LIMIT_S)["log.retention.ms"]
    assert found.value == "86400000"
    assert not found.is_default


def test_old_records_are_not_touched(apache: ApacheKafka, ottla: OttlaServe):
    """A start and a stop change no byte of a log, in either direction, and both are content with the indexes."""
    ledger = Ledger()
    apache.start()
    ledger.create_topics(apache.bootstrap_servers)
    ledger.produce(apache.bootstrap_servers)
    apache.stop()
    logs = {path: path.read_bytes() for path in apache.data_dir.glob("*-?/*.log") if METADATA_DIR not in str(path)}
    assert len(logs) == 6
    nodes: list[Node] = [ottla, apache, ottla]
    for node in nodes:
        node.start()
        node.stop()
        assert {path: path.read_bytes() for path in logs} == logs
    indexes = [path for log in logs for path in (log.with_suffix(".index"), log.with_suffix(".timeindex"))]
    assert "Exception" not in dump_log(indexes, "--index-sanity-check")
    ottla.start()
    assert sorted(read_all(ottla.bootstrap_servers)) == sorted(ledger.placed)


def test_a_directory_in_use_is_refused(pair: tuple[Node, Node]):
    holder, other = pair
    holder.start()
    with pytest.raises(ProgramFailed, match="ended while starting"):
        other.start()
    assert re.search("(?i)in use by another process|failed to acquire lock", other.log)
    assert holder.running
    assert names(holder) == set()


def consumed(node: Node, topic: str, group: str, *, isolation: str = "read_committed") -> list[bytes]:
    """The values of partition 0 that a reader sees, from the start to what is stable."""
    settings = {"bootstrap.servers": node.bootstrap_servers, "group.id": group, "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": isolation, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = []
    while (message := consumer.poll(TIME_LIMIT_S)) is not None:
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            break
        values.append(message.value())
    consumer.close()
    return values


def test_transactions_that_apache_wrote(apache: ApacheKafka, ottla: OttlaServe):
    apache.start()
    admin = admin_of(apache)
    admin.create_topics([NewTopic("paid", 1, 1)])["paid"].result(TIME_LIMIT_S)
    producer = Producer({"bootstrap.servers": apache.bootstrap_servers, "transactional.id": "till"})
    producer.init_transactions(TIME_LIMIT_S)
    for value, end in ((b"one", "commit"), (b"never", "abort"), (b"two", "commit")):
        producer.begin_transaction()
        producer.produce("paid", value)
        assert producer.flush(TIME_LIMIT_S) == 0
        (producer.commit_transaction if end == "commit" else producer.abort_transaction)(TIME_LIMIT_S)
    del producer
    apache.stop()
    for node in (ottla, apache):
        node.start()
        assert consumed(node, "paid", "none") == [b"one", b"two"]
        assert consumed(node, "paid", "none", isolation="read_uncommitted") == [b"one", b"never", b"two"]
        node.stop()


def test_offsets_of_groups_wait_for_their_broker(apache: ApacheKafka, ottla: OttlaServe):
    """What ottla does not serve yet it keeps as it was."""
    ledger = Ledger()
    apache.start()
    ledger.create_topics(apache.bootstrap_servers)
    ledger.produce(apache.bootstrap_servers)
    commit = [TopicPartition("orders", partition, 10 + partition) for partition in range(3)]
    consumer = Consumer({"bootstrap.servers": apache.bootstrap_servers, "group.id": "billing"})
    consumer.commit(offsets=commit, asynchronous=False)
    consumer.close()
    apache.stop()
    ottla.start()
    ledger.produce(ottla.bootstrap_servers)
    ottla.stop()
    apache.start()
    consumer = Consumer({"bootstrap.servers": apache.bootstrap_servers, "group.id": "billing"})
    wanted = [TopicPartition("orders", partition) for partition in range(3)]
    found = when_ready(lambda: consumer.committed(wanted, TIME_LIMIT_S))
    consumer.close()
    assert [each.offset for each in found] == [10, 11, 12]
    ledger.check(apache.bootstrap_servers)


def test_a_quorum_of_the_old_kind(apache_jars: Path, tmp_path: Path):
    """Voters in the configuration, none in the log: kraft.version 0."""
    apache = ApacheKafka(tmp_path / "apache", data_dir=tmp_path / "data", format_arguments=())
    apache.settings["controller.quorum.voters"] = f"1@{apache.controller_servers}"
    ottla = OttlaServe(tmp_path / "ottla", data_dir=tmp_path / "data")
    ottla.settings["controller.quorum.voters"] = f"1@{ottla.controller_servers}"
    ledger = Ledger()
    with apache:
        ledger.create_topics(apache.bootstrap_servers)
        ledger.produce(apache.bootstrap_servers)
    with ottla:
        ledger.check(ottla.bootstrap_servers)
        ledger.produce(ottla.bootstrap_servers)
        ottla.stop()
    with apache:
        ledger.check(apache.bootstrap_servers)
