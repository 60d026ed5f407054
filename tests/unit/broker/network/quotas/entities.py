"""Limits of made-up entities."""

from __future__ import annotations

from ottla.broker.network.quotas.limits import ClientLimits
from ottla.core.metadata.client_quotas import CLIENT_ID, USER
from ottla.core.metadata.image import QuotaEntity


def entity(*, user: str | None = "-", client_id: str | None = "-") -> QuotaEntity:
    parts = {USER: user, CLIENT_ID: client_id}
    return tuple(sorted((part, name) for part, name in parts.items() if name != "-"))


def made(*entities: QuotaEntity) -> ClientLimits:
    limits = ClientLimits()
    limits.replace({each: float(number) for number, each in enumerate(entities, 1)})
    return limits
