"""The harness itself: Apache Kafka boots, answers its own tools, survives a crash, and says why it does not start."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.apache import ApacheKafka, dump_log
from tests.interop.process import ProgramFailed

FIRST_SEGMENT = "00000000000000000000.log"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def produce(kafka: ApacheKafka, topic: str, *lines: str) -> None:
    text = "".join(f"{line}\n" for line in lines)
    kafka.tool(PRODUCER, "--bootstrap-server", kafka.bootstrap_servers, "--topic", topic, stdin=text)


def consume(kafka: ApacheKafka, topic: str, count: int) -> list[str]:
    bounds = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000")
    where = ("--bootstrap-server", kafka.bootstrap_servers, "--topic", topic)
    return kafka.tool(CONSUMER, *where, *bounds).splitlines()[:count]


def test_the_share_and_streams_protocols_are_on(apache_kafka: ApacheKafka):
    described = apache_kafka.tool(
        "org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", apache_kafka.bootstrap_servers, "describe"
    )
    levels = {line.split()[1]: line.split("FinalizedVersionLevel: ")[1].split()[0] for line in described.splitlines()}
    assert levels["share.version"] == "1"
    assert levels["streams.version"] == "1"
    assert levels["metadata.version"] == "4.3-IV0"


def test_records_outlive_a_stop_and_a_crash(boot_apache_kafka: Callable[..., ApacheKafka]):
    kafka = boot_apache_kafka()
    kafka.create_topic("orders")
    produce(kafka, "orders", "tea", "milk")
    kafka.stop()
    assert not kafka.running
    dumped = dump_log(kafka.data_dir / "orders-0" / FIRST_SEGMENT, "--print-data-log", "--deep-iteration")
    assert "payload: tea" in dumped
    assert "payload: milk" in dumped
    kafka.start()
    produce(kafka, "orders", "bread")
    kafka.kill()
    kafka.start()
    assert consume(kafka, "orders", 3) == ["tea", "milk", "bread"]


def test_a_copied_directory_boots_elsewhere(boot_apache_kafka: Callable[..., ApacheKafka], tmp_path: Path):
    original = boot_apache_kafka()
    original.create_topic("orders")
    produce(original, "orders", "tea")
    original.stop()
    shutil.copytree(original.data_dir, tmp_path / "copy")
    copy = boot_apache_kafka(data_dir=tmp_path / "copy")
    assert copy.bootstrap_servers != original.bootstrap_servers
    assert consume(copy, "orders", 1) == ["tea"]


def test_settings_reach_the_server(boot_apache_kafka: Callable[..., ApacheKafka]):
    kafka = boot_apache_kafka(log_segment_bytes=1_048_576, **{"num.partitions": "3"})
    assert "log.segment.bytes = 1048576" in kafka.log
    assert "num.partitions = 3" in kafka.log


def test_a_server_that_cannot_start_says_why(apache_jars: Path, tmp_path: Path):
    kafka = ApacheKafka(tmp_path, log_segment_bytes="many")
    with pytest.raises(ProgramFailed, match=r"log\.segment\.bytes"):
        kafka.start()
    assert not kafka.running


def test_a_server_that_takes_too_long_is_killed(apache_jars: Path, tmp_path: Path):
    kafka = ApacheKafka(tmp_path)
    with pytest.raises(ProgramFailed, match="did not start within"):
        kafka.start(timeout_s=0.1)
    assert not kafka.running


def test_a_failing_tool_shows_its_output(apache_jars: Path, tmp_path: Path):
    with pytest.raises(ProgramFailed, match=r"nowhere\.log"):
        dump_log(tmp_path / "nowhere.log")
