"""DescribeClientQuotas and AlterClientQuotas, as clients see them; Apache Kafka answers alike (tests/interop/admin)."""

from __future__ import annotations

from itertools import count

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.types import AlterClientQuotasRequest, DescribeClientQuotasRequest
from tests.component.broker.quota_requests import Component, Entity, Entry, alter, await_limits, describe, entry
from tests.component.broker.raw_client import RawClient

INVALID = ErrorCode.INVALID_REQUEST
_serial = count()


def name() -> str:
    return f"quota-{next(_serial)}"


@pytest.mark.parametrize("version", [0, 1])
def test_limits_are_set_shown_and_removed(client: RawClient, version: int) -> None:
    user = name()
    assert alter(client, entry({"user": user}, producer_byte_rate=1e6, request_percentage=99.5), version=version) == [0]
    await_limits(client, user, {"producer_byte_rate": 1e6, "request_percentage": 99.5})
    assert alter(client, entry({"user": user}, producer_byte_rate=2e6, request_percentage=None), version=version) == [0]
    await_limits(client, user, {"producer_byte_rate": 2e6})
    assert alter(client, entry({"user": user}, producer_byte_rate=None), version=version) == [0]
    await_limits(client, user, {})


def test_entities_of_all_kinds(client: RawClient) -> None:
    user, client_id = name(), name()
    assert (
        alter(
            client,
            entry({"user": user}, producer_byte_rate=1e9),
            entry({"user": user, "client-id": client_id}, consumer_byte_rate=1e9),
            entry({"user": user, "client-id": None}, controller_mutation_rate=1e9),
            entry({"client-id": client_id}, request_percentage=1e9),
            entry({"ip": "10.1.2.3"}, connection_creation_rate=1e6),
        )
        == [0] * 5
    )
    await_limits(client, user, {"producer_byte_rate": 1e9})
    both = (("client-id", client_id), ("user", user))
    assert describe(client, ("user", 0, user), ("client-id", 0, client_id)) == {both: {"consumer_byte_rate": 1e9}}
    default = (("client-id", None), ("user", user))
    assert describe(client, ("user", 0, user), ("client-id", 1, None)) == {default: {"controller_mutation_rate": 1e9}}
    assert set(describe(client, ("user", 0, user), ("client-id", 2, None))) == {both, default}
    assert len(describe(client, ("user", 0, user), strict=False)) == 3
    assert describe(client, ("client-id", 0, client_id)) == {(("client-id", client_id),): {"request_percentage": 1e9}}
    assert describe(client, ("ip", 0, "10.1.2.3")) == {(("ip", "10.1.2.3"),): {"connection_creation_rate": 1e6}}
    assert describe(client) == {}
    assert len(describe(client, strict=False)) >= 5


def test_a_trial_changes_nothing(client: RawClient) -> None:
    user = name()
    assert alter(client, entry({"user": user}, producer_byte_rate=1.0), only=True) == [0]
    assert describe(client, ("user", 0, user)) == {}


@pytest.mark.parametrize(
    ("entity", "limits"),
    [
        ({}, {"producer_byte_rate": 1.0}),
        ({"group": "g"}, {"producer_byte_rate": 1.0}),
        ({"user": ""}, {"producer_byte_rate": 1.0}),
        ({"ip": "10.0.0.1", "user": "u"}, {"connection_creation_rate": 1.0}),
        ({"ip": "no such host.invalid"}, {"connection_creation_rate": 1.0}),
        ({"ip": "10.0.0.1"}, {"producer_byte_rate": 1.0}),
        ({"user": "u"}, {"connection_creation_rate": 1.0}),
        ({"user": "u"}, {"no_such_limit": 1.0}),
        ({"user": "u"}, {"producer_byte_rate": -0.0}),
        ({"user": "u"}, {"consumer_byte_rate": -1.0}),
        ({"user": "u"}, {"consumer_byte_rate": 1.5}),
        ({"user": "u"}, {"consumer_byte_rate": 1e30}),
    ],
)
def test_what_cannot_be_is_refused(client: RawClient, entity: Entity, limits: dict[str, float]) -> None:
    assert alter(client, entry(entity, **limits)) == [INVALID]


def test_removing_what_is_not_there_is_no_fault(client: RawClient) -> None:
    assert alter(client, entry({"user": name()}, no_such_limit=None)) == [0]
    assert alter(client, entry({"user": name()})) == [0]
    assert alter(client) == []


def test_a_type_that_an_entity_names_twice_counts_once(client: RawClient) -> None:
    kind, user = AlterClientQuotasRequest, name()
    parts = (kind.EntityData("user", name()), kind.EntityData("user", user))
    assert alter(client, Entry(parts, (kind.OpData("producer_byte_rate", 1e9),))) == [0]
    await_limits(client, user, {"producer_byte_rate": 1e9})


def test_what_is_named_twice_is_refused_once(client: RawClient) -> None:
    user = name()
    twice = entry({"user": user}, producer_byte_rate=1e9)
    assert alter(client, twice, twice) == [INVALID]
    kind = AlterClientQuotasRequest
    limits = (kind.OpData("producer_byte_rate", 1e9), kind.OpData("producer_byte_rate", 2e9))
    assert alter(client, Entry(twice.entity, limits)) == [INVALID]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", 0, "x")], INVALID),
        ([("group", 0, "x")], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", 0, None)], INVALID),
        ([("user", 1, "x")], INVALID),
        ([("user", 2, "x")], INVALID),
        ([("user", 3, None)], INVALID),
        ([("user", 0, "x"), ("user", 0, "y")], INVALID),
        ([("ip", 2, None), ("user", 2, None)], INVALID),
    ],
)
def test_a_filter_that_cannot_be(client: RawClient, components: list[Component], code: ErrorCode, version: int) -> None:
    kind = DescribeClientQuotasRequest
    answer = client.ask(kind(tuple(kind.ComponentData(*each) for each in components), False), version)
    assert (answer.error_code, answer.entries) == (code, None)
    assert answer.error_message
