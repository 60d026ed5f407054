"""Describe- and AlterUserScramCredentials, as clients see them; Apache Kafka answers alike (tests/interop/admin)."""

from __future__ import annotations

from itertools import count

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.types import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from tests.unit.broker.desk import READY_ATTEMPTS, Desk

SHA_256, SHA_512 = 1, 2
_serial = count()

Upsertion = tuple[str, int, int, bytes, bytes]
Deletion = tuple[str, int]


def name() -> str:
    return f"user-{next(_serial)}"


def upsertion(user: str, mechanism: int = SHA_256, iterations: int = 4096) -> Upsertion:
    return user, mechanism, iterations, b"salt" * 4, b"salted" * 6


def alter(desk: Desk, *upsertions: Upsertion, deletions: tuple[Deletion, ...] = ()) -> dict[str, int]:
    kind = AlterUserScramCredentialsRequest
    request = kind(
        tuple(kind.ScramCredentialDeletion(*each) for each in deletions),
        tuple(kind.ScramCredentialUpsertion(*each) for each in upsertions),
    )
    answer = desk.ask(request, 0)
    assert all(bool(each.error_message) == bool(each.error_code) for each in answer.results)
    return {each.user: each.error_code for each in answer.results}


Described = dict[str, tuple[int, list[tuple[int, int]]]]


def describe(desk: Desk, *users: str, of_all: bool = False) -> Described:
    kind = DescribeUserScramCredentialsRequest
    answer = desk.ask(kind(None if of_all else tuple(map(kind.UserName, users))), 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        each.user: (each.error_code, sorted((one.mechanism, one.iterations) for one in each.credential_infos))
        for each in answer.results
    }


def await_users(desk: Desk, wanted: Described) -> None:
    """Apache Kafka's brokers learn of a change a little after the controller has made it."""
    for _ in range(READY_ATTEMPTS):
        if describe(desk, *wanted) == wanted:
            return
    raise AssertionError(f"{wanted} never is so")


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
