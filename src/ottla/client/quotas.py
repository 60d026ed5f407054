"""Quotas: how much users, clients and addresses may use.

An entity is a map from kinds ("user", "client-id", "ip") to names; None stands for the default of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.client.client import Client, always
from ottla.client.errors import check
from ottla.wire.types.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from ottla.wire.types.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

__all__ = ["Entity", "Quota", "alter_quotas", "describe_quotas"]

Entity = Mapping[str, str | None]

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2
_KINDS: Final = ("user", "client-id", "ip")


class Quota(NamedTuple):
    entity: dict[str, str | None]
    values: dict[str, float]

    @property
    def who(self) -> str:
        """The entity in words."""
        named = [(kind, self.entity[kind]) for kind in _KINDS if kind in self.entity]
        return ", ".join(f"{kind} {name or '(default)'}" for kind, name in named)


async def describe_quotas(client: Client, *kinds: str, entity: Entity | None = None) -> list[Quota]:
    """The quotas of every entity of exactly these kinds, or of one entity; without either, all quotas."""
    component = DescribeClientQuotasRequest.ComponentData
    if entity is None:
        components = tuple(component(kind, _ANY, None) for kind in kinds)
    else:
        components = tuple(component(k, _DEFAULT if name is None else _EXACT, name) for k, name in entity.items())
    request = DescribeClientQuotasRequest(components=components, strict=bool(components))
    answer = await client.ask("DescribeClientQuotas", always(request))
    body = answer.of(DescribeClientQuotasResponse)
    check(answer.peer, "DescribeClientQuotas", body.error_code, message=body.error_message)
    return [
        Quota(
            {part.entity_type: part.entity_name for part in entry.entity},
            {each.key: each.value for each in entry.values},
        )
        for entry in body.entries or ()
    ]


async def alter_quotas(
    client: Client, entity: Entity, changes: Mapping[str, float | None], *, validate_only: bool = False
) -> None:
    """Change quotas of an entity, all or none; None takes one away."""
    kind = AlterClientQuotasRequest
    entry = kind.EntryData(
        entity=tuple(kind.EntityData(*each) for each in entity.items()),
        ops=tuple(kind.OpData(key, 0.0 if value is None else value, value is None) for key, value in changes.items()),
    )
    request = kind(entries=(entry,), validate_only=validate_only)
    answer = await client.ask("AlterClientQuotas", always(request), broker="controller")
    about = ", ".join(f"{each} {name or '(default)'}" for each, name in entity.items())
    for each in answer.of(AlterClientQuotasResponse).entries:
        check(answer.peer, "AlterClientQuotas", each.error_code, about, each.error_message)
