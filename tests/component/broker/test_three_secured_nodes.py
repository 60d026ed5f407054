"""A quorum of three nodes that speak to each other over TLS and log in: it works, and strangers are kept out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.network.logins import LoginResult
from ottla.client import topics
from ottla.client.blocking import BlockingClient
from ottla.client.errors import ClientError
from ottla.client.properties import settings_of
from ottla.client.topics import NewTopic
from ottla.testing.certificates import CertificateAuthority
from tests.component.broker.three_nodes import NODES, ThreeNodes, three_nodes

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{MODULE} required username="node" password="s3cret" user_node="s3cret";'


def secured(directory: Path, protocol: str = "SASL_SSL") -> dict[str, str]:
    authority = CertificateAuthority(directory)
    return {
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:{protocol}",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": JAAS,
        "listener.name.controller.connections.max.reauth.ms": "2000",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("node").pem),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
    }


@pytest.fixture(scope="module", params=["SASL_SSL", "SSL", "SASL_PLAINTEXT"])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodes]:
    settings = secured(tmp_path_factory.mktemp("certificates"), request.param)
    with three_nodes(tmp_path_factory.mktemp("nodes"), settings) as running:
        yield running


def create(nodes: ThreeNodes, name: str) -> None:
    with BlockingClient(nodes.bootstrap) as client:
        client.call(topics.create, NewTopic(name))


def test_a_topic_is_created_through_every_node(nodes: ThreeNodes):
    for number in NODES:
        with BlockingClient(f"127.0.0.1:{nodes.ports[number]}") as client:
            client.call(topics.create, NewTopic(f"through-{number}"))


def renewals(nodes: ThreeNodes) -> int:
    return sum(
        count
        for node in nodes.nodes.values()
        for (*_, result), count in node.logins.counts.items()
        if result is LoginResult.RENEWED
    )


@pytest.mark.parametrize("nodes", ["SASL_SSL", "SASL_PLAINTEXT"], indirect=True)
def test_sessions_between_nodes_are_renewed(nodes: ThreeNodes):
    """They last for two seconds, and whoever asks notices nothing of it."""
    for number in range(100):
        create(nodes, f"later-{number}")
        if renewals(nodes) >= len(NODES):
            break
        time.sleep(0.1)
    else:
        pytest.fail("no session was renewed")
    for node in nodes.nodes.values():
        assert "failed-login" not in {cause for _, cause in node.closed_connections.counts}


def test_strangers_are_kept_out(nodes: ThreeNodes):
    node = nodes.nodes[nodes.leader_id]
    host, port = node.listeners["CONTROLLER"].address
    address = f"{host}:{port}"
    for properties in (
        {},
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": JAAS.replace("s3cret", "x"),
        },
    ):
        with pytest.raises(ClientError), BlockingClient(address, **settings_of(properties)):
            pass
