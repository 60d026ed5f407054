"""Access control lists on a real node: kept in the metadata log, and heeded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client import acls, topics
from ottla.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from ottla.client.blocking import BlockingClient
from ottla.client.errors import ClientError, ResponseError
from ottla.client.properties import settings_of
from ottla.client.topics import NewTopic
from ottla.security.authorizer import Action, Authorizer
from ottla.testing import Broker, BrokerError, broker

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZER = {"authorizer.class.name": STANDARD, "super.users": "User:admin"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    with broker(security="sasl_plaintext", **AUTHORIZER) as made:
        yield made


def as_user(made: Broker, user: str, call: Any, *arguments: Any) -> Any:
    settings = settings_of(made.security.client_properties(user)) | {"default_api_timeout_ms": 5_000}
    with BlockingClient(made.bootstrap_servers, **settings) as client:  # type: ignore[arg-type]
        return client.call(call, *arguments)


def allow(name: str, operation: Operation, principal: str = "User:alice", **more: Any) -> Acl:
    return Acl(ResourceType.TOPIC, name, PatternType.LITERAL, principal, "*", operation, Permission.ALLOW)._replace(
        **more
    )


def test_rules_are_added_found_and_removed(guarded: Broker):
    rules = [allow("one", Operation.READ), allow("two", Operation.ALL, pattern_type=PatternType.PREFIXED)]
    as_user(guarded, "admin", acls.add, rules)
    as_user(guarded, "admin", acls.add, rules[:1])
    wanted = AclFilter(principal="User:alice")
    assert sorted(as_user(guarded, "admin", acls.describe, wanted)) == sorted(rules)
    assert (
        as_user(guarded, "admin", acls.describe, AclFilter(resource_name="two", pattern_type=PatternType.ANY))
        == rules[1:]
    )
    assert as_user(guarded, "admin", acls.remove, [AclFilter(resource_name="one")]) == rules[:1]
    assert as_user(guarded, "admin", acls.describe, wanted) == rules[1:]


def test_only_who_may_does(guarded: Broker):
    with pytest.raises(ResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
        as_user(guarded, "bob", topics.create, NewTopic("orders"))
    with pytest.raises(ResponseError, match="CLUSTER_AUTHORIZATION_FAILED"):
        as_user(guarded, "bob", acls.describe)
    as_user(guarded, "admin", acls.add, [allow("orders", Operation.CREATE, "User:bob")])
    as_user(guarded, "bob", topics.create, NewTopic("orders"))
    with pytest.raises(ClientError):
        as_user(guarded, "alice", topics.describe, "orders")
    as_user(guarded, "admin", acls.add, [allow("orders", Operation.READ)])
    (described,) = as_user(guarded, "alice", topics.describe, "orders")
    assert described.name == "orders"
    denied = allow("orders", Operation.ALL)._replace(permission=Permission.DENY)
    as_user(guarded, "admin", acls.add, [denied])
    with pytest.raises(ClientError):
        as_user(guarded, "alice", topics.describe, "orders")


@pytest.mark.parametrize(
    "wrong",
    [
        allow("", Operation.READ),
        allow("x", Operation.READ, "alice"),
        allow("x", Operation.READ, pattern_type=PatternType.MATCH),
        allow("x", Operation.READ, resource_type=ResourceType.CLUSTER),
        allow("x", Operation.ANY),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(guarded: Broker, wrong: Acl):
    with pytest.raises(ResponseError, match="INVALID_REQUEST"):
        as_user(guarded, "admin", acls.add, [wrong])


def test_rules_stay_after_a_restart():
    with broker(security="sasl_plaintext", **AUTHORIZER) as made:
        as_user(made, "admin", acls.add, [allow("orders", Operation.CREATE, "User:bob")])
        made.restart()
        as_user(made, "bob", topics.create, NewTopic("orders"))
        with pytest.raises(ResponseError):
            as_user(made, "bob", topics.create, NewTopic("others"))


class NoDeletions(Authorizer):
    """What a user may write himself."""

    def authorize(self, action: Action) -> bool:
        if action.resource_name == "broken":
            raise RuntimeError("it does not know what to do")
        return action.operation is not Operation.DELETE or action.principal == "User:admin"


def test_a_class_of_ones_own_decides(caplog: pytest.LogCaptureFixture):
    with broker(security="sasl_plaintext", **{"authorizer.class.name": f"{__name__}.NoDeletions"}) as made:
        as_user(made, "bob", topics.create, NewTopic("orders"))
        with pytest.raises(ResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
            as_user(made, "bob", topics.delete, "orders")
        as_user(made, "admin", topics.delete, "orders")
        with pytest.raises(ResponseError, match="SECURITY_DISABLED"):
            as_user(made, "admin", acls.describe)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"authorizer.class.name": "org.apache.kafka.Other"}, "a Python class"),
        ({"authorizer.class.name": "com.example.Mine"}, "com.example cannot be imported"),
        ({"authorizer.class.name": f"{__name__}.allow"}, "is not derived from Authorizer"),
        ({"super.users": "admin"}, "User:name"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, str], text: str):
    with pytest.raises(BrokerError, match=text), broker(**(AUTHORIZER | settings)):
        pass
