"""Access control lists: kafka-acls on both brokers, and each broker on the rules that the other has written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.apache import ApacheKafka, tool
from tests.interop.security.guarded import ALLOWED_URLS, Guarded, config_file, guarded_node

ACLS = "org.apache.kafka.tools.AclCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def ruled(broker: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_node(broker, tmp_path_factory.mktemp(f"ruled-{broker}"), AUTHORIZER) as node:
        yield node


def acls(node: Guarded, *words: str) -> str:
    return tool(ACLS, "--bootstrap-server", node.plain, *words)


def create(node: Guarded, *names: str) -> None:
    for name in names:
        tool(TOPICS, "--bootstrap-server", node.plain, "--create", "--topic", name)


def seen_by_alice(node: Guarded, folder: Path) -> set[str]:
    login = config_file(node, folder, "SASL", "PLAIN")
    return set(tool(TOPICS, "--bootstrap-server", node.sasl, "--command-config", login, "--list").split())


def test_kafka_acls_adds_lists_and_removes_rules(ruled: Guarded, tmp_path: Path):
    create(ruled, "orders", "orders.eu", "payments", "secrets")
    assert seen_by_alice(ruled, tmp_path) == set()
    acls(ruled, "--add", "--allow-principal", "User:alice", "--operation", "Describe", "--topic", "payments")
    prefix = ("--topic", "orders", "--resource-pattern-type", "prefixed")
    acls(ruled, "--add", "--allow-principal", "User:alice", "--operation", "Read", *prefix)
    assert seen_by_alice(ruled, tmp_path) == {"orders", "orders.eu", "payments"}
    acls(ruled, "--add", "--deny-principal", "User:alice", "--operation", "All", "--topic", "orders.eu")
    assert seen_by_alice(ruled, tmp_path) == {"orders", "payments"}
    told = acls(ruled, "--list", "--principal", "User:alice")
    for resource in ("name=payments, patternType=LITERAL", "name=orders, patternType=PREFIXED"):
        assert f"resourceType=TOPIC, {resource}" in told
    assert "permissionType=DENY" in told
    acls(ruled, "--remove", "--force", "--allow-principal", "User:alice", "--operation", "Read", *prefix)
    assert seen_by_alice(ruled, tmp_path) == {"payments"}


def test_the_shorthands_of_kafka_acls(ruled: Guarded):
    who = ("--allow-principal", "User:bob")
    acls(ruled, "--add", *who, "--producer", "--topic", "invoices", "--idempotent")
    acls(ruled, "--add", *who, "--consumer", "--topic", "invoices", "--group", "billing")
    told = acls(ruled, "--list", "--principal", "User:bob")
    for each in ("WRITE", "CREATE", "READ", "DESCRIBE", "IDEMPOTENT_WRITE"):
        assert f"operation={each}," in told


def test_apache_kafka_goes_by_the_rules_of_ottla_and_back(apache_jars: Path, tmp_path: Path):
    with guarded_node("ottla", tmp_path, AUTHORIZER) as node:
        create(node, "orders", "payments")
        acls(node, "--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
        node.node.stop()
        allowed = {ALLOWED_URLS: f"file://{node.tokens.keys}"}
        apache = ApacheKafka(tmp_path / "apache", data_dir=node.node.data_dir, java_properties=allowed)
        own = [name for name in node.node.settings if name.startswith("ottla.")]
        apache.settings = {name: text for name, text in node.node.settings.items() if name not in own}
        apache._ports = node.node._ports
        with apache:
            assert seen_by_alice(node, tmp_path) == {"orders"}
            acls(
                node,
                "--remove",
                "--force",
                "--allow-principal",
                "User:alice",
                "--operation",
                "Read",
                "--topic",
                "orders",
            )
            acls(node, "--add", "--allow-principal", "User:alice", "--operation", "Write", "--topic", "payments")
            apache.stop()
        node.node.start()
        assert seen_by_alice(node, tmp_path) == {"payments"}
