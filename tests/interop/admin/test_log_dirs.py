"""Log directories by raw requests and by tools, the same on both brokers; and moves that a crash interrupts."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.component.broker.kill_load import PARTITIONS, TOPIC, Load, check, read_log
from tests.component.broker.log_dirs import CopyingDisk, arrival, describe, limit_rate, move, other, place_of, two_dirs
from tests.component.broker.raw_client import RawClient, batch, values
from tests.interop.apache import ApacheKafka, tool
from tests.interop.node.brokers import APACHE, OTTLA, Node, wanted
from tests.interop.serving import OttlaServe

LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TIME_LIMIT_S = 60
KILLS = int(os.environ.get("KILLS", "8"))
ACKNOWLEDGED_MIN = 1000
VALUE = bytes(2_000)


def directories(root: Path) -> dict[str, str]:
    for name in ("a", "b"):
        (root / name).mkdir(parents=True, exist_ok=True)
    return {"log.dirs": f"{root}/a,{root}/b"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dirs")


@pytest.fixture(scope="module", params=wanted())
def two(request: pytest.FixtureRequest, root: Path, apache_jars: Path) -> Iterator[Node]:
    """A node with two directories."""
    place = root / str(request.param)
    kind: Callable[..., Node] = ApacheKafka if request.param == APACHE else OttlaServe
    with kind(place / "node", data_dir=place / "a", **directories(place)) as node:
        yield node
        assert "Traceback" not in node.log, node.log


@pytest.fixture
def client(two: Node) -> Iterator[RawClient]:
    client = RawClient.at(two.bootstrap_servers)
    yield client
    client.close_all()


def place(two: Node, name: str) -> Path:
    return two.data_dir.parent / name


# --- the same on both


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_what_is_held_is_described(client: RawClient, version: int):
    topic = client.topic()
    assert client.produce(topic, batch(b"a", b"b")).error_code == 0
    found = describe(client, topic.name, version=version)
    assert sorted(found) == ["a", "b"]
    (held,) = [held for each in found.values() for held in each.values()]
    assert held == (len(batch(b"a", b"b")), 0, False)
    assert describe(client, "nowhere", version=version) == {"a": {}, "b": {}}


def test_what_cannot_be_moved(client: RawClient, two: Node):
    topic = client.topic().name
    assert move(client, "/nowhere", topic) == [57]
    assert move(client, "a", topic) == [57]
    assert move(client, f"{place(two, 'a')}/", topic) == [57]
    assert move(client, place(two, "a"), topic, 9) == [3]
    assert move(client, place(two, "a"), "nowhere") == [3]
    assert move(client, place(two, "a"), "x" * 240) == [17]


def test_a_partition_is_moved_while_it_is_written_to(client: RawClient, two: Node):
    topic = client.topic()
    for number in range(300):
        client.produce(topic, batch(b"%d" % number + VALUE))
    source = place_of(client, topic.name)
    assert move(client, place(two, other(source)), topic.name) == [0]
    for number in range(300, 400):
        assert client.produce(topic, batch(b"%d" % number + VALUE)).base_offset == number
    arrival(client, topic.name, other(source))
    found = client.fetch(topic, max_bytes=1 << 24, partition_max_bytes=1 << 24)
    assert values(found) == [b"%d" % number + VALUE for number in range(400)]
    assert (place(two, other(source)) / f"{topic.name}-0").is_dir()
    assert not (place(two, source) / f"{topic.name}-0").exists()


def test_the_tools_print_the_same(client: RawClient, two: Node, tmp_path: Path):
    topic = client.topic()
    client.produce(topic, batch(b"a"))
    where = ("--bootstrap-server", two.bootstrap_servers)
    source = place_of(client, topic.name)
    plan = tmp_path / "plan.json"
    target = str(place(two, other(source)))
    assigned = [{"topic": topic.name, "partition": 0, "replicas": [1], "log_dirs": [target]}]
    plan.write_text(json.dumps({"version": 1, "partitions": assigned}))
    executed = tool(REASSIGN, *where, "--execute", "--reassignment-json-file", str(plan))
    assert f"Successfully started moving log directory to {target} for replica {topic.name}-0 with broker 1" in executed
    arrival(client, topic.name, other(source))
    assert tool(REASSIGN, *where, "--verify", "--reassignment-json-file", str(plan)) == (
        "Status of partition reassignment:\n"
        f"Reassignment of partition {topic.name}-0 is completed.\n"
        f"Reassignment of replica {topic.name}-0-1 completed successfully.\n"
        "Clearing broker-level throttles on broker 1\n"
        f"Clearing topic-level throttles on topic {topic.name}\n"
    )
    described = tool(LOG_DIRS, *where, "--describe", "--topic-list", topic.name)
    first, second, content = described.splitlines()
    assert first == "Querying brokers for log directories information"
    assert second == "Received log directory information from brokers 1"
    (broker,) = json.loads(content)["brokers"]
    held = {Path(each["logDir"]).name: each["partitions"] for each in broker["logDirs"]}
    size = len(batch(b"a"))
    assert held == {
        source: [],
        other(source): [{"partition": f"{topic.name}-0", "size": size, "offsetLag": 0, "isFuture": False}],
    }
    assert all(each["error"] is None for each in broker["logDirs"])


# --- crashes


def stored(servers: str, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "r", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    deadline = time.monotonic() + TIME_LIMIT_S
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            consumer.close()
            return found
        if not message.value().startswith(b"#"):
            found.append(int(message.value()))
    raise AssertionError("the end of the partition does not come")


@pytest.mark.skipif(OTTLA not in wanted(), reason="ottla alone is killed")
def test_a_node_that_is_killed_while_it_moves_partitions_loses_nothing(tmp_path: Path, apache_jars: Path):
    """`KILLS=50` is the long version. In the end Apache Kafka takes the directories over."""
    seeded = random.Random(KILLS)
    node = OttlaServe(tmp_path / "node", data_dir=tmp_path / "a", **directories(tmp_path))
    node.start()
    load = Load(node.bootstrap_servers)
    for _ in range(KILLS):
        load.wait_for(1)
        with closing(RawClient.at(node.bootstrap_servers)) as client:
            limit_rate(client, seeded.choice([None, 50_000]))
            for number in range(PARTITIONS):
                move(client, tmp_path / other(place_of(client, TOPIC, number)), TOPIC, number)
        threading.Event().wait(seeded.uniform(0, 0.2))
        node.kill()
        node.start()
    load.wait_for(ACKNOWLEDGED_MIN)
    load.finish()
    check(load, read_log(node.bootstrap_servers))
    assert "Traceback" not in node.log, node.log
    node.kill()
    with ApacheKafka(tmp_path / "apache", data_dir=tmp_path / "a", **directories(tmp_path)) as kafka:
        check(load, read_log(kafka.bootstrap_servers))


@pytest.mark.skipif(APACHE not in wanted(), reason="Apache Kafka goes on where ottla was killed")
def test_apache_kafka_goes_on_where_a_move_was_cut_off(tmp_path: Path, apache_jars: Path):
    disk = CopyingDisk(tmp_path / "data", tmp_path / "images")
    with two_dirs(tmp_path / "data", disk=disk) as running:
        topic, client = running.client.topic(), running.client
        for number in range(60):
            client.produce(topic, batch(b"%d" % number, timestamp=time.time_ns() // 1_000_000))
            client.produce(topic, batch(b"#" + bytes(2_000), timestamp=time.time_ns() // 1_000_000))
        source = place_of(client, topic.name)
        running.change(lambda: setattr(disk, "is_watching", True))
        move(client, tmp_path / "data" / other(source), topic.name)
        arrival(client, topic.name, other(source))
        running.change(lambda: setattr(disk, "is_watching", False))
    for image in states_of(disk.images, topic.name):
        with ApacheKafka(image / "node", data_dir=image / "a", **directories(image)) as kafka:
            assert stored(kafka.bootstrap_servers, topic.name) == list(range(60)), image
            kafka.stop()


def states_of(images: list[Path], topic: str) -> list[Path]:
    """An image from the middle of the copying, and the last one of each state of the directories' names."""
    states: dict[tuple[str, ...], list[Path]] = {}
    for image in images:
        found = sorted(path.relative_to(image) for path in image.glob(f"?/{topic}-0*"))
        states.setdefault(tuple(f"{path.parent}{str(path).rpartition('-')[2]}" for path in found), []).append(image)
    copying = next(each for each in states.values() if len(each) > 2)
    return [copying[len(copying) // 2], *(each[-1] for each in states.values())]
