"""Delegation tokens: made, renewed, ended, and removed when they have expired."""

import hashlib
import hmac
from typing import Any

import pytest

from ottla.core.metadata import features
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.cluster_metadata import DelegationTokenRecord, RemoveDelegationTokenRecord
from ottla.wire.types.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.types.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.types.renew_delegation_token import RenewDelegationTokenRequest
from tests.unit.core.metadata.cluster import Cluster, through_snapshot

KEY = "a secret of the cluster"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LONG_MAX = (1 << 63) - 1
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
SETTINGS = {"token_secret_key": KEY}


@pytest.fixture
def keyed() -> Cluster:
    return Cluster(settings=SETTINGS)


def create(cluster: Cluster, principal: str = ALICE, *, renewers: tuple[str, ...] = (), **fields: Any) -> Any:
    kind = CreateDelegationTokenRequest
    named = tuple(kind.CreatableRenewers(*renewer.split(":")) for renewer in renewers)
    overrides = {name: fields.pop(name) for name in ("authorize", "api_version") if name in fields}
    return cluster.submit(kind(renewers=named, **fields), principal=principal, **overrides)


def renew(cluster: Cluster, secret: bytes, period_ms: int = -1, principal: str = ALICE) -> Any:
    return cluster.submit(RenewDelegationTokenRequest(secret, period_ms), principal=principal)


def expire(cluster: Cluster, secret: bytes, period_ms: int = -1, principal: str = ALICE) -> Any:
    return cluster.submit(ExpireDelegationTokenRequest(secret, period_ms), principal=principal)


def only_token(cluster: Cluster) -> DelegationTokenRecord:
    (token,) = cluster.image.tokens.values()
    return token


def test_a_token_stands_for_who_asked(keyed: Cluster):
    reply = create(keyed, renewers=(BOB,))
    assert reply.error_code == 0
    assert (reply.principal_type, reply.principal_name) == ("User", "alice")
    assert (reply.token_requester_principal_type, reply.token_requester_principal_name) == ("User", "alice")
    assert reply.issue_timestamp_ms == keyed.now_ms
    assert reply.expiry_timestamp_ms == keyed.now_ms + DAY_MS
    assert reply.max_timestamp_ms == keyed.now_ms + 7 * DAY_MS
    assert reply.hmac == hmac.new(KEY.encode(), reply.token_id.encode(), hashlib.sha512).digest()
    assert only_token(keyed) == DelegationTokenRecord(
        ALICE,
        ALICE,
        (BOB,),
        reply.issue_timestamp_ms,
        reply.max_timestamp_ms,
        reply.expiry_timestamp_ms,
        reply.token_id,
    )
    assert create(keyed).token_id != reply.token_id
    keyed.check_law()


@pytest.mark.parametrize(
    ("asked_ms", "life_ms", "first_ms"),
    [(0, 7 * DAY_MS, DAY_MS), (-1, 7 * DAY_MS, DAY_MS), (HOUR_MS, HOUR_MS, HOUR_MS), (99 * DAY_MS, 7 * DAY_MS, DAY_MS)],
)
def test_how_long_a_token_lives(keyed: Cluster, asked_ms: int, life_ms: int, first_ms: int):
    reply = create(keyed, max_lifetime_ms=asked_ms)
    assert reply.max_timestamp_ms - keyed.now_ms == life_ms
    assert reply.expiry_timestamp_ms - keyed.now_ms == first_ms


def test_a_token_for_another_user_needs_a_right(keyed: Cluster):
    asked: list[tuple[Operation, ResourceType, str]] = []

    def refuse(*right: Any) -> bool:
        asked.append(right)
        return False

    for_bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    reply = create(keyed, authorize=refuse, **for_bob)
    assert ErrorCode(reply.error_code) is ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert asked == [(Operation.CREATE_TOKENS, ResourceType.USER, BOB)]
    assert not keyed.image.tokens
    assert create(keyed, **for_bob).error_code == 0
    assert (only_token(keyed).owner, only_token(keyed).requester) == (BOB, ALICE)
    # for oneself nobody is asked
    assert create(keyed, BOB, authorize=refuse, **for_bob).error_code == 0


def test_what_cannot_be_created(keyed: Cluster):
    assert ErrorCode(create(keyed, renewers=("Group:x",)).error_code) is ErrorCode.INVALID_PRINCIPAL_TYPE
    old = Cluster(settings=SETTINGS, levels=features.levels_for_format({features.METADATA_VERSION: 13}))
    assert ErrorCode(create(old).error_code) is ErrorCode.UNSUPPORTED_VERSION


def test_without_a_key_there_are_no_tokens(empty_cluster: Cluster):
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    reply = create(empty_cluster)
    assert (ErrorCode(reply.error_code), reply.principal_name, reply.hmac) == (disabled, "alice", b"")
    assert ErrorCode(renew(empty_cluster, b"x").error_code) is disabled
    assert ErrorCode(expire(empty_cluster, b"x").error_code) is disabled


def test_a_token_is_renewed_until_its_end(keyed: Cluster):
    secret = create(keyed, renewers=(BOB,)).hmac
    begun_ms = keyed.now_ms
    keyed.now_ms += 12 * HOUR_MS
    assert renew(keyed, secret).expiry_timestamp_ms == keyed.now_ms + DAY_MS
    assert renew(keyed, secret, HOUR_MS, BOB).expiry_timestamp_ms == keyed.now_ms + HOUR_MS
    assert renew(keyed, secret, 99 * DAY_MS).expiry_timestamp_ms == keyed.now_ms + DAY_MS
    for _ in range(6):
        keyed.now_ms += DAY_MS
        assert renew(keyed, secret).error_code == 0
    assert only_token(keyed).expiration_timestamp == begun_ms + 7 * DAY_MS
    keyed.now_ms = begun_ms + 7 * DAY_MS + 1
    assert ErrorCode(renew(keyed, secret).error_code) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    keyed.check_law()


def test_a_token_is_ended(keyed: Cluster):
    secret = create(keyed, renewers=(BOB,)).hmac
    assert expire(keyed, secret, HOUR_MS, BOB).expiry_timestamp_ms == keyed.now_ms + HOUR_MS
    assert expire(keyed, secret, 99 * DAY_MS).expiry_timestamp_ms == only_token(keyed).max_timestamp
    assert expire(keyed, secret, 0).expiry_timestamp_ms == keyed.now_ms
    reply = expire(keyed, secret)
    assert (reply.error_code, reply.expiry_timestamp_ms) == (0, keyed.now_ms)
    assert not keyed.image.tokens
    assert ErrorCode(expire(keyed, secret).error_code) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    keyed.check_law()


def test_a_token_that_has_expired_can_be_ended_but_not_prolonged(keyed: Cluster):
    secret = create(keyed).hmac
    keyed.now_ms += 2 * DAY_MS
    assert ErrorCode(expire(keyed, secret, principal=BOB).error_code) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert ErrorCode(expire(keyed, secret, HOUR_MS).error_code) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    reply = expire(keyed, secret)
    assert (reply.error_code, reply.expiry_timestamp_ms) == (0, keyed.now_ms)
    assert not keyed.image.tokens


def test_a_token_may_live_for_ever():
    keyed = Cluster(settings=SETTINGS | {"token_max_lifetime_ms": LONG_MAX, "token_expiry_time_ms": LONG_MAX})
    reply = create(keyed)
    assert (reply.expiry_timestamp_ms, reply.max_timestamp_ms) == (LONG_MAX, LONG_MAX)
    assert renew(keyed, reply.hmac).expiry_timestamp_ms == LONG_MAX
    assert expire(keyed, reply.hmac, LONG_MAX).expiry_timestamp_ms == LONG_MAX


def test_only_owner_and_renewers_may(keyed: Cluster):
    secret = create(keyed, owner_principal_type="User", owner_principal_name="bob", renewers=(CAROL,)).hmac
    for ask in (renew, expire):
        # who has asked for it is nobody to it
        assert ErrorCode(ask(keyed, secret, HOUR_MS).error_code) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert ask(keyed, secret, HOUR_MS, CAROL).error_code == 0
        assert ask(keyed, secret, HOUR_MS, BOB).error_code == 0
        assert ErrorCode(ask(keyed, secret + b"x", HOUR_MS).error_code) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


# --- the timer


def removals(cluster: Cluster) -> list[str]:
    return [each.message.token_id for each in cluster.tick() if isinstance(each.message, RemoveDelegationTokenRecord)]


def test_expired_tokens_are_removed_when_they_are_looked_for(keyed: Cluster):
    first = create(keyed, max_lifetime_ms=HOUR_MS // 2).token_id
    second = create(keyed).token_id
    begun_ms = keyed.now_ms
    assert keyed.controller.next_deadline_ms() is not None
    keyed.now_ms = begun_ms + HOUR_MS - 1
    assert removals(keyed) == []
    keyed.now_ms = begun_ms + HOUR_MS
    assert removals(keyed) == [first]
    assert list(keyed.image.tokens) == [second]
    keyed.now_ms = begun_ms + DAY_MS
    assert removals(keyed) == [], "its last millisecond"
    keyed.now_ms = begun_ms + DAY_MS + HOUR_MS
    assert removals(keyed) == [second]
    keyed.check_law()


def test_the_interval_comes_from_the_settings():
    cluster = Cluster(settings={**SETTINGS, "token_expiry_check_interval_ms": 5_000})
    assert cluster.controller.next_deadline_ms() == cluster.now_ms + 5_000
    create(cluster, max_lifetime_ms=1_000)
    cluster.now_ms += 5_000
    assert len(removals(cluster)) == 1


def test_without_a_key_nobody_looks_for_tokens(keyed: Cluster):
    """A node that lost its key must not remove what it cannot judge."""
    create(keyed, max_lifetime_ms=1)
    keyed.settings = Cluster().settings
    keyed.restart()
    keyed.activate()
    keyed.now_ms += DAY_MS
    assert removals(keyed) == []


def test_a_new_controller_knows_the_tokens_of_the_last_one(keyed: Cluster):
    secret = create(keyed).hmac
    keyed.restart()
    keyed.activate()
    assert renew(keyed, secret, HOUR_MS).error_code == 0
    resumed = through_snapshot(keyed.image)
    assert resumed is not None
    assert resumed.tokens == keyed.image.tokens
