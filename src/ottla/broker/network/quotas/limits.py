"""The limits of clients, and which one a request counts against.

Limits can be set for a user and a client id together, for a user, and for a client id, and for each a default. The most
special one holds, in this order: user and client id; user and any client id; user; any user and client id; any user and
any client id; any user; client id; any client id. All clients that an entity names share its rate; a default gives each
client a rate of its own. A client without a client id has no limits of client ids. A bound that is infinite or not a
number means no limit, also where a default would apply.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.core.metadata.client_quotas import CLIENT_ID, USER
from ottla.core.metadata.image import QuotaEntity

__all__ = ["FOUND_MAX", "ClientLimits", "Limit", "Tags"]

FOUND_MAX: Final = 10_000
"""Pairs of user and client id whose limit is remembered; with more, all are looked up anew."""

Tags = tuple[str, str]
"""User and client id by which a rate is kept; "" for one that does not matter."""


class Limit(NamedTuple):
    tags: Tags
    bound: float


class ClientLimits:
    """All limits of one kind."""

    def __init__(self) -> None:
        self._by_entity: Mapping[QuotaEntity, float] = {}
        self._found: dict[Tags, Limit | None] = {}

    def __bool__(self) -> bool:
        return bool(self._by_entity)

    def replace(self, by_entity: Mapping[QuotaEntity, float]) -> None:
        self._by_entity = by_entity
        self._found = {}

    def of(self, user: str, client_id: str) -> Limit | None:
        """The limit of a user and client id, if there is one."""
        key = (user, client_id)
        if key in self._found:
            return self._found[key]
        if len(self._found) >= FOUND_MAX:
            self._found = {}
        limit = self._found[key] = self._find(user, client_id)
        return limit

    def _find(self, user: str, client_id: str) -> Limit | None:
        for entity, tags in _candidates(user, client_id):
            bound = self._by_entity.get(entity)
            if bound is not None:
                return Limit(tags, bound) if math.isfinite(bound) else None
        return None


def _candidates(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, Tags]]:
    for name in (user, None):
        if client_id:
            yield ((CLIENT_ID, client_id), (USER, name)), (user, client_id)
            yield ((CLIENT_ID, None), (USER, name)), (user, client_id)
        yield ((USER, name),), (user, "")
    if client_id:
        yield ((CLIENT_ID, client_id),), ("", client_id)
        yield ((CLIENT_ID, None),), ("", client_id)
