"""The benchmark of brokers: its frames are real ones, and its figures arrive in the table and in the file."""

import argparse
import json
import socket
from pathlib import Path

from benchmarks import changed_settings, rounds
from benchmarks.broker import bench_brokers as bench
from benchmarks.broker import raw
from benchmarks.runner import Size
from ottla import testing

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


def test_the_broker_itself_tells_which_of_its_settings_are_not_defaults() -> None:
    with testing.broker(num_partitions=1, log_retention_ms=86_400_000) as broker:
        found = changed_settings.changed_settings(int(broker.bootstrap_servers.rpartition(":")[2]), pid=0)
    assert found is not None
    assert found["log.retention.ms"] == "86400000"
    assert "num.partitions" not in found, "it has the value of the default"
    assert not {"listeners", "log.dirs"} & found.keys()
    lines = changed_settings.told({"ottla": {"log.retention.ms": "86400000"}, "Apache Kafka": {}})
    assert lines == [
        "ottla: these settings are not defaults",
        "  log.retention.ms=86400000",
        "Apache Kafka: all settings are defaults",
    ]


def test_a_broker_that_does_not_answer_tells_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert changed_settings.changed_settings(port, pid=0) is None
