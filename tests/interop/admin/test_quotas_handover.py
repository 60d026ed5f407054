"""Quotas and SCRAM credentials through a change of brokers, both ways, from the log and from a snapshot of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.component.broker import scram_requests as scram
from tests.component.broker.raw_client import RawClient
from tests.interop.admin.quota_changes import change_all, seen
from tests.interop.apache import ApacheKafka, dump_log, free_ports
from tests.interop.node.brokers import APACHE, OTTLA, node_of
from tests.interop.serving import OttlaServe

TIME_LIMIT_S = 60
POLL_S = 0.1
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "200"}
USER, PASSWORD = "ann", "s3cret"
SCRAM_LINE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def snapshot(data_dir: Path) -> Path | None:
    """The newest one with our records in it, when it is there."""
    files = sorted((data_dir / "__cluster_metadata-0").glob("*.checkpoint"), reverse=True)
    return files[0] if files and not files[0].name.startswith("0" * 20) else None


def await_snapshot(data_dir: Path) -> Path:
    deadline = time.monotonic() + TIME_LIMIT_S
    while time.monotonic() < deadline:
        found = snapshot(data_dir)
        if found is not None and b"bob" in found.read_bytes():  # who was changed last
            return found
        time.sleep(POLL_S)
    raise AssertionError("no snapshot was made")


@pytest.mark.parametrize("kinds", [(OTTLA, APACHE), (APACHE, OTTLA)], ids="-then-".join)
@pytest.mark.parametrize("settings", [{}, SNAPSHOTS], ids=["log", "snapshot"])
def test_one_shows_what_the_other_was_told(
    apache_jars: Path, tmp_path: Path, kinds: tuple[str, str], settings: dict[str, str]
) -> None:
    first, second = kinds
    data_dir = tmp_path / "data"
    with node_of(first, tmp_path / "first", data_dir=data_dir, **settings) as node:
        client = RawClient.at(node.bootstrap_servers)
        change_all(client)
        told = seen(client)
        if settings:
            shown = dump_log(await_snapshot(data_dir), "--cluster-metadata-decoder")
            assert "CLIENT_QUOTA_RECORD" in shown
            assert "USER_SCRAM_CREDENTIAL_RECORD" in shown
        client.close_all()
        node.stop()
    with node_of(second, tmp_path / "second", data_dir=data_dir) as node:
        client = RawClient.at(node.bootstrap_servers)
        assert seen(client) == told
        assert scram.alter(client, deletions=(("bob", scram.SHA_512),)) == {"bob": 0}
        client.close_all()
        node.stop()
        assert "Traceback" not in node.log
    assert len(told[0]) == 4


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_apache_kafka_lets_in_who_was_added_by_ottla(apache_jars: Path, tmp_path: Path, mechanism: str) -> None:
    """The keys that ottla derives are those that a login needs."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

    data_dir = tmp_path / "data"
    with OttlaServe(tmp_path / "ottla", data_dir=data_dir) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
        number = ScramMechanism.SCRAM_SHA_256 if mechanism.endswith("256") else ScramMechanism.SCRAM_SHA_512
        upsertion = UserScramCredentialUpsertion(USER, ScramCredentialInfo(number, 4096), PASSWORD.encode())
        admin.alter_user_scram_credentials([upsertion])[USER].result(TIME_LIMIT_S)
        described = admin.describe_user_scram_credentials([USER])[USER].result(TIME_LIMIT_S)
        assert [(each.mechanism, each.iterations) for each in described.scram_credential_infos] == [(number, 4096)]
        node.stop()
    kafka = ApacheKafka(tmp_path / "apache", data_dir=data_dir)
    port = free_ports(1)[0]
    listeners = f"PLAINTEXT://{kafka.bootstrap_servers},CONTROLLER://{kafka.controller_servers},SASL://127.0.0.1:{port}"
    kafka.settings |= {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.sasl.sasl.enabled.mechanisms": mechanism,
        f"listener.name.sasl.{mechanism.lower()}.sasl.jaas.config": SCRAM_LINE,
    }
    with kafka:
        login = {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": USER,
        }
        assert AdminClient({**login, "sasl.password": PASSWORD}).list_topics(timeout=TIME_LIMIT_S).brokers
        with pytest.raises(KafkaException):
            AdminClient({**login, "sasl.password": "wrong"}).list_topics(timeout=5)
