"""Real Java clients talk to Apache Kafka: what the proxy and tcpdump saw is understood to the last byte."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.explain.exchanges import Exchange
from tests.interop import process
from tests.interop.apache import ApacheKafka
from tests.interop.programs import JARS, PROGRAMS, can_run, run_program
from tests.interop.proxied import Proxy
from tests.interop.python_clients import CLIENTS, VALUES
from tests.interop.sniffed import NotPermitted, Tcpdump
from tests.unit.explain.real_captures import complaints, exchanges_of

EXPECTED_APIS = {
    "ApiVersions", "Metadata", "Produce", "Fetch", "ListOffsets", "InitProducerId", "EndTxn", "TxnOffsetCommit",
    "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch",
    "ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch",
    "ShareAcknowledge", "DescribeShareGroupOffsets", "DescribeQuorum", "DescribeCluster", "CreateTopics", "ListGroups",
}  # fmt: skip
STREAMS_APIS = {"StreamsGroupHeartbeat", "StreamsGroupDescribe"}


def run_all(release: str, bootstrap_servers: str) -> None:
    for name in PROGRAMS:
        if can_run(name, release):
            run_program(name, release, bootstrap_servers)


def judge(exchanges: list[Exchange], release: str) -> None:
    assert list(complaints(exchanges)) == []
    assert sum(each.outcome == "unanswered" for each in exchanges) < len(exchanges) / 20
    apis = {exchange.first.api for exchange in exchanges}
    assert apis >= EXPECTED_APIS
    if can_run("StreamsGroup", release):
        assert apis >= STREAMS_APIS


@pytest.fixture(scope="module")
def own_kafka(apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A node that only these tests use: others leave groups behind whose metadata is nonsense on purpose."""
    with ApacheKafka(tmp_path_factory.mktemp("captured")) as kafka:
        yield kafka


@pytest.mark.parametrize("release", JARS)
def test_through_the_proxy(release: str, own_kafka: ApacheKafka, tmp_path: Path):
    saved = tmp_path / "saved.pcap"
    # By another name than the broker's own, so that clients find the node behind a port of its own.
    with Proxy(f"localhost:{own_kafka.port}", tmp_path, "--json", "-v", "--save", str(saved)) as proxy:
        run_all(release, proxy.bootstrap_servers)
        sums = proxy.stop()
    assert f"node 1 ({own_kafka.bootstrap_servers}) is reachable at 127.0.0.1:" in sums
    assert "could not be read" not in sums
    judge(exchanges_of(saved), release)
    live = [json.loads(line) for line in proxy.out_path.read_text().splitlines()]
    assert Counter(map(identity, live)) == Counter(map(identity, decoded(saved)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of kafka-python
@pytest.mark.parametrize("client", CLIENTS)
def test_clients_of_others_through_the_proxy(client: str, own_kafka: ApacheKafka, tmp_path: Path):
    saved = tmp_path / "saved.pcap"
    topic = f"through-the-proxy-{client}"
    own_kafka.create_topic(topic)
    with Proxy(f"localhost:{own_kafka.port}", tmp_path, "--save", str(saved)) as proxy:
        assert CLIENTS[client](proxy.bootstrap_servers, topic) == VALUES
        sums = proxy.stop()
    assert "could not be read" not in sums
    exchanges = exchanges_of(saved)
    assert list(complaints(exchanges)) == []
    assert {exchange.first.api for exchange in exchanges} >= {"Produce", "Fetch", "JoinGroup", "SyncGroup"}


@pytest.mark.parametrize("release", JARS)
def test_as_tcpdump_saw_it(release: str, own_kafka: ApacheKafka, tmp_path: Path):
    try:
        with Tcpdump(tmp_path / "dumped.pcap", own_kafka.port) as dump:
            run_all(release, own_kafka.bootstrap_servers)
    except NotPermitted as refusal:
        pytest.skip(str(refusal))
    judge(exchanges_of(dump.path), release)


def decoded(path: Path) -> list[dict[str, Any]]:
    """The messages of a capture as `ottla decode` tells them."""
    told = process.run([sys.executable, "-m", "ottla", "decode", "--pcap", str(path), "--json", "-v"])
    return [json.loads(line) for line in told.splitlines() if line.startswith("{")]


def identity(message: dict[str, Any]) -> str:
    """The message without what depends on the order in which exchanges end, or on who tells the broker's name."""
    unlike = ("connection", "topics", "broker")
    return json.dumps({key: value for key, value in message.items() if key not in unlike})
