"""`ottla users` and `ottla tokens` on a broker that wants logins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.cli import run
from ottla.testing import Broker, broker
from ottla.wire import types
from tests.component.cli.cluster_thread import fake_cluster

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with broker(security="sasl_ssl", delegation_token_secret_key="key") as made:
        yield made


@pytest.fixture
def as_user(secured: Broker, tmp_path: Path) -> Any:
    def options(**login: str) -> list[str]:
        path = tmp_path / f"{login.get('user', 'alice')}.properties"
        properties = secured.security.client_properties(**login)
        path.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
        return ["--bootstrap", secured.bootstrap_servers, "--command-config", str(path)]

    return options


def out(capsys: Capture) -> Any:
    return json.loads(capsys.readouterr().out)


def test_users_are_set_listed_and_deleted(as_user: Any, tmp_path: Path, capsys: Capture):
    admin = as_user(user="admin")
    password = tmp_path / "password"
    password.write_text("first\n")
    assert run(["users", "set", "carol", "--password-file", str(password), *admin]) == 0
    assert run(["users", "list", "carol", "--json", *admin]) == 0
    assert {row["mechanism"] for row in json.loads(capsys.readouterr().out.split("\n", 1)[1])["rows"]} == {
        "SCRAM-SHA-256",
        "SCRAM-SHA-512",
    }
    assert run(["topics", "list", *as_user(user="carol", password="first")]) == 0
    assert run(["users", "delete", "carol", "--mechanism", "SCRAM-SHA-512", "--yes", *admin]) == 0
    assert run(["topics", "list", *as_user(user="carol", password="first")]) != 0
    assert run(["users", "delete", "carol", "--mechanism", "SCRAM-SHA-512", "--yes", *admin]) != 0
    assert "first" not in capsys.readouterr().err


def test_a_password_is_asked_for_and_never_an_option(as_user: Any, capsys: Capture):
    assert run(["users", "set", "carol", *as_user(user="admin")]) != 0
    assert "--password-file -" in capsys.readouterr().err


def test_a_password_that_is_not_text_is_refused(as_user: Any, tmp_path: Path, capsys: Capture):
    password = tmp_path / "password"
    password.write_bytes("müller".encode("latin-1"))
    assert run(["users", "set", "carol", "--password-file", str(password), *as_user(user="admin")]) == 2
    assert "is not text in UTF-8" in capsys.readouterr().err


def test_an_unknown_user_is_told(as_user: Any, capsys: Capture):
    assert run(["users", "list", "nobody", *as_user(user="admin")]) != 0
    assert "nobody" in capsys.readouterr().err


def test_tokens_are_created_listed_renewed_and_ended(as_user: Any, capsys: Capture):
    alice = as_user()
    assert run(["tokens", "create", "--renewer", "bob", "--lifetime", "1h", "--json", *alice]) == 0
    (made,) = out(capsys)["rows"]
    assert (made["owner"], made["renewers"]) == ("User:alice", ["User:bob"])
    assert run(["tokens", "list", *alice]) == 0
    shown = capsys.readouterr().out
    assert made["token"] in shown
    assert made["hmac"] not in shown
    assert run(["tokens", "renew", made["hmac"], "--for", "30m", *as_user(user="bob")]) == 0
    assert run(["tokens", "expire", made["hmac"], *alice]) == 0
    capsys.readouterr()
    assert run(["tokens", "list", "--json", *alice]) == 0
    assert out(capsys)["rows"] == []
    assert run(["tokens", "expire", "!", *alice]) != 0
    assert run(["tokens", "expire", "ü", *alice]) == 2


def test_a_token_that_lives_for_ever_is_listed(capsys: Capture):
    token = types.DescribeDelegationTokenResponse.DescribedDelegationToken(
        "User", "alice", "User", "alice", 0, 86_400_000, 2**63 - 1, "t1"
    )
    answer = types.DescribeDelegationTokenResponse(tokens=(token,))
    with fake_cluster(DescribeDelegationToken=answer) as cluster:
        assert run(["tokens", "list", "--bootstrap", cluster.bootstrap_servers]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split("  ")[-1] == "9223372036854775807"


def test_rules_are_added_listed_and_removed(tmp_path: Path, capsys: Capture):
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer.class.name": standard, "super.users": "User:admin"}
    with broker(security="sasl_plaintext", **settings) as made:
        path = tmp_path / "admin.properties"
        properties = made.security.client_properties("admin")
        path.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
        to = ["--bootstrap", made.bootstrap_servers, "--command-config", str(path)]
        rule = ["--topic", "orders", "--principal", "ann"]
        assert run(["acls", "add", *rule, "--operation", "read", "--operation", "write", *to]) == 0
        assert run(["acls", "add", "--cluster", "--principal", "ann", "--operation", "describe", "--deny", *to]) == 0
        capsys.readouterr()
        assert run(["acls", "list", "--topic", "orders", "--json", *to]) == 0
        assert [row["operation"] for row in out(capsys)["rows"]] == ["read", "write"]
        assert run(["acls", "remove", *rule, "--operation", "read", "--yes", *to]) == 0
        capsys.readouterr()
        assert run(["acls", "list", "--principal", "ann", "--json", *to]) == 0
        assert [(row["permission"], row["operation"]) for row in out(capsys)["rows"]] == [
            ("allow", "write"),
            ("deny", "describe"),
        ]
        assert run(["acls", "remove", *rule, "--operation", "read", "--yes", *to]) != 0
        assert run(["acls", "add", "--topic", "orders", *to]) != 0
        assert run(["acls", "add", "--topic", "a", "--group", "b", "--principal", "c", "--operation", "read", *to]) != 0
