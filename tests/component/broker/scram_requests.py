"""SCRAM credentials: altered and described."""

from __future__ import annotations

from ottla.wire.types import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from tests.component.broker.raw_client import READY_ATTEMPTS, RawClient

SHA_256, SHA_512 = 1, 2
Upsertion = tuple[str, int, int, bytes, bytes]
Deletion = tuple[str, int]


def upsertion(user: str, mechanism: int = SHA_256, iterations: int = 4096) -> Upsertion:
    return user, mechanism, iterations, b"salt" * 4, b"salted" * 6


def alter(client: RawClient, *upsertions: Upsertion, deletions: tuple[Deletion, ...] = ()) -> dict[str, int]:
    kind = AlterUserScramCredentialsRequest
    request = kind(
        tuple(kind.ScramCredentialDeletion(*each) for each in deletions),
        tuple(kind.ScramCredentialUpsertion(*each) for each in upsertions),
    )
    answer = client.ask(request, 0)
    assert all(bool(each.error_message) == bool(each.error_code) for each in answer.results)
    return {each.user: each.error_code for each in answer.results}


Described = dict[str, tuple[int, list[tuple[int, int]]]]


def describe(client: RawClient, *users: str, of_all: bool = False) -> Described:
    kind = DescribeUserScramCredentialsRequest
    answer = client.ask(kind(None if of_all else tuple(map(kind.UserName, users))), 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        each.user: (each.error_code, sorted((one.mechanism, one.iterations) for one in each.credential_infos))
        for each in answer.results
    }


def await_users(client: RawClient, wanted: Described) -> None:
    """Apache Kafka's brokers learn of a change a little after the controller has made it."""
    for _ in range(READY_ATTEMPTS):
        if describe(client, *wanted) == wanted:
            return
    raise AssertionError(f"{wanted} never is so")
