"""The audit log of a node: who has logged in, who was refused something, who has changed what."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.client import acls, configs, groups, topics, users
from ottla.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from ottla.client.blocking import BlockingClient
from ottla.client.configs import Change, Resource
from ottla.client.errors import ClientError, ResponseError
from ottla.client.properties import settings_of
from ottla.client.topics import NewTopic
from ottla.client.users import ScramUser
from ottla.health.facts import LoginFailures, Refusals
from ottla.observe.probes.access import access_facts
from ottla.testing import Broker, broker
from ottla.testing.ports import PortReservation

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


@contextmanager
def as_user(made: Broker, user: str, **login: Any) -> Iterator[BlockingClient]:
    settings = settings_of(made.security.client_properties(user, **login)) | {"default_api_timeout_ms": 5_000}
    with BlockingClient(made.bootstrap_servers, **settings) as client:  # type: ignore[arg-type]
        yield client


def events(path: Path, *kinds: str) -> list[dict[str, Any]]:
    """The events of some kinds; a stopped node has written them all."""
    lines = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    return [line for line in lines if line["event"] in kinds]


def test_it_says_who_did_what(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    with broker(security="sasl_plaintext", **AUTHORIZER, **{"ottla.audit.file": str(path)}) as made:
        rule = Acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:bob", "*", Operation.READ, Permission.ALLOW)
        with as_user(made, "admin") as admin:
            admin.call(topics.create, NewTopic("orders"))
            admin.call(acls.add, [rule])
            change = Change(configs.Operation.SET, "retention.ms", "1000")
            admin.call(configs.alter, Resource(configs.ResourceType.TOPIC, "orders"), [change])
            admin.call(users.set_users, [ScramUser("carol", "carol-secret", "SCRAM-SHA-256")])
        with as_user(made, "bob") as bob, pytest.raises(ResponseError):
            bob.call(topics.delete, "orders")
        with pytest.raises(ClientError), as_user(made, "bob", password="guess\x1b[2J") as bob:
            bob.call(topics.describe)
        with as_user(made, "admin") as admin:
            admin.call(acls.remove, [AclFilter(principal="User:bob")])
            admin.call(topics.delete, "orders")
        made.stop()
    (denied,) = events(path, "authz.denied")
    assert denied | {"at": "", "corr": 0, "client_id": "", "v": 0} == {
        "at": "",
        "event": "authz.denied",
        "principal": "User:bob",
        "host": "127.0.0.1",
        "listener": "SASL_PLAINTEXT",
        "api": "DeleteTopics",
        "v": 0,
        "client_id": "",
        "corr": 0,
        "op": "DELETE",
        "resource": "Topic:orders",
        "rule": "no ACL allows it",
    }
    told = "ALLOW READ on Topic:LITERAL:orders to User:bob from *"
    changes = events(path, "acl.added", "acl.removed", "config.changed", "scram.changed", "topic.deleted")
    changes = [each for each in changes if each.get("user", "carol") == "carol"]  # the others belong to the harness
    assert [(each["event"], each["principal"]) for each in changes] == [
        ("acl.added", "User:admin"),
        ("config.changed", "User:admin"),
        ("scram.changed", "User:admin"),
        ("acl.removed", "User:admin"),
        ("topic.deleted", "User:admin"),
    ]
    assert (changes[0]["rule"], changes[3]["rule"]) == (told, told)
    assert (changes[1]["key"], changes[1]["old"], changes[1]["new"]) == ("retention.ms", None, "1000")
    assert {each["principal"] for each in events(path, "login.ok")} == {"User:admin", "User:bob"}
    assert {each["principal"] for each in events(path, "login.failed")} == {"User:bob"}
    for secret in ("carol-secret", "admin-secret", "guess"):
        assert secret not in path.read_text()


def test_what_somebody_does_not_see_in_a_list_is_no_refusal(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    with broker(security="sasl_plaintext", **AUTHORIZER, **{"ottla.audit.file": str(path)}) as made:
        with as_user(made, "admin") as admin:
            admin.call(topics.create, NewTopic("orders"))
        with as_user(made, "bob") as bob:
            assert bob.call(topics.describe) == []
            assert bob.call(groups.list_groups) == []
        made.stop()
    assert events(path, "authz.denied") == []


def test_what_was_allowed_is_told_if_the_logger_is_at_debug(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    with broker(security="sasl_plaintext", **AUTHORIZER, **{"ottla.audit.file": str(path)}) as made:
        logger = Resource(configs.ResourceType.BROKER_LOGGER, str(made.node_id))
        with as_user(made, "admin") as admin:
            admin.call(topics.create, NewTopic("before"))
            admin.call(configs.alter, logger, [Change(configs.Operation.SET, "ottla.audit", "DEBUG")])
            admin.call(topics.create, NewTopic("orders"))
            admin.call(configs.alter, logger, [Change(configs.Operation.DELETE, "ottla.audit", None)])
            admin.call(topics.create, NewTopic("after"))
        made.stop()
    allowed = [each for each in events(path, "authz.allowed") if each["api"] == "CreateTopics"]
    assert {(each["principal"], each["op"], each["resource"]) for each in allowed} == {
        ("User:admin", "CREATE", "Cluster:kafka-cluster"),
        ("User:admin", "DESCRIBE_CONFIGS", "Topic:orders"),
    }


def test_logins_and_refusals_are_counted():
    reserved = PortReservation()
    reserved.release()
    with broker(security="sasl_plaintext", **AUTHORIZER, **{"ottla.metrics.port": str(reserved.port)}) as made:
        with as_user(made, "bob") as bob, pytest.raises(ResponseError):
            bob.call(topics.create, NewTopic("orders"))
        page = urllib.request.urlopen(f"http://127.0.0.1:{reserved.port}/metrics").read().decode()
    reserved.close()
    labels = 'listener="SASL_PLAINTEXT",mechanism="SCRAM-SHA-512"'
    assert f'ottla_logins_total{{{labels},result="ok"}}' in page
    assert 'ottla_refused_requests_total{request="CreateTopics"} 1' in page


def test_the_observer_tells_of_them():
    reserved = PortReservation()
    reserved.release()
    address = f"http://127.0.0.1:{reserved.port}"
    with broker(security="sasl_plaintext", **AUTHORIZER, **{"ottla.inspect.listeners": address}) as made:
        with as_user(made, "bob") as bob, pytest.raises(ResponseError):
            bob.call(topics.create, NewTopic("orders"))
        with pytest.raises(ClientError), as_user(made, "bob", password="guess") as bob:
            bob.call(topics.describe)
        told = json.loads(urllib.request.urlopen(f"{address}/inspect/v1/access").read())
    reserved.close()
    assert dict(access_facts(told)) == {
        "bob@127.0.0.1@1": LoginFailures(node=1, user="bob", address="127.0.0.1", failed=1),
        "User:bob@CreateTopics@1": Refusals(node=1, principal="User:bob", api="CreateTopics", refused=1),
    }


def test_a_secured_node_has_one_unless_it_is_told_otherwise(tmp_path: Path):
    for given, is_there in (("", True), ("none", False)):
        data = tmp_path / (given or "default")
        with broker(directory=data, security="sasl_plaintext", **{"ottla.audit.file": given}) as made:
            made.stop()
        assert bool(list(data.rglob("audit.jsonl"))) == is_there
