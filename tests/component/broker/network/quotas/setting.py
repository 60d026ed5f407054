"""Quotas for clients of a node."""

from __future__ import annotations

from ottla.wire.types import AlterClientQuotasRequest
from tests.component.broker.raw_client import RawClient


def set_quota(client: RawClient, key: str, value: float | None, **entity: str | None) -> None:
    kind = AlterClientQuotasRequest
    parts = tuple(kind.EntityData(part.replace("_", "-"), name) for part, name in entity.items())
    change = kind.OpData(key, value or 0.0, value is None)
    answer = client.connect("admin").ask(kind((kind.EntryData(parts, (change,)),)), 1)
    assert answer.entries[0].error_code == 0, answer
