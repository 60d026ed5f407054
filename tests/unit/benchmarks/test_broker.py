"""The benchmark of brokers: its frames are real ones, and its figures arrive in the table and in the file."""

import argparse
import os

import pytest

from benchmarks import rounds
from benchmarks.broker import bench_brokers as bench
from benchmarks.broker import kfake, raw
from benchmarks.broker.brokers import cpu_seconds, resident_bytes
from ottla.wire import frames
from ottla.wire.batch import read_header
from ottla.wire.types import ProduceResponse

FOUND: dict[str, dict[str, list[float]]] = {
    "start: exec to first acknowledged produce": {"ottla": [0.2, 0.3, 0.25], "Apache Kafka": [2.5, 5.0, 2.0]},
    "librdkafka produce, 100 B records, 16 KiB batches": {"ottla": [2e-6] * 3, "Apache Kafka": [1e-6] * 3},
    "start: memory": {"ottla": [30 << 20] * 3, "Apache Kafka": [300 << 20] * 3},
}


def test_a_produce_frame_holds_one_batch() -> None:
    request = frames.read_request(raw.produce_frame("orders", b"x" * 100)[4:])
    (topic,) = request.body.topic_data
    (partition,) = topic.partition_data
    assert (request.name, request.body.acks, topic.name) == ("ProduceRequest", -1, "orders")
    header = read_header(partition.records)
    assert (header.record_count, header.producer_id) == (1, -1)
    header.check_crc()


def test_an_answer_with_an_error_is_not_taken_for_success() -> None:
    kind = ProduceResponse
    for code, is_fine in ((0, True), (6, False)):
        partition = kind.PartitionProduceResponse(error_code=code, base_offset=7)
        topic = kind.TopicProduceResponse(partition_responses=(partition,))
        content = frames.write_response(kind(responses=(topic,)), raw.PRODUCE_VERSION, correlation_id=1)[4:]
        try:
            assert (raw.check_produced(content), is_fine) == (7, True)
        except raw.NotReadyError:
            assert not is_fine


def test_this_process_has_used_time_and_memory() -> None:
    assert cpu_seconds(os.getpid()) > 0
    assert resident_bytes(os.getpid()) > 1 << 20


def test_the_table_has_medians_and_ratios() -> None:
    header, start, produce, memory = rounds.table(FOUND, bench.is_rate)
    assert header.split()[-1] == "ratio"
    assert start.split()[-5:] == ["250", "ms", "2.5", "s", "10.00x"]
    assert produce.split()[-3:] == ["500,000/s", "1,000,000/s", "0.50x"]
    assert memory.split()[-5:] == ["30", "MiB", "300", "MiB", "10.00x"]


def test_a_third_broker_gets_columns_of_its_own() -> None:
    found = {"start": {"ottla": [0.2], "kfake": [0.1]}, "fetch": {"kfake": [0.3]}}
    header, start, fetch = rounds.table(found, subjects=("ottla", "Apache Kafka", "kfake"))
    assert header.split()[-5:] == ["Apache", "Kafka", "ratio", "kfake", "ratio"]
    assert start.split() == ["start", "200", "ms", "100", "ms", "0.50x"]
    assert fetch.split() == ["fetch", "300", "ms"]


def test_without_go_kfake_is_left_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert bench.subjects(argparse.Namespace(brokers="")) == ["ottla", "Apache Kafka"]
    assert capsys.readouterr().err == "kfake is left out: Go is not installed\n"


def test_kfake_is_not_built_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kfake, "build", lambda: pytest.fail("built"))
    assert bench.subjects(argparse.Namespace(brokers="ottla")) == ["ottla", "Apache Kafka"]


def test_percentiles() -> None:
    assert bench.percentile(range(101), 99) == 99
