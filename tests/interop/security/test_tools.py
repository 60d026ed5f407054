"""Apache Kafka's own tools for users and tokens, and each broker on what the other has written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interop.apache import ApacheKafka, tool
from tests.interop.process import ProgramFailed
from tests.interop.security.guarded import ALLOWED_URLS, MECHANISMS, Guarded, config_file, guarded_node

CONFIGS = "kafka.admin.ConfigCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"


@pytest.mark.parametrize("mechanism", MECHANISMS[1:3])
def test_kafka_configs_sets_and_deletes_users(guarded: Guarded, tmp_path: Path, mechanism: str):
    admin = config_file(guarded, tmp_path, "SASL", "PLAIN")
    to = ("--bootstrap-server", guarded.sasl, "--command-config", admin, "--entity-type", "users")
    user = ("--entity-name", f"carol-{mechanism.lower()}")
    tool(CONFIGS, *to, *user, "--alter", "--add-config", f"{mechanism}=[iterations=5000,password=first]")
    assert f"{mechanism}=iterations=5000" in tool(CONFIGS, *to, *user, "--describe")
    carol = config_file(guarded, tmp_path, "SASL", mechanism, user=user[1], password="first")
    where = ("--bootstrap-server", guarded.sasl, "--command-config", carol)
    tool("org.apache.kafka.tools.TopicCommand", *where, "--list")
    tool(CONFIGS, *to, *user, "--alter", "--delete-config", mechanism)
    with pytest.raises(ProgramFailed, match="SaslAuthenticationException"):
        tool("org.apache.kafka.tools.TopicCommand", *where, "--list")


def test_kafka_delegation_tokens(guarded: Guarded, tmp_path: Path):
    admin = config_file(guarded, tmp_path, "SASL", "PLAIN")
    to = ("--bootstrap-server", guarded.sasl, "--command-config", admin)
    made = tool(TOKENS, *to, "--create", "--max-life-time-period", "3600000", "--renewer-principal", "User:bob")
    token_id, secret = re.findall(r"^(\S+)\s+(\S+==?)\s+User:alice", made, re.MULTILINE)[0]
    describe = ("--describe", "--owner-principal", "User:alice")
    assert token_id in tool(TOKENS, *to, *describe)
    for mechanism in MECHANISMS[1:3]:
        login = {"user": token_id, "password": secret, "more": " tokenauth=true"}
        path = config_file(guarded, tmp_path, "SASL", mechanism, **login)
        where = ("--bootstrap-server", guarded.sasl, "--command-config", path)
        tool("org.apache.kafka.tools.TopicCommand", *where, "--list")
        with pytest.raises(ProgramFailed, match=r"not allowed|Delegation Token requests"):
            tool(TOKENS, *where, "--create", "--max-life-time-period", "-1")
    tool(TOKENS, *to, "--renew", "--renew-time-period", "-1", "--hmac", secret)
    tool(TOKENS, *to, "--expire", "--expiry-time-period", "-1", "--hmac", secret)
    assert token_id not in tool(TOKENS, *to, *describe)


def test_apache_kafka_lets_in_whom_ottla_knows_and_back(apache_jars: Path, tmp_path: Path):
    with guarded_node("ottla", tmp_path) as guarded:
        admin = config_file(guarded, tmp_path, "SASL", "PLAIN")
        to = ("--bootstrap-server", guarded.sasl, "--command-config", admin)
        tool(
            CONFIGS,
            *to,
            "--entity-type",
            "users",
            "--entity-name",
            "dora",
            "--alter",
            "--add-config",
            "SCRAM-SHA-256=[password=pw]",
        )
        made = tool(TOKENS, *to, "--create", "--max-life-time-period", "3600000")
        token_id, secret = re.findall(r"^(\S+)\s+(\S+==?)\s+User:alice", made, re.MULTILINE)[0]
        guarded.node.stop()
        allowed = {ALLOWED_URLS: f"file://{guarded.tokens.keys}"}
        apache = ApacheKafka(tmp_path / "apache", data_dir=guarded.node.data_dir, java_properties=allowed)
        apache.settings = guarded.node.settings
        apache._ports = guarded.node._ports

        def log_in(user: str, password: str, more: str = "") -> None:
            path = config_file(guarded, tmp_path, "SASL", "SCRAM-SHA-256", user=user, password=password, more=more)
            tool(
                "org.apache.kafka.tools.TopicCommand",
                "--bootstrap-server",
                guarded.sasl,
                "--command-config",
                path,
                "--list",
            )

        with apache:
            log_in("dora", "pw")
            log_in(token_id, secret, " tokenauth=true")
            users = ("--entity-type", "users", "--entity-name", "emil")
            tool(CONFIGS, *to, *users, "--alter", "--add-config", "SCRAM-SHA-256=[password=pw2]")
            apache.stop()
        guarded.node.start()
        log_in("emil", "pw2")
        log_in(token_id, secret, " tokenauth=true")
