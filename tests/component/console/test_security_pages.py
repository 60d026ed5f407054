"""The pages about security: rules, users, quotas and tokens, and what they say where there are none to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.client import acls, quotas, tokens, users
from ottla.client.acls import Acl, Operation, PatternType, Permission, ResourceType
from ottla.client.users import ScramUser
from ottla.testing import Broker
from tests.component.console.links import check_links
from tests.component.console.secured import client_of, console_of, secured_broker
from tests.component.console.served import Browser

PAGES = ("/security/acls", "/security/users", "/security/quotas", "/security/tokens")
SCRIPT = "<script>alert(1)</script>"
RULES = [
    Acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:bob", "*", Operation.READ, Permission.ALLOW),
    Acl(ResourceType.TOPIC, "ord", PatternType.PREFIXED, "User:ann", "*", Operation.WRITE, Permission.ALLOW),
    Acl(ResourceType.GROUP, SCRIPT, PatternType.LITERAL, "User:ann", "10.0.0.9", Operation.READ, Permission.DENY),
]


@pytest.fixture(scope="module")
def hmac() -> list[str]:
    return []


@pytest.fixture(scope="module")
def secured(hmac: list[str]) -> Iterator[Broker]:
    with secured_broker() as made:
        with client_of(made, "admin") as admin:
            admin.call(acls.add, RULES)
            admin.call(users.set_users, [ScramUser("carol", "carol-secret", "SCRAM-SHA-256", 4096)])
            admin.call(quotas.alter_quotas, {"user": "ann", "client-id": None}, {"consumer_byte_rate": 1048576.0})
            admin.call(quotas.alter_quotas, {"ip": "10.0.0.9"}, {"connection_creation_rate": 5.0})
            admin.call(quotas.alter_quotas, {"user": "bob"}, {"controller_mutation_rate": 0.04})
            token = admin.call(tokens.create_token, renewers=["bob"])
            hmac += [token.password, token.hmac.hex()]
        yield made


@pytest.fixture(scope="module")
def admin(secured: Broker) -> Iterator[Browser]:
    with console_of(secured, "admin") as browser:
        yield browser


def rows(browser: Browser, path: str) -> list[dict[str, object]]:
    return browser.twin(path)["data"]["rows"]


def test_rules_are_listed_and_narrowed(admin: Browser):
    keys = ("resource_type", "resource", "pattern", "principal", "op", "permission")
    assert [tuple(each[key] for key in keys) for each in rows(admin, "/security/acls.json")] == [
        ("group", SCRIPT, "literal", "User:ann", "read", "deny"),
        ("topic", "ord", "prefixed", "User:ann", "write", "allow"),
        ("topic", "orders", "literal", "User:bob", "read", "allow"),
    ]
    assert [each["resource"] for each in rows(admin, "/security/acls.json?principal=ann")] == [SCRIPT, "ord"]
    assert [each["resource"] for each in rows(admin, "/security/acls.json?resource=topic:orders")] == ["ord", "orders"]
    assert [each["resource"] for each in rows(admin, "/security/acls.json?resource=group")] == [SCRIPT]
    refused = admin.ask("/security/acls.json?resource=orders")
    assert (refused.status, "the types are topic, group" in refused.json["error"]) == (400, True)


def test_rules_are_paged(admin: Browser):
    first = admin.twin("/security/acls.json?limit=2")
    assert len(first["data"]["rows"]) == 2
    more = next(each for each in admin.page("/security/acls?limit=2").links if "after=" in each).replace("&amp;", "&")
    assert [each["resource"] for each in rows(admin, more.replace("acls?", "acls.json?"))] == ["orders"]


def test_the_rest_of_a_list_has_the_same_limit(admin: Browser):
    (more,) = (each for each in admin.page("/security/quotas?limit=1").links if "after=" in each)
    assert "limit=1&" in more


def test_names_are_text(admin: Browser):
    assert SCRIPT not in admin.page("/security/acls").text
    assert "&lt;script&gt;" in admin.page("/security/acls").text


def test_users_have_no_secrets(admin: Browser):
    assert {"name": "carol", "mechanism": "SCRAM-SHA-256", "iterations": 4096} in rows(admin, "/security/users.json")
    assert "carol" in admin.page("/security/users").words
    assert "carol-secret" not in admin.page("/security/users").text


def test_quotas_of_all_kinds_are_listed(admin: Browser):
    assert rows(admin, "/security/quotas.json") == [
        {"entity": {"ip": "10.0.0.9"}, "who": "ip 10.0.0.9", "key": "connection_creation_rate", "value": 5.0},
        {
            "entity": {"client-id": None, "user": "ann"},
            "who": "user ann, client-id (default)",
            "key": "consumer_byte_rate",
            "value": 1048576.0,
        },
        {"entity": {"user": "bob"}, "who": "user bob", "key": "controller_mutation_rate", "value": 0.04},
    ]
    words = admin.page("/security/quotas").words
    assert "1,048,576" in words
    assert "0.04" in words


def test_tokens_are_shown_without_what_they_are_good_for(admin: Browser, hmac: list[str]):
    (row,) = rows(admin, "/security/tokens.json")
    assert (row["owner"], row["requester"], row["renewers"]) == ("User:admin", "User:admin", ["User:bob"])
    assert "hmac" not in row
    text = admin.page("/security/tokens").text + admin.page("/security/tokens.json").text
    assert str(row["id"]) in text
    assert not any(each in text for each in hmac)


@pytest.mark.parametrize("path", PAGES)
def test_links_lead_somewhere(admin: Browser, path: str):
    check_links(admin, path)


def test_somebody_without_rights_is_told_what_he_needs(secured: Broker):
    with console_of(secured, "bob") as bob:
        for path, right in (
            ("/security/acls", "needs DESCRIBE on the cluster"),
            ("/security/users", "needs DESCRIBE on the cluster"),
            ("/security/quotas", "needs DESCRIBE_CONFIGS on the cluster"),
        ):
            words = bob.page(path).words
            assert right in words, path
            assert "ottla acls console" in words
            twin = bob.twin(f"{path}.json")
            assert (twin["data"]["rows"], right in twin["degraded"][0]["why"]) == ([], True)
        assert rows(bob, "/security/tokens.json") != []  # he may renew it
        assert "DescribeQuorum" in bob.page("/quorum").words
        assert "needs DESCRIBE_CONFIGS on the cluster" in bob.page("/nodes/1").words
        assert bob.twin("/nodes/1.json")["data"]["configs"] == []
        assert "No transactions." in bob.page("/transactions").words


def test_a_cluster_without_security_says_so(browser: Browser):
    assert "this cluster has no authorizer" in browser.page("/security/acls").words
    assert "No SCRAM users." in browser.page("/security/users").words
    assert "No quotas." in browser.page("/security/quotas").words
    assert "Tokens cannot be shown: listing tokens needs a login with a password" in (
        browser.page("/security/tokens").words
    )
