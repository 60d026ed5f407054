"""The benchmark of brokers: its frames are real ones, and its figures arrive in the table and in the file."""

import argparse
import json
import os
import socket
from pathlib import Path

from benchmarks import rounds
from benchmarks.broker import bench_brokers as bench
from benchmarks.broker import raw
from benchmarks.broker.brokers import cpu_seconds, resident_bytes
from benchmarks.runner import Size
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


def test_whether_somebody_listens_is_seen_without_connecting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert raw.is_listening(port)
    assert not raw.is_listening(port)


def test_this_process_has_used_time_and_memory() -> None:
    assert cpu_seconds(os.getpid()) > 0
    assert resident_bytes(os.getpid()) > 1 << 20


def test_the_table_has_medians_and_ratios() -> None:
    header, start, produce, memory = rounds.table(FOUND, bench.is_rate)
    assert header.split()[-1] == "ratio"
    assert start.split()[-5:] == ["250", "ms", "2.5", "s", "10.00x"]
    assert produce.split()[-3:] == ["500,000/s", "1,000,000/s", "0.50x"]
    assert memory.split()[-5:] == ["30", "MiB", "300", "MiB", "10.00x"]


def test_percentiles() -> None:
    assert bench.percentile(range(101), 99) == 99


def test_the_file_has_times_as_every_benchmark_has_and_memory_beside(tmp_path: Path) -> None:
    options = argparse.Namespace(rounds=3, window=0.0, size=Size.FULL, only="", out=tmp_path / "broker.json")
    rounds.save("broker", FOUND, options, bench.PACKAGES)
    content = json.loads(options.out.read_text(encoding="utf-8"))
    rows = {(row["case"], row["subject"]): row for row in content["results"]}
    assert len(rows) == 4
    start = rows["start: exec to first acknowledged produce", "Apache Kafka"]
    assert (start["best_s"], start["paired_over_first"]) == (2.0, 12.5)
    assert [row["subject"] for row in content["memory"]] == ["ottla", "Apache Kafka"]
    assert content["memory"][0]["bytes"] == [30 << 20] * 3
