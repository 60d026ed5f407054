"""Settings, quotas, features and delegation tokens: our controller's core beside Apache Kafka's controller."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.types.alter_configs import AlterConfigsRequest
from ottla.wire.types.controller_registration import ControllerRegistrationRequest
from ottla.wire.types.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.types.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.types.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.types.update_features import UpdateFeaturesRequest
from tests.interop.controller.twin import ATTEMPTS, PERIOD_S, TOKEN_CHECK_MS, Twin, uuid

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"


def alter(twin: Twin, kind: int, name: str, *steps: tuple[str, int, str | None], validate_only: bool = False) -> int:
    request = IncrementalAlterConfigsRequest
    resource = request.AlterConfigsResource(kind, name, tuple(request.AlterableConfig(*step) for step in steps))
    return int(twin.ask(request((resource,), validate_only), 1).responses[0].error_code)


def replace(twin: Twin, kind: int, name: str, **settings: str) -> int:
    request = AlterConfigsRequest
    configs = tuple(request.AlterableConfig(key.replace("_", "."), value) for key, value in settings.items())
    return int(twin.ask(request((request.AlterConfigsResource(kind, name, configs),)), 2).responses[0].error_code)


# --- settings


def test_settings_of_one_broker_and_of_all(twin: Twin):
    twin.start(1, 2, 3)
    for name in ("1", "2", "3", ""):
        alter(twin, BROKER, name, ("log.cleaner.threads", SET, "2"))
        alter(twin, BROKER, name, ("log.cleaner.threads", SET, "2"))  # once more, as files are loaded anew
        alter(twin, BROKER, name, ("log.cleaner.threads", SET, "3"), ("log.retention.ms", SET, "1"), validate_only=True)
        alter(twin, BROKER, name, ("log.cleaner.threads", DELETE, None), ("log.retention.ms", SET, "99"))
        alter(twin, BROKER, name, ("log.cleanup.policy", APPEND, "compact"))
        alter(twin, BROKER, name, ("log.cleanup.policy", SUBTRACT, "delete"))
        replace(twin, BROKER, name, log_retention_ms="7", min_insync_replicas="1")
        replace(twin, BROKER, name, log_retention_ms="8")
    for name in ("9", "one", "-1"):
        assert alter(twin, BROKER, name, ("log.retention.ms", SET, "1")) != 0
    alter(twin, BROKER, "", ("min.insync.replicas", SET, "2"))
    alter(twin, BROKER, "", ("min.insync.replicas", DELETE, None))
    alter(twin, BROKER, "2", ("min.insync.replicas", SET, "2"))
    alter(twin, BROKER, "1", ("log.retention.ms", APPEND, "1"))


def test_throttles_of_replication(twin: Twin):
    twin.start(1, 2, 3)
    twin.create("t", (1, 2, 3), (2, 3, 1))
    replicas = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
    for key in replicas:
        for value in ("0:1,1:2", "*", "none", "0:1,1", "0", "", "0:1:2", "a:b"):
            alter(twin, TOPIC, "t", (key, SET, value))
        alter(twin, TOPIC, "t", (key, SET, "0:1"))
        alter(twin, TOPIC, "t", (key, APPEND, "1:2,0:1"))
        alter(twin, TOPIC, "t", (key, SUBTRACT, "0:1"))
        alter(twin, TOPIC, "t", (key, DELETE, None))
        twin.create(f"with-{key}", (1,), **{key: "0:1"})
    rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    for key in (*rates, "replica.alter.log.dirs.io.max.bytes.per.second"):
        for name in ("1", "3", ""):
            alter(twin, BROKER, name, (key, SET, "1000"))
            alter(twin, BROKER, name, (key, DELETE, None))
    assert twin.request_count > 50


# --- quotas


Entry = tuple[dict[str, str | None], dict[str, float | None]]


def quota(twin: Twin, *entries: Entry, validate_only: bool = False) -> Any:
    kind = AlterClientQuotasRequest
    given = tuple(
        kind.EntryData(
            tuple(kind.EntityData(part, name) for part, name in entity.items()),
            tuple(kind.OpData(key, value or 0.0, value is None) for key, value in limits.items()),
        )
        for entity, limits in entries
    )
    return twin.ask(kind(given, validate_only), 1)


def test_client_quotas(twin: Twin):
    rates: dict[str, float | None] = {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0}
    users: list[dict[str, str | None]] = [
        {"user": "alice"},
        {"user": None},
        {"client-id": "c"},
        {"client-id": None},
        {"user": "alice", "client-id": "c"},
        {"user": None, "client-id": None},
        {"user": ""},
    ]
    for entity in users:
        quota(twin, (entity, rates), validate_only=True)
        quota(twin, (entity, rates))
        quota(twin, (entity, {"producer_byte_rate": 5.0, "request_percentage": 12.5, "controller_mutation_rate": 0.5}))
        quota(twin, (entity, {"producer_byte_rate": None, "consumer_byte_rate": None}))
        quota(twin, (entity, {"producer_byte_rate": None}))  # it is not there any more
    for address in ("127.0.0.1", "::1", None):
        quota(twin, ({"ip": address}, {"connection_creation_rate": 7.0}))
        quota(twin, ({"ip": address}, {"producer_byte_rate": 7.0}))
    for entity, limits in (
        ({"user": "alice"}, {"connection_creation_rate": 1.0}),
        ({"user": "alice"}, {"nonsense": 1.0}),
        ({"user": "alice"}, {"producer_byte_rate": -1.0}),
        ({"user": "alice"}, {"producer_byte_rate": 1.5}),
        ({"user": "alice"}, {"producer_byte_rate": 1e30}),
        ({"ip": "127.0.0.1", "user": "alice"}, {"connection_creation_rate": 1.0}),
        ({"group": "g"}, rates),
        ({}, rates),
    ):
        quota(twin, (entity, limits))
    quota(twin, ({"user": "bob"}, rates), ({"user": "carol"}, {"nonsense": 1.0}), ({"client-id": "d"}, rates))


# --- features


def update(twin: Twin, level: int, how: int, *, version: int = 2) -> int:
    kind = UpdateFeaturesRequest
    for validate_only in (True, False):
        key = kind.FeatureUpdateKey("kraft.version", level, upgrade_type=how)
        reply = twin.ask(kind(60_000, (key,), validate_only), version)
    return int(reply.error_code)


def test_kraft_version_goes_up_and_never_down(static_twin: Twin):
    twin = static_twin
    assert update(twin, 0, UPGRADE) == 0
    for level, how in ((2, UPGRADE), (-1, SAFE_DOWNGRADE), (1, SAFE_DOWNGRADE), (1, UNSAFE_DOWNGRADE)):
        assert update(twin, level, how) == ErrorCode.INVALID_UPDATE_VERSION
    assert twin.kraft_version == 0
    register_controller(twin, 7, {"metadata.version": (7, 30), "kraft.version": (0, 0)})
    assert update(twin, 1, UPGRADE) == ErrorCode.INVALID_UPDATE_VERSION
    register_controller(twin, 7, {"metadata.version": (7, 30), "kraft.version": (0, 1)})
    assert update(twin, 1, UPGRADE) == 0
    assert twin.kraft_version == 1
    assert update(twin, 1, UPGRADE) == 0
    for how in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        assert update(twin, 0, how) == ErrorCode.INVALID_UPDATE_VERSION
    twin.start(1)


def register_controller(twin: Twin, controller_id: int, supported: dict[str, tuple[int, int]], **fields: Any) -> None:
    kind = ControllerRegistrationRequest
    features = tuple(kind.Feature(name, *levels) for name, levels in supported.items())
    given = {
        "incarnation_id": uuid(700 + controller_id),
        "listeners": (kind.Listener("CONTROLLER", "127.0.0.1", 7000 + controller_id, 0),),
        **fields,
    }
    twin.ask(kind(controller_id, features=features, **given), 0)


def test_controllers_register(twin: Twin):
    kind = ControllerRegistrationRequest
    supported = {"metadata.version": (7, 30), "kraft.version": (0, 1)}
    register_controller(twin, 7, supported)
    register_controller(twin, 7, supported)
    register_controller(twin, 7, supported, incarnation_id=uuid(1))
    register_controller(twin, 8, supported, zk_migration_ready=True)
    register_controller(twin, 9, {})
    register_controller(twin, 10, {"later.version": (1, 3), **supported})
    register_controller(twin, 11, {"metadata.version": (7, 29)})
    register_controller(twin, 12, supported, listeners=())
    several = (kind.Listener("A", "127.0.0.1", 1, 0), kind.Listener("B", "::1", 65535, 3))
    register_controller(twin, 12, supported, listeners=several)


# --- delegation tokens


def now_ms(_: Any = None) -> int:
    return int(time.time() * 1000)


def create(
    twin: Twin, principal: str = ALICE, *, renewers: tuple[str, ...] = (), version: int = 3, **fields: Any
) -> Any:
    kind = CreateDelegationTokenRequest
    named = tuple(kind.CreatableRenewers(*renewer.split(":")) for renewer in renewers)
    return twin.ask_as(principal, kind(renewers=named, **fields), version, lambda reply: reply.issue_timestamp_ms)


def prolong(twin: Twin, kind: Callable[..., Any], secret: bytes, period_ms: int, principal: str = ALICE) -> int:
    """Renews a token, or lets it end later; the period is so short that it counts."""

    def told(reply: Any) -> int:
        return now_ms() if reply.error_code else int(reply.expiry_timestamp_ms) - max(period_ms, 0)

    return int(twin.ask_as(principal, kind(secret, period_ms), 2, told).error_code)


def await_token(twin: Twin, secret: bytes, code: ErrorCode) -> None:
    """Apache's controller knows of a token, or of its end, only when its own image does, a moment after the answer."""
    for _ in range(ATTEMPTS):
        if twin.pass_on(CAROL, RenewDelegationTokenRequest(secret, 1), 2).error_code == code:
            return
        time.sleep(PERIOD_S)
    raise AssertionError(f"it is never answered with {code.name}")


def test_delegation_tokens(token_twin: Twin):
    twin = token_twin
    create(twin)
    create(twin, version=1)
    create(twin, version=2, max_lifetime_ms=100_000)
    create(twin, owner_principal_type="User", owner_principal_name="bob")
    secret = create(twin, renewers=(BOB,), max_lifetime_ms=3_600_000).hmac
    await_token(twin, secret, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    for kind in (RenewDelegationTokenRequest, ExpireDelegationTokenRequest):
        assert prolong(twin, kind, secret, 60_000) == 0
        assert prolong(twin, kind, secret, 70_000, BOB) == 0
        assert prolong(twin, kind, secret, 70_000, CAROL) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert prolong(twin, kind, b"nothing", 70_000) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert prolong(twin, ExpireDelegationTokenRequest, secret, -1) == 0
    await_token(twin, secret, ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    assert prolong(twin, RenewDelegationTokenRequest, secret, 1) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_expired_tokens_are_removed(token_twin: Twin):
    twin = token_twin
    create(twin, max_lifetime_ms=100_000)
    create(twin, max_lifetime_ms=1)
    twin.wait_for_change(phase_ms=2 * TOKEN_CHECK_MS)
    assert len(twin.image.tokens) == 1


def test_without_a_secret_key_there_are_no_tokens(twin: Twin):
    for version in (1, 2, 3):
        assert create(twin, version=version).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    for kind in (RenewDelegationTokenRequest, ExpireDelegationTokenRequest):
        assert prolong(twin, kind, b"x", 5) == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
