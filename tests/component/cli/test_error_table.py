"""The errors that people meet most: what is said, with which exit code, and nothing of it on standard output.

Those of Spark and Java are in the tests of the commands that need them, and a port that is taken in test_serve.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli import run
from ottla.client import Client, Producer
from ottla.wire import types
from tests.component.broker.raw_client import RunningNode
from tests.component.cli.cluster_thread import fake_cluster
from tests.component.cli.live import Live, live_node

Capture = pytest.CaptureFixture[str]
LOCK = "share.record.lock.duration.ms"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    yield from live_node(tmp_path_factory.mktemp("node"))


@pytest.fixture
def ottla(running: RunningNode, capsys: Capture) -> Live:
    return Live(running, capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["explain", "SharFetch"], "ottla: unknown name 'SharFetch'\n  → did you mean ShareFetch?\n"),
        (
            ["explain", "ShareFetch", "0"],
            "ottla: ShareFetchRequest has no version 0\n  → it has 1 to 2, so the nearest is 1\n",
        ),
        (["decode", "00g0"], "ottla: character 3 is 'g', which is not a hex digit\n  → if this is base64"),
        (
            ["explain", "config", "retention.mss"],
            "ottla: unknown setting 'retention.mss'\n  → did you mean retention.ms?\n",
        ),
        (
            ["topics", "list", "--bootstrap", "127.0.0.1:1"],
            "ottla: no broker at 127.0.0.1:1: connection refused\n  → is it",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_without_a_cluster(words: list[str], said: str, capsys: Capture):
    assert run(words) == (3 if "--bootstrap" in words else 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(said)


def test_half_a_message_says_where_it_ends(capsys: Capture):
    assert run(["decode", "StreamsGroupHeartbeatRequest", "0", "0b6f72646572732d617070"]) == 2
    out, err = capsys.readouterr()
    assert "GroupId" in out  # what could be read is shown above
    assert "is incomplete" in err


def test_a_broker_that_speaks_no_tls(ottla: Live, tmp_path: Path):
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\n")
    said = ottla.refused(3, "topics", "list", "--command-config", str(path))
    assert said.startswith(f"ottla: no broker at {ottla.bootstrap}: ")
    assert "does it use TLS?" in said
    assert "security.protocol=PLAINTEXT" in said


def test_a_login_that_is_refused(ottla: Live, tmp_path: Path):
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="ana" password="hush-hush";\n'
    )
    said = ottla.refused(4, "topics", "list", "--command-config", str(path))
    assert "authentication at" in said
    assert "hush-hush" not in said


def test_a_topic_that_may_not_be_read(capsys: Capture):
    answer = types.DescribeTopicPartitionsResponse
    secret = answer(topics=(answer.DescribeTopicPartitionsResponseTopic(29, "orders"),))
    with fake_cluster(DescribeTopicPartitions=secret) as cluster:
        assert run(["topics", "describe", "orders", "--bootstrap", cluster.bootstrap_servers]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert "TOPIC_AUTHORIZATION_FAILED (29)" in err
    assert "  → or the topic does not exist: Kafka does not say which\n" in err


def test_a_cluster_that_cannot_do_it(capsys: Capture):
    with fake_cluster() as cluster:
        cluster.broker().versions["DescribeClientQuotas"] = (0, -1)
        assert run(["configs", "list", "user", "--bootstrap", cluster.bootstrap_servers]) == 5
    out, err = capsys.readouterr()
    assert out == ""
    assert "it does not support this API" in err


def test_a_value_outside_the_broker_s_bounds(ottla: Live):
    assert ottla.refused(2, "configs", "set", "group", "g", f"{LOCK}=500") == (
        f"ottla: {LOCK}=500 is outside this broker's 15000–60000\n"
        "  → change group.share.min.record.lock.duration.ms first\n"
    )


def test_a_group_that_has_members(ottla: Live):
    ottla("topics", "create", "busy", "--if-not-exists")

    async def with_member() -> str:
        from ottla.client import ShareConsumer

        async with Client(ottla.bootstrap) as client:
            await Producer(client).send("busy", b"x")
            async with ShareConsumer(client, "workers", ["busy"]) as consumer:
                await consumer.poll(timeout_ms=5_000)
                return await asyncio.to_thread(ottla.refused, 1, "groups", "delete", "workers", "--yes")

    said = asyncio.run(with_member())
    assert "group 'workers' is Stable and has 1 member" in said
    assert "so it was not deleted; stop them first" in said


def test_a_damaged_log(tmp_path: Path, capsys: Capture):
    from ottla.wire.batch import Record, build_batch

    good = bytes(build_batch([Record(0, 1, None, b"fine")]))
    bad = bytearray(build_batch([Record(1, 1, None, b"broken")], base_offset=1))
    bad[-1] ^= 0xFF
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(good + bad)
    run(["dump", str(path)])
    out, err = capsys.readouterr()
    assert "crc" in (out + err).lower()
