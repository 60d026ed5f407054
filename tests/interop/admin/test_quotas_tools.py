"""kafka-configs for users, clients and addresses: what it prints is the same for both brokers."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.interop.apache import tool
from tests.interop.node.brokers import Node
from tests.interop.process import ProgramFailed

CONFIGS = "kafka.admin.ConfigCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex[:8]


def configs(broker: Node, *arguments: str) -> str:
    return tool(CONFIGS, "--bootstrap-server", broker.bootstrap_servers, *arguments)


def of(**entity: str) -> list[str]:
    """`--entity-type users --entity-name ann`; an empty name stands for the default."""
    words = []
    for kind, each in entity.items():
        words += ["--entity-type", kind, *(("--entity-name", each) if each else ("--entity-default",))]
    return words


def refused(broker: Node, *arguments: str) -> str:
    with pytest.raises(ProgramFailed) as failure:
        configs(broker, *arguments)
    return failure.value.output


def test_a_user(broker: Node, name: str) -> None:
    ann = of(users=name)
    set_ = ("--alter", "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048,request_percentage=200")
    assert configs(broker, *ann, *set_) == f"Completed updating config for user {name}.\n"
    shown = configs(broker, *ann, "--describe")
    assert shown == (
        f"Quota configs for user-principal '{name}' are "
        "consumer_byte_rate=2048.0, request_percentage=200.0, producer_byte_rate=1024.0\n"
    )
    assert configs(broker, *ann, "--alter", "--delete-config", "consumer_byte_rate,request_percentage")
    shown = configs(broker, *ann, "--describe")
    assert shown == f"Quota configs for user-principal '{name}' are producer_byte_rate=1024.0\n"
    configs(broker, *ann, "--alter", "--delete-config", "producer_byte_rate")
    assert configs(broker, *ann, "--describe") == ""


def test_users_and_clients_together(broker: Node, name: str) -> None:
    set_ = ("--alter", "--add-config", "controller_mutation_rate=1000000")
    for entity in (
        of(users=name, clients=name),
        of(users=name, clients=""),
        of(clients=name),
    ):
        configs(broker, *entity, *set_)
    assert configs(broker, *of(users=name, clients=name), "--describe") == (
        f"Quota configs for user-principal '{name}', client-id '{name}' are controller_mutation_rate=1000000.0\n"
    )
    assert configs(broker, *of(users=name, clients=""), "--describe") == (
        f"Quota configs for user-principal '{name}', the default client-id are controller_mutation_rate=1000000.0\n"
    )
    assert configs(broker, *of(clients=name), "--describe") == (
        f"Quota configs for client-id '{name}' are controller_mutation_rate=1000000.0\n"
    )
    all_clients = configs(broker, "--entity-type", "clients", "--describe")
    assert f"Quota configs for client-id '{name}' are controller_mutation_rate=1000000.0" in all_clients.splitlines()


def test_an_address(broker: Node) -> None:
    entity = of(ips="10.9.8.7")
    assert configs(broker, *entity, "--alter", "--add-config", "connection_creation_rate=100000")
    shown = configs(broker, *entity, "--describe")
    assert shown == "Quota configs for ip '10.9.8.7' are connection_creation_rate=100000.0\n"
    configs(broker, *entity, "--alter", "--delete-config", "connection_creation_rate")


def test_what_cannot_be(broker: Node, name: str) -> None:
    for change in ("producer_byte_rate=0", "producer_byte_rate=1.5", "consumer_byte_rate=-1"):
        assert "InvalidRequestException" in refused(broker, *of(users=name), "--alter", "--add-config", change)


def test_a_credential(broker: Node, name: str) -> None:
    user = of(users=name)
    added = configs(broker, *user, "--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=s3cret]")
    assert added == f"Completed updating config for user {name}.\n"
    configs(broker, *user, "--alter", "--add-config", "SCRAM-SHA-512=[password=s3cret]")
    shown = configs(broker, *user, "--describe")
    begin = f"SCRAM credential configs for user-principal '{name}' are "
    assert shown.startswith(begin)
    told = {"SCRAM-SHA-256=iterations=8192", "SCRAM-SHA-512=iterations=4096"}
    assert set(shown.removeprefix(begin).rstrip("\n").split(", ")) == told  # Apache Kafka has no order here
    few = "SCRAM-SHA-256=[iterations=16385,password=x]"
    assert "UnacceptableCredentialException" in refused(broker, *user, "--alter", "--add-config", few)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        configs(broker, *user, "--alter", "--delete-config", mechanism)
    assert configs(broker, *user, "--describe") == ""


def test_quotas_and_credentials_of_a_user_are_shown_together(broker: Node, name: str) -> None:
    configs(broker, *of(users=name), "--alter", "--add-config", "producer_byte_rate=7")
    configs(broker, *of(users=name), "--alter", "--add-config", "SCRAM-SHA-512=[password=p]")
    shown = configs(broker, *of(users=name), "--describe")
    assert shown.splitlines() == [
        f"Quota configs for user-principal '{name}' are producer_byte_rate=7.0",
        f"SCRAM credential configs for user-principal '{name}' are SCRAM-SHA-512=iterations=4096",
    ]


def test_topics_beyond_a_quota_are_refused(broker: Node, name: str, tmp_path: Path) -> None:
    """kafka-topics does not wait for its quota; it says what is wrong."""
    configs(broker, *of(clients=name), "--alter", "--add-config", "controller_mutation_rate=1")
    config = tmp_path / "client.properties"
    config.write_text(f"client.id={name}\n")
    create = (
        "--bootstrap-server",
        broker.bootstrap_servers,
        "--command-config",
        str(config),
        "--create",
        "--partitions",
        "60",
    )
    tool(TOPICS, *create, "--topic", f"{name}-1")
    with pytest.raises(ProgramFailed) as failure:
        tool(TOPICS, *create, "--topic", f"{name}-2")
    assert "ThrottlingQuotaExceededException" in failure.value.output


def test_acls_are_switched_off(broker: Node) -> None:
    with pytest.raises(ProgramFailed) as failure:
        tool(ACLS, "--bootstrap-server", broker.bootstrap_servers, "--list")
    assert "SecurityDisabledException: No Authorizer is configured on the broker" in failure.value.output


def test_tokens_are_switched_off(broker: Node, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("client.id=tokens\n")
    where = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(config))
    with pytest.raises(ProgramFailed) as failure:
        tool(TOKENS, *where, "--create", "--max-life-time-period", "-1")
    assert "UnsupportedByAuthenticationException: Delegation Token requests are not allowed" in failure.value.output
