"""Thousands of requests about quotas and credentials, sound and unsound, to both brokers: the same codes, the same end.

docs/reference/differences.md lists what is left out of the comparison: texts, numbers that are none, names of hosts, an
empty salted password, and entities that one request names twice.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.wire.types import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    DescribeClientQuotasRequest,
    DescribeUserScramCredentialsRequest,
)
from tests.component.broker.raw_client import READY_ATTEMPTS, RawClient
from tests.interop.node.brokers import APACHE, OTTLA, node_of

ROUNDS = 400
PARTS = ("user", "client-id", "ip", "group", "")
NAMES = ("a", "b", "10.0.0.1", "::1", "", None, "ünï", "x" * 300)
KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
    "nothing",
    "",
)
VALUES = (1e9, 2e9, 3e12, 0.0, -1.0, 1_000_000.5, 1e30, float("inf"), 2.0**31, 2.0**63)


@pytest.fixture(scope="module")
def clients(apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawClient, RawClient]]:
    """Ours and theirs."""
    with (
        node_of(OTTLA, tmp_path_factory.mktemp("ottla")) as ours,
        node_of(APACHE, tmp_path_factory.mktemp("apache")) as theirs,
    ):
        pair = RawClient.at(ours.bootstrap_servers), RawClient.at(theirs.bootstrap_servers)
        yield pair
        for client in pair:
            client.close_all()
        assert "Traceback" not in ours.log, ours.log


def quota_change(draw: random.Random) -> AlterClientQuotasRequest:
    kind = AlterClientQuotasRequest
    entries = {}
    for _ in range(draw.randint(0, 3)):
        parts = {draw.choice(PARTS): draw.choice(NAMES) for _ in range(draw.randint(0, 2))}
        if parts.get("ip", "") not in ("10.0.0.1", "::1", "", None):
            continue  # the name of a host
        ops = tuple(
            kind.OpData(draw.choice(KEYS), draw.choice(VALUES), draw.random() < 0.3) for _ in range(draw.randint(0, 3))
        )
        entity = tuple(kind.EntityData(*part) for part in parts.items())
        entries[frozenset(parts.items())] = kind.EntryData(entity, ops)
    return kind(tuple(entries.values()), draw.random() < 0.1)


def quota_filter(draw: random.Random) -> DescribeClientQuotasRequest:
    kind = DescribeClientQuotasRequest
    components = tuple(
        kind.ComponentData(draw.choice(PARTS), draw.choice((0, 1, 2, 2, 3, -1)), draw.choice(NAMES))
        for _ in range(draw.randint(0, 3))
    )
    return kind(components, draw.random() < 0.5)


def credential_change(draw: random.Random) -> AlterUserScramCredentialsRequest:
    kind, users, mechanisms = AlterUserScramCredentialsRequest, ("a", "b", "c", "", "ünï"), (1, 2, 0, 3, -1)
    deletions = [(draw.choice(users), draw.choice(mechanisms)) for _ in range(draw.randint(0, 2))]
    upsertions = [
        (
            draw.choice(users),
            draw.choice(mechanisms),
            draw.choice((4096, 16384, 4095, 16385, -1)),
            draw.randbytes(5),
            b"p",
        )
        for _ in range(draw.randint(0, 2))
    ]
    return kind(
        tuple(kind.ScramCredentialDeletion(*each) for each in deletions),
        tuple(kind.ScramCredentialUpsertion(*each) for each in upsertions),
    )


def users_asked(draw: random.Random) -> DescribeUserScramCredentialsRequest:
    kind = DescribeUserScramCredentialsRequest
    names = tuple(kind.UserName(draw.choice("abcd")) for _ in range(draw.randint(0, 3)))
    return kind(draw.choice((names, names, None)))


def essence(answer: Any) -> Any:
    """What must be equal: everything but texts and order."""
    if isinstance(answer, tuple):
        return sorted(map(essence, answer), key=repr)
    if hasattr(answer, "__struct_fields__"):
        return {
            field: essence(getattr(answer, field))
            for field in answer.__struct_fields__
            if field not in ("error_message", "unknown_tags")
        }
    return answer


def agree(ours: RawClient, theirs: RawClient, message: Any, version: int) -> None:
    assert essence(ours.ask(message, version)) == essence(theirs.ask(message, version)), message


def await_agreement(ours: RawClient, theirs: RawClient, message: Any, version: int) -> None:
    """Apache Kafka's broker learns of changes a little later."""
    wanted = essence(ours.ask(message, version))
    for _ in range(READY_ATTEMPTS):
        if essence(theirs.ask(message, version)) == wanted:
            return
    agree(ours, theirs, message, version)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_changes(clients: tuple[RawClient, RawClient], seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(ROUNDS):
        agree(*clients, quota_change(draw), draw.choice((0, 1)))
        agree(*clients, credential_change(draw), 0)
    await_agreement(*clients, DescribeClientQuotasRequest(), 1)
    await_agreement(*clients, DescribeUserScramCredentialsRequest(None), 0)


@pytest.mark.parametrize("seed", [4, 5])
def test_questions(clients: tuple[RawClient, RawClient], seed: int) -> None:
    draw = random.Random(seed)
    await_agreement(*clients, DescribeClientQuotasRequest(), 1)
    await_agreement(*clients, DescribeUserScramCredentialsRequest(None), 0)
    for _ in range(ROUNDS):
        agree(*clients, quota_filter(draw), draw.choice((0, 1)))
        agree(*clients, users_asked(draw), 0)
