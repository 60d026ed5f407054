"""Passwords go through the proxy and into no output, whatever is asked for."""

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.apache import ApacheKafka
from tests.interop.proxied import Proxy

USER, PASSWORD = "alice", "lavender-and-thyme"
JAAS = (
    "org.apache.kafka.common.security.{module} required "
    f'username="{USER}" password="{PASSWORD}"{{more}};'
)  # fmt: skip
PLAIN = JAAS.format(module="plain.PlainLoginModule", more=f' user_{USER}="{PASSWORD}"')
SCRAM = JAAS.format(module="scram.ScramLoginModule", more="")
SASL = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": PLAIN,
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": SCRAM,
    "format_arguments": (
        "--standalone",
        "--add-scram",
        f"SCRAM-SHA-256=[name={USER},password={PASSWORD}]",
    ),
}


def log_in(bootstrap_servers: str, mechanism: str) -> None:
    """Ask for the cluster's metadata as a user with a password."""
    from confluent_kafka.admin import AdminClient

    settings = {
        "bootstrap.servers": bootstrap_servers,
        "client.id": "interop-sasl",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    assert AdminClient(settings).list_topics(timeout=30).brokers


@pytest.fixture
def guarded_kafka(boot_apache_kafka: Callable[..., ApacheKafka]) -> ApacheKafka:
    return boot_apache_kafka(**SASL)


def test_passwords_are_never_printed(guarded_kafka: ApacheKafka, tmp_path: Path):
    for option in ("", "-v", "--json"):
        with Proxy(guarded_kafka.bootstrap_servers, tmp_path, *filter(None, [option])) as proxy:
            for mechanism in ("PLAIN", "SCRAM-SHA-256"):
                log_in(proxy.bootstrap_servers, mechanism)
            notes = proxy.stop()
        shown = proxy.out_path.read_text() + notes
        assert "SaslAuthenticate" in shown
        assert "Metadata" in shown
        for form in (PASSWORD, PASSWORD.encode().hex(), PASSWORD.encode().hex(" "), token()):
            assert form not in shown, option


def token() -> str:
    """What PLAIN sends, as JSON would show it."""
    return b64encode(f"\0{USER}\0{PASSWORD}".encode()).decode().rstrip("=")
