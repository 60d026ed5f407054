"""Describe- and AlterUserScramCredentials, as clients see them; Apache Kafka answers alike (tests/interop/admin)."""

from __future__ import annotations

from itertools import count

import pytest

from ottla.wire.errors import ErrorCode
from tests.unit.broker.desk import Desk
from tests.unit.broker.scram_requests import SHA_256, SHA_512, alter, await_users, describe, upsertion

_serial = count()


def name() -> str:
    return f"user-{next(_serial)}"


def test_credentials_come_and_go(desk: Desk) -> None:
    ann, bob = name(), name()
    assert alter(desk, upsertion(ann), upsertion(bob, SHA_512, 16384)) == {ann: 0, bob: 0}
    await_users(desk, {ann: (0, [(SHA_256, 4096)]), bob: (0, [(SHA_512, 16384)])})
    assert alter(desk, upsertion(ann, SHA_512, 5000)) == {ann: 0}
    await_users(desk, {ann: (0, [(SHA_256, 4096), (SHA_512, 5000)])})
    assert {ann, bob} <= set(describe(desk, of_all=True))
    assert describe(desk) == describe(desk, of_all=True)
    assert alter(desk, deletions=((ann, SHA_256),)) == {ann: 0}
    await_users(desk, {ann: (0, [(SHA_512, 5000)])})
    assert alter(desk, deletions=((ann, SHA_512), (bob, SHA_512))) == {ann: 0, bob: 0}
    await_users(desk, {ann: (ErrorCode.RESOURCE_NOT_FOUND, [])})


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
def test_what_cannot_be_is_refused(desk: Desk, mechanism: int, iterations: int, code: ErrorCode) -> None:
    user = name()
    assert alter(desk, upsertion(user, mechanism, iterations)) == {user: code}


def test_a_user_must_have_a_name(desk: Desk) -> None:
    assert alter(desk, upsertion("")) == {"": ErrorCode.UNACCEPTABLE_CREDENTIAL}
    assert alter(desk, deletions=(("", SHA_256),)) == {"": ErrorCode.UNACCEPTABLE_CREDENTIAL}


def test_what_is_not_there_cannot_be_deleted(desk: Desk) -> None:
    user = name()
    assert alter(desk, deletions=((user, SHA_256),)) == {user: ErrorCode.RESOURCE_NOT_FOUND}
    assert alter(desk, deletions=((user, 9),)) == {user: ErrorCode.UNSUPPORTED_SASL_MECHANISM}


def test_one_change_for_a_user_in_a_request(desk: Desk) -> None:
    user = name()
    assert alter(desk, upsertion(user)) == {user: 0}
    twice = {user: ErrorCode.DUPLICATE_RESOURCE}
    assert alter(desk, upsertion(user), upsertion(user, SHA_512)) == twice
    assert alter(desk, upsertion(user, SHA_512), deletions=((user, SHA_256),)) == twice
    assert alter(desk, deletions=((user, SHA_512), (user, SHA_256))) == {user: ErrorCode.RESOURCE_NOT_FOUND}


def test_who_is_described_twice_or_not_known(desk: Desk) -> None:
    ann, bob = name(), name()
    assert alter(desk, upsertion(ann)) == {ann: 0}
    await_users(desk, {ann: (0, [(SHA_256, 4096)])})
    assert describe(desk, ann, bob, ann) == {
        ann: (ErrorCode.DUPLICATE_RESOURCE, []),
        bob: (ErrorCode.RESOURCE_NOT_FOUND, []),
    }


def test_nothing_asked_nothing_done(desk: Desk) -> None:
    assert alter(desk) == {}
