"""Quotas and SCRAM credentials that a cluster is told, and what it shows of them."""

from __future__ import annotations

from typing import Any

from tests.component.broker import quota_requests as quotas
from tests.component.broker import scram_requests as scram
from tests.component.broker.raw_client import RawClient


def change_all(client: RawClient) -> None:
    assert (
        quotas.alter(
            client,
            quotas.entry({"user": "ann"}, producer_byte_rate=1e9, request_percentage=123.25),
            quotas.entry({"user": "ann", "client-id": None}, consumer_byte_rate=2e9),
            quotas.entry({"user": None}, controller_mutation_rate=0.5e9),
            quotas.entry({"ip": "10.0.0.1"}, connection_creation_rate=7e6),
            quotas.entry({"user": "gone"}, producer_byte_rate=1e9),
        )
        == [0] * 5
    )
    assert quotas.alter(client, quotas.entry({"user": "gone"}, producer_byte_rate=None)) == [0]
    quotas.await_limits(client, "gone", {})
    added = scram.alter(client, scram.upsertion("ann"), scram.upsertion("bob", scram.SHA_512, 16384))
    assert added == {"ann": 0, "bob": 0}
    scram.await_users(client, {"ann": (0, [(1, 4096)]), "bob": (0, [(2, 16384)])})


def seen(client: RawClient) -> tuple[Any, Any]:
    return quotas.describe(client, strict=False), scram.describe(client, of_all=True)
