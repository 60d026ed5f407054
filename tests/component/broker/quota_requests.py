"""Quotas of clients: altered and described."""

from __future__ import annotations

from ottla.wire.types import AlterClientQuotasRequest, DescribeClientQuotasRequest
from ottla.wire.types.alter_client_quotas import AlterClientQuotasRequestEntryData
from tests.component.broker.raw_client import READY_ATTEMPTS, RawClient

Entity = dict[str, str | None]
Entry = AlterClientQuotasRequestEntryData
Component = tuple[str, int, str | None]


def entry(entity: Entity, **limits: float | None) -> Entry:
    kind = AlterClientQuotasRequest
    parts = tuple(kind.EntityData(part, each) for part, each in entity.items())
    return Entry(parts, tuple(kind.OpData(key, value or 0.0, value is None) for key, value in limits.items()))


def alter(client: RawClient, *entries: Entry, version: int = 1, only: bool = False) -> list[int]:
    answer = client.ask(AlterClientQuotasRequest(entries, only), version)
    assert answer.throttle_time_ms == 0
    return [each.error_code for each in answer.entries]


def describe(
    client: RawClient, *components: Component, strict: bool = True, version: int = 1
) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    kind = DescribeClientQuotasRequest
    answer = client.ask(kind(tuple(kind.ComponentData(*each) for each in components), strict), version)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        tuple(sorted((part.entity_type, part.entity_name) for part in each.entity)): {
            value.key: value.value for value in each.values
        }
        for each in answer.entries
    }


def await_limits(client: RawClient, user: str, limits: dict[str, float]) -> None:
    """Apache Kafka's brokers learn of a change a little after the controller has made it."""
    for _ in range(READY_ATTEMPTS):
        if describe(client, ("user", 0, user)) == ({(("user", user),): limits} if limits else {}):
            return
    raise AssertionError(f"{user} never has {limits}")
