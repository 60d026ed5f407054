"""Delegation tokens (KIP-48): CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, and their end.

A token lets its holder log in with SCRAM as the token's owner. Its id is public; its secret is an HMAC of the id under
the cluster's secret key, so that the metadata log holds no secrets, and every node with the key can work it out. A
request names a token by its secret. Times are those of the calendar: records tell them.

=====================================================================  =======================================
what is wrong                                                          error
=====================================================================  =======================================
a token for another user, without the right to create those            DELEGATION_TOKEN_AUTHORIZATION_FAILED
a renewer that is no user                                              INVALID_PRINCIPAL_TYPE
the node has no delegation.token.secret.key                            DELEGATION_TOKEN_AUTH_DISABLED
metadata.version is too low                                            UNSUPPORTED_VERSION
no token has this secret                                               DELEGATION_TOKEN_NOT_FOUND
it has expired, and is to live on                                      DELEGATION_TOKEN_EXPIRED
the principal is neither the owner nor one of the renewers             DELEGATION_TOKEN_OWNER_MISMATCH
=====================================================================  =======================================
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from ottla.core.metadata import features
from ottla.core.metadata.context import Context, ControllerState, Result, Steps
from ottla.core.metadata.fault import Reject
from ottla.wire import uuid_text
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import DelegationTokenRecord, RemoveDelegationTokenRecord
from ottla.wire.types.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ottla.wire.types.describe_delegation_token import (
    DescribeDelegationTokenResponseDescribedDelegationToken as DescribedToken,
)
from ottla.wire.types.describe_delegation_token import (
    DescribeDelegationTokenResponseDescribedDelegationTokenRenewer as DescribedRenewer,
)
from ottla.wire.types.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ottla.wire.types.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

USER: Final = "User"
_REQUESTER_FROM_VERSION: Final = 3
_END_OF_TIME_MS: Final = (1 << 63) - 1


class TokenSecrets:
    """The secrets of tokens under a secret key, and back. Soft: worked out when first asked for."""

    __slots__ = ("_by_id", "_ids", "_key")

    def __init__(self, key: str | None) -> None:
        self._key = None if key is None else key.encode()
        self._by_id: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}

    @property
    def is_enabled(self) -> bool:
        return self._key is not None

    def of(self, token_id: str) -> bytes:
        """The secret of a token. Reject if this node has no key."""
        if self._key is None:
            raise Reject(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def find(self, tokens: Mapping[str, DelegationTokenRecord], secret: bytes) -> DelegationTokenRecord | None:
        """The token that has this secret."""
        for token_id in tokens.keys() - self._by_id.keys():
            self._by_id[token_id] = self.of(token_id)
            self._ids[self._by_id[token_id]] = token_id
        for token_id in self._by_id.keys() - tokens.keys():
            del self._ids[self._by_id.pop(token_id)]
        return tokens.get(self._ids.get(secret, ""))


# --- requests


def create_token(state: ControllerState, request: CreateDelegationTokenRequest, context: Context) -> Result:
    """CreateDelegationToken: for the requester himself, or for a user for whom he may."""
    owner = _owner(request, context)
    try:
        _check_creation(state, request, context, owner)
    except Reject as reject:
        return Result((), _creation_reply(request, context, reject.code))
    now_ms, settings = context.wall_ms, state.settings
    lifetime_ms = settings.token_max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    token = DelegationTokenRecord(
        owner=owner,
        requester=context.principal,
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issue_timestamp=now_ms,
        max_timestamp=min(now_ms + lifetime_ms, _END_OF_TIME_MS),
        expiration_timestamp=min(now_ms + min(lifetime_ms, settings.token_expiry_time_ms), _END_OF_TIME_MS),
        token_id=uuid_text(context.new_uuid()),
    )
    reply = msgspec.structs.replace(
        _creation_reply(request, context, ErrorCode.NONE),
        issue_timestamp_ms=token.issue_timestamp,
        expiry_timestamp_ms=token.expiration_timestamp,
        max_timestamp_ms=token.max_timestamp,
        token_id=token.token_id,
        hmac=state.token_secrets.of(token.token_id),
    )
    return Result((Versioned(token, 0),), reply)


def renew_token(state: ControllerState, request: RenewDelegationTokenRequest, context: Context) -> Result:
    """RenewDelegationToken: it lives on, for as long as is usual or as was asked for, but never beyond its end."""
    token = _find(state, request.hmac)
    _check_alive(token, context)
    _check_holder(token, context)
    period_ms = state.settings.token_expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    renewed = _with_expiry(token, context.wall_ms + period_ms)
    reply = RenewDelegationTokenResponse(expiry_timestamp_ms=renewed.expiration_timestamp)
    return Result((Versioned(renewed, 0),), reply)


def expire_token(state: ControllerState, request: ExpireDelegationTokenRequest, context: Context) -> Result:
    """ExpireDelegationToken: it ends sooner than it would, or at once, even if it has expired already."""
    token = _find(state, request.hmac)
    _check_holder(token, context)
    if request.expiry_time_period_ms < 0:
        return Result((_removal(token),), ExpireDelegationTokenResponse(expiry_timestamp_ms=context.wall_ms))
    _check_alive(token, context)
    expiring = _with_expiry(token, context.wall_ms + request.expiry_time_period_ms)
    reply = ExpireDelegationTokenResponse(expiry_timestamp_ms=expiring.expiration_timestamp)
    return Result((Versioned(expiring, 0),), reply)


def expired_tokens(state: ControllerState, wall_ms: int) -> Steps:
    """Removals of tokens that have expired."""
    for token in list(state.image.tokens.values()):
        yield _removal(token) if _has_expired(token, wall_ms) else None


def described_tokens(
    tokens: Mapping[str, DelegationTokenRecord],
    secrets: TokenSecrets,
    owners: Collection[str] | None,
    principal: str,
    authorize: Callable[[Operation, ResourceType, str], bool],
) -> list[DescribedToken]:
    """DescribeDelegationToken: those of these owners, or all, as far as the principal may see them."""

    def is_shown(token: DelegationTokenRecord) -> bool:
        concerned = {token.owner, *token.renewers}
        if owners is not None and not concerned.intersection(owners):
            return False
        return (
            principal in concerned
            or authorize(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
            or authorize(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
        )

    return [_described(token, secrets) for token in tokens.values() if is_shown(token)]


def _described(token: DelegationTokenRecord, secrets: TokenSecrets) -> DescribedToken:
    kind, _, name = token.owner.partition(":")
    requester_kind, _, requester_name = token.requester.partition(":")
    renewers = (renewer.partition(":") for renewer in token.renewers)
    return DescribedToken(
        kind,
        name,
        requester_kind,
        requester_name,
        token.issue_timestamp,
        token.expiration_timestamp,
        token.max_timestamp,
        token.token_id,
        secrets.of(token.token_id),
        tuple(DescribedRenewer(kind, name) for kind, _, name in renewers),
    )


# --- refusals


def refuse_create(request: CreateDelegationTokenRequest, reject: Reject) -> CreateDelegationTokenResponse:
    """An error; nobody is named, since nobody is known to have asked."""
    return CreateDelegationTokenResponse(reject.code)


def refuse_renew(request: RenewDelegationTokenRequest, reject: Reject) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(reject.code)


def refuse_expire(request: ExpireDelegationTokenRequest, reject: Reject) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(reject.code)


# --- parts


def _owner(request: CreateDelegationTokenRequest, context: Context) -> str:
    if not request.owner_principal_name:
        return context.principal
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def _check_creation(
    state: ControllerState, request: CreateDelegationTokenRequest, context: Context, owner: str
) -> None:
    if owner != context.principal and not context.authorize(Operation.CREATE_TOKENS, ResourceType.USER, owner):
        raise Reject(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    if any(renewer.principal_type != USER for renewer in request.renewers):
        raise Reject(ErrorCode.INVALID_PRINCIPAL_TYPE)
    if not state.token_secrets.is_enabled:
        raise Reject(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if state.image.metadata_version < features.DELEGATION_TOKENS_FROM:
        raise Reject(ErrorCode.UNSUPPORTED_VERSION)


def _creation_reply(
    request: CreateDelegationTokenRequest, context: Context, code: int
) -> CreateDelegationTokenResponse:
    requester = context.principal if context.api_version >= _REQUESTER_FROM_VERSION else ":"
    kind, _, name = _owner(request, context).partition(":")
    requester_kind, _, requester_name = requester.partition(":")
    return CreateDelegationTokenResponse(code, kind, name, requester_kind, requester_name)


def _find(state: ControllerState, secret: bytes) -> DelegationTokenRecord:
    if not state.token_secrets.is_enabled:
        raise Reject(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    token = state.token_secrets.find(state.image.tokens, secret)
    if token is None:
        raise Reject(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _check_alive(token: DelegationTokenRecord, context: Context) -> None:
    if _has_expired(token, context.wall_ms):
        raise Reject(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_holder(token: DelegationTokenRecord, context: Context) -> None:
    if context.principal not in (token.owner, *token.renewers):
        raise Reject(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _has_expired(token: DelegationTokenRecord, wall_ms: int) -> bool:
    return min(token.max_timestamp, token.expiration_timestamp) < wall_ms


def _with_expiry(token: DelegationTokenRecord, expiry_ms: int) -> DelegationTokenRecord:
    return msgspec.structs.replace(token, expiration_timestamp=min(token.max_timestamp, expiry_ms))


def _removal(token: DelegationTokenRecord) -> Versioned:
    return Versioned(RemoveDelegationTokenRecord(token.token_id), 0)
