"""Memory that does not grow, and bits that flip on the way."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.spark.filling import fill
from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe
from tests.interop.spark.conftest import new_broker
from tests.interop.spark.flipping import FlippingProxy
from tests.interop.spark.queries import Queries
from tests.interop.spark.topics import Topics, new_name

Broker = ApacheKafka | OttlaServe
READ = """
import resource, sys
from ottla.client.blocking import BlockingClient
from ottla.client.metadata import TopicPartition
from ottla.spark.options import read_options
from ottla.spark.topic.options import TopicOptions
from ottla.spark.topic.plan import Task
from ottla.spark.topic.task_reader import read_task
servers, topic, until = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = read_options(TopicOptions, {"kafka.bootstrap.servers": servers, "subscribe": topic})
with BlockingClient(servers) as client:
    task = Task(TopicPartition(topic, 0), None, 0, until, 1, 0)
    rows = sum(each.num_rows for each in read_task(lambda: client, task, options))
assert rows == until, rows
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
MORE = 10
KIB = 1024


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_ten_times_the_records_take_the_same_memory(topics: Topics, codec: str):
    """The largest a reading process becomes; fifty million rows are a benchmark (benchmarks/spark/bench_growth.py)."""
    name, records = new_name(), 2_000_000
    fill(topics.bootstrap_servers, name, records=records, value_bytes=100, partitions=1, codec=codec)
    few, many = (_peak_kib(topics.bootstrap_servers, name, count) for count in (records // MORE, records))
    assert many - few < 64 * KIB, f"{few // KIB} MiB for a tenth of the records, {many // KIB} MiB for all"
    assert many < 600 * KIB


def _peak_kib(servers: str, topic: str, records: int) -> int:
    words = [sys.executable, "-c", READ, servers, topic, str(records)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=300)
    return int(done.stdout)


@pytest.fixture
def flipping(kind: str, apache_jars: Path, tmp_path: Path) -> Iterator[tuple[FlippingProxy, Broker]]:
    """A broker that tells its clients to come through a proxy."""
    node = new_broker(kind, tmp_path / "node")
    with FlippingProxy() as proxy:
        host, _, port = node.bootstrap_servers.rpartition(":")
        proxy.upstream = (host, int(port))
        node.settings["advertised.listeners"] = f"PLAINTEXT://{proxy.address},CONTROLLER://{node.controller_servers}"
        with node:
            yield proxy, node


def test_flipped_bits_are_read_again_and_named_if_they_stay(
    flipping: tuple[FlippingProxy, Broker], spark: Any, tmp_path: Path
):
    proxy, _ = flipping
    topics = Topics(proxy.address)
    name = topics.create()
    for number in range(3):
        topics.fill(name, 0, 50, first=number * 50, size=300)
    topics.close()
    queries = Queries(spark, proxy.address, tmp_path)
    proxy.left = 2
    assert len(queries.rows(name)) == 150
    assert proxy.flipped == 2
    proxy.left = 1000
    text = queries.refusal(name)
    assert text.startswith(f"corrupt record batch at topic {name} partition 0 offset ")
    proxy.left = 0
