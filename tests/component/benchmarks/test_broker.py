"""The benchmark of brokers: its frames are real ones, and its figures arrive in the table and in the file."""

import argparse
import json
import socket
from pathlib import Path

from benchmarks import rounds
from benchmarks.broker import bench_brokers as bench
from benchmarks.broker import raw
from benchmarks.runner import Size

FOUND: dict[str, dict[str, list[float]]] = {
    "start: exec to first acknowledged produce": {"ottla": [0.2, 0.3, 0.25], "Apache Kafka": [2.5, 5.0, 2.0]},
    "librdkafka produce, 100 B records, 16 KiB batches": {"ottla": [2e-6] * 3, "Apache Kafka": [1e-6] * 3},
    "start: memory": {"ottla": [30 << 20] * 3, "Apache Kafka": [300 << 20] * 3},
}


def test_whether_somebody_listens_is_seen_without_connecting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert raw.is_listening(port)
    assert not raw.is_listening(port)


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
