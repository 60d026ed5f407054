"""Describe- and AlterUserScramCredentials, as clients see them; Apache Kafka answers alike (tests/interop/admin)."""

from __future__ import annotations

from itertools import count

import pytest

from ottla.wire.errors import ErrorCode
from tests.component.broker.raw_client import RawClient
from tests.component.broker.scram_requests import SHA_256, SHA_512, alter, await_users, describe, upsertion

_serial = count()


def name() -> str:
    return f"user-{next(_serial)}"


def test_credentials_come_and_go(client: RawClient) -> None:
    ann, bob = name(), name()
    assert alter(client, upsertion(ann), upsertion(bob, SHA_512, 16384)) == {ann: 0, bob: 0}
    await_users(client, {ann: (0, [(SHA_256, 4096)]), bob: (0, [(SHA_512, 16384)])})
    assert alter(client, upsertion(ann, SHA_512, 5000)) == {ann: 0}
    await_users(client, {ann: (0, [(SHA_256, 4096), (SHA_512, 5000)])})
    assert {ann, bob} <= set(describe(client, of_all=True))
    assert describe(client) == describe(client, of_all=True)
    assert alter(client, deletions=((ann, SHA_256),)) == {ann: 0}
    await_users(client, {ann: (0, [(SHA_512, 5000)])})
    assert alter(client, deletions=((ann, SHA_512), (bob, SHA_512))) == {ann: 0, bob: 0}
    await_users(client, {ann: (ErrorCode.RESOURCE_NOT_FOUND, [])})


@pytest.mark.parametrize(
    ("mechanism", "iterations", "code"),
    [
        (SHA_256, 4095, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (SHA_512, 4095, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (SHA_256, 16385, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (0, 4096, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (3, 4096, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_what_cannot_be_is_refused(client: RawClient, mechanism: int, iterations: int, code: ErrorCode) -> None:
    user = name()
    assert alter(client, upsertion(user, mechanism, iterations)) == {user: code}


def test_a_user_must_have_a_name(client: RawClient) -> None:
    assert alter(client, upsertion("")) == {"": ErrorCode.UNACCEPTABLE_CREDENTIAL}
    assert alter(client, deletions=(("", SHA_256),)) == {"": ErrorCode.UNACCEPTABLE_CREDENTIAL}


def test_what_is_not_there_cannot_be_deleted(client: RawClient) -> None:
    user = name()
    assert alter(client, deletions=((user, SHA_256),)) == {user: ErrorCode.RESOURCE_NOT_FOUND}
    assert alter(client, deletions=((user, 9),)) == {user: ErrorCode.UNSUPPORTED_SASL_MECHANISM}


def test_one_change_for_a_user_in_a_request(client: RawClient) -> None:
    user = name()
    assert alter(client, upsertion(user)) == {user: 0}
    twice = {user: ErrorCode.DUPLICATE_RESOURCE}
    assert alter(client, upsertion(user), upsertion(user, SHA_512)) == twice
    assert alter(client, upsertion(user, SHA_512), deletions=((user, SHA_256),)) == twice
    assert alter(client, deletions=((user, SHA_512), (user, SHA_256))) == {user: ErrorCode.RESOURCE_NOT_FOUND}


def test_who_is_described_twice_or_not_known(client: RawClient) -> None:
    ann, bob = name(), name()
    assert alter(client, upsertion(ann)) == {ann: 0}
    await_users(client, {ann: (0, [(SHA_256, 4096)])})
    assert describe(client, ann, bob, ann) == {
        ann: (ErrorCode.DUPLICATE_RESOURCE, []),
        bob: (ErrorCode.RESOURCE_NOT_FOUND, []),
    }


def test_nothing_asked_nothing_done(client: RawClient) -> None:
    assert alter(client) == {}
