"""A real Prometheus scrapes `ottla observe --export-port`: its lags are those of Apache Kafka's own tools."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from ottla.client import TopicPartition, group_offsets, topics
from ottla.client.blocking import BlockingClient
from ottla.client.client import always
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.component.broker.offset_requests import commit_request
from tests.component.broker.raw_client import Topic
from tests.component.broker.streams_requests import join, topology
from tests.interop.apache import free_ports, tool
from tests.interop.node.brokers import Node
from tests.interop.process import tied
from tests.interop.spark.topics import Topics

ROOT = Path(__file__).parents[3]
RULES = ROOT / "monitoring" / "prometheus-rules.yml"
TOPIC = "orders"
OFFSETS = {TopicPartition(TOPIC, 0): 4, TopicPartition(TOPIC, 1): 20}
TOOLS = {
    "classic": ("consumer.group.ConsumerGroupCommand", "LAG"),
    "consumer": ("consumer.group.ConsumerGroupCommand", "LAG"),
    "share": ("consumer.group.ShareGroupCommand", "LAG"),
    "streams": ("streams.StreamsGroupCommand", "OFFSET-LAG"),
}
TIMEOUT_S = 120

Lags = dict[tuple[str, str, int], int]
"""Type of group, topic and partition -> records."""


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"these tests need {name} on the PATH: apt-get install prometheus", pytrace=False)
    return found


# --- groups of all kinds, each named after its kind -------------------------------------------------------------------


def make_groups(servers: str) -> None:
    made = Topics(servers)
    made.create(TOPIC, partitions=2)
    made.fill(TOPIC, 0, 30)
    made.fill(TOPIC, 1, 20)
    client = made.client
    client.call(group_offsets.commit, "classic", OFFSETS)
    client.call(group_offsets.alter_share, "share", OFFSETS)
    join_and_commit(client, "ConsumerGroupHeartbeat", consumer_heartbeat(str(uuid.uuid4())))
    join_and_commit(client, "StreamsGroupHeartbeat", join("streams", str(uuid.uuid4()), topology(TOPIC)))
    made.close()


def join_and_commit(client: BlockingClient, api: str, heartbeat: Any) -> None:
    """A member that stays: of a streams group without members the tool tells no offsets. Its session is long."""
    at = ("group", heartbeat.group_id)
    epoch = client.ask(api, always(heartbeat), coordinator=at).body.member_epoch
    (topic,) = client.call(topics.describe, TOPIC)
    offsets = [(Topic(TOPIC, topic.topic_id), each.partition, offset) for each, offset in OFFSETS.items()]
    member = {"generation_id_or_member_epoch": epoch, "member_id": heartbeat.member_id}
    request = commit_request(heartbeat.group_id, *offsets, **member)
    answer = client.ask("OffsetCommit", always(request), coordinator=at).body
    assert {each.error_code for found in answer.topics for each in found.partitions} == {0}, answer


def consumer_heartbeat(member: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="consumer",
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=(TOPIC,),
        topic_partitions=(),
    )


# --- who tells their lags ---------------------------------------------------------------------------------------------


def told_by_tools(servers: str) -> Lags:
    found: Lags = {}
    for group, (main, column) in TOOLS.items():
        words = ("--bootstrap-server", servers, "--describe", "--group", group, "--offsets")
        said = tool(f"org.apache.kafka.tools.{main}", *words, check=False)
        rows = [line.split() for line in said.splitlines()]
        heading = next((row for row in rows if row and row[0] == "GROUP"), None)
        assert heading is not None, said
        for row in rows:
            if row and row[0] == group:
                cells = dict(zip(heading, row, strict=False))
                found[group, cells["TOPIC"], int(cells["PARTITION"])] = int(cells[column])
    return found


@contextmanager
def exporter(servers: str) -> Iterator[str]:
    """The address of the page of metrics."""
    command = [
        sys.executable,
        "-m",
        "ottla",
        "observe",
        "--bootstrap",
        servers,
        "--every",
        "500ms",
        "--export-port",
        "0",
    ]
    with subprocess.Popen(tied(command), stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        try:
            yield next(line for line in running.stderr if "metrics at" in line).split()[-1]
        finally:
            running.terminate()
            running.stderr.close()


@contextmanager
def prometheus(directory: Path, page: str) -> Iterator[str]:
    """A Prometheus that scrapes the page every second and has our rules; gives its address."""
    host = page.removeprefix("http://").partition("/")[0]
    config = directory / "prometheus.yml"
    config.write_text(
        f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n"
        f"rule_files: [{json.dumps(str(RULES))}]\n"
        f"scrape_configs: [{{job_name: ottla, static_configs: [{{targets: ['{host}']}}]}}]\n"
    )
    (port,) = free_ports(1)
    options = (f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}")
    listen = f"--web.listen-address=127.0.0.1:{port}"
    with (directory / "prometheus.log").open("wb") as output:
        command = tied([program("prometheus"), *options, listen])
        with subprocess.Popen(command, stdout=output, stderr=output) as running:
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                running.terminate()


def ask(address: str, path: str) -> Any:
    """Prometheus' answer; None while it does not answer yet."""
    try:
        with urlopen(f"{address}/api/v1/{path}", timeout=TIMEOUT_S) as answer:
            return json.load(answer)["data"]
    except OSError:
        return None


def lags_in(address: str) -> Lags:
    found = ask(address, f"query?query={quote('ottla_group_partition_lag_records')}")
    rows = [] if found is None else [(each["metric"], each["value"][1]) for each in found["result"]]
    assert all(labels["group"] == labels["type"] for labels, _ in rows)
    return {(labels["group"], labels["topic"], int(labels["partition"])): int(value) for labels, value in rows}


def test_lags_of_all_kinds_of_groups(boot: Callable[..., Node], tmp_path: Path):
    servers = boot().bootstrap_servers
    make_groups(servers)
    wanted = told_by_tools(servers)
    assert {group for group, *_ in wanted} == set(TOOLS)
    with exporter(servers) as page, prometheus(tmp_path, page) as address:
        until = time.monotonic() + TIMEOUT_S
        while lags_in(address).keys() != wanted.keys():
            assert time.monotonic() < until, (lags_in(address), wanted)
            time.sleep(0.2)
        assert lags_in(address) == wanted
        (group,) = ask(address, "rules")["groups"]
        assert {rule["health"] for rule in group["rules"]} == {"ok"}
        with urlopen(page, timeout=TIMEOUT_S) as answer:
            text = answer.read()
    checked = subprocess.run([program("promtool"), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_the_rules_are_what_promtool_takes():
    checked = subprocess.run(
        [program("promtool"), "check", "rules", RULES], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
