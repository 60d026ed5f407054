"""Delegation tokens: short-lived secrets with which others log in as their owner, without his password."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.client import Client, always
from ottla.client.errors import check
from ottla.wire.types.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ottla.wire.types.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.types.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ottla.wire.types.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

__all__ = ["DelegationToken", "create_token", "describe_tokens", "expire_token", "renew_token"]

_AS_LONG_AS_POSSIBLE = -1


class DelegationToken(NamedTuple):
    """A token. Whoever knows `hmac` can log in with it: SCRAM, with `token_id` as name and `password` as password."""

    token_id: str
    hmac: bytes
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_at_ms: int
    expires_at_ms: int
    ends_at_ms: int
    """After this it cannot be renewed."""

    def __repr__(self) -> str:
        return f"DelegationToken({self.token_id!r}, owner={self.owner!r})"

    @property
    def password(self) -> str:
        return b64encode(self.hmac).decode()


async def create_token(
    client: Client,
    *,
    renewers: Iterable[str] = (),
    max_lifetime_ms: int = _AS_LONG_AS_POSSIBLE,
    owner: str | None = None,
) -> DelegationToken:
    """A new token of this client's user, or of `owner`; principals are written `User:name`."""
    kind = CreateDelegationTokenRequest
    principals = tuple(kind.CreatableRenewers(*_parts(each)) for each in renewers)
    names = tuple(f"{each.principal_type}:{each.principal_name}" for each in principals)
    owner_kind, owner_name = (None, None) if owner is None else _parts(owner)
    request = kind(owner_kind, owner_name, principals, max_lifetime_ms)
    answer = await client.ask("CreateDelegationToken", always(request), broker="controller")
    made = answer.of(CreateDelegationTokenResponse)
    check(answer.peer, "CreateDelegationToken", made.error_code)
    return DelegationToken(
        made.token_id,
        made.hmac,
        f"{made.principal_type}:{made.principal_name}",
        f"{made.token_requester_principal_type}:{made.token_requester_principal_name}",
        names,
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )


async def describe_tokens(client: Client, owners: Iterable[str] | None = None) -> list[DelegationToken]:
    """The tokens of these owners, or all, as far as this client may see them."""
    kind = DescribeDelegationTokenRequest
    asked = None if owners is None else tuple(kind.DescribeDelegationTokenOwner(*_parts(each)) for each in owners)
    answer = await client.ask("DescribeDelegationToken", always(kind(asked)))
    body = answer.of(DescribeDelegationTokenResponse)
    check(answer.peer, "DescribeDelegationToken", body.error_code)
    return [
        DelegationToken(
            each.token_id,
            each.hmac,
            f"{each.principal_type}:{each.principal_name}",
            f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
            tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in each.renewers),
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
        )
        for each in body.tokens
    ]


async def renew_token(client: Client, hmac: bytes, period_ms: int = _AS_LONG_AS_POSSIBLE) -> int:
    """Let a token live on; gives when it expires now."""
    request = RenewDelegationTokenRequest(hmac, period_ms)
    answer = await client.ask("RenewDelegationToken", always(request), broker="controller")
    body = answer.of(RenewDelegationTokenResponse)
    check(answer.peer, "RenewDelegationToken", body.error_code)
    return body.expiry_timestamp_ms


async def expire_token(client: Client, hmac: bytes, after_ms: int = _AS_LONG_AS_POSSIBLE) -> int:
    """Let a token expire after a while, or at once with a negative time; gives when it does."""
    request = ExpireDelegationTokenRequest(hmac, after_ms)
    answer = await client.ask("ExpireDelegationToken", always(request), broker="controller")
    body = answer.of(ExpireDelegationTokenResponse)
    check(answer.peer, "ExpireDelegationToken", body.error_code)
    return body.expiry_timestamp_ms


def _parts(principal: str) -> tuple[str, str]:
    kind, colon, name = principal.partition(":")
    return (kind, name) if colon else ("User", principal)
