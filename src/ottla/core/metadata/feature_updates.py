"""UpdateFeatures: the levels of features go up, or down where that loses nothing. All updates or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ottla.core.metadata import features
from ottla.core.metadata.checks import check_cluster_access
from ottla.core.metadata.context import Context, ControllerState, KRaftUpgrade, Result
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import BROKER, CLUSTER_DEFAULT
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import ConfigRecord, FeatureLevelRecord, NoOpRecord
from ottla.wire.types.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesRequestFeatureUpdateKey,
    UpdateFeaturesResponse,
)

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
_UPGRADE_TYPES_FROM_VERSION: Final = 1
_RESULTS_UP_TO_VERSION: Final = 1
_MIN_ISR: Final = "min.insync.replicas"


def update_features(state: ControllerState, request: UpdateFeaturesRequest, context: Context) -> Result:
    """UpdateFeatures."""
    check_cluster_access(context, Operation.ALTER)
    updates = {update.feature: update for update in request.feature_updates}
    current = {**state.image.features, features.KRAFT_VERSION: context.kraft_version}
    proposed = {**current, **{name: update.max_version_level for name, update in updates.items()}}
    records: list[Versioned] = []
    for name, update in updates.items():
        level = update.max_version_level
        _check_update(state, name, level, current.get(name, 0), _upgrade_type(update, context), proposed)
        if name == features.KRAFT_VERSION:
            # The quorum keeps the level. As in Apache Kafka, a record without content shows that it was asked for.
            records.append(Versioned(NoOpRecord(), 0))
        else:
            records.append(Versioned(FeatureLevelRecord(name, level), 0))
    if proposed.get(features.ELR_VERSION, 0) > 0 and features.ELR_VERSION in updates:
        records = [*_elr_records(state), *records]
    kraft_version = proposed[features.KRAFT_VERSION]
    upgrade = KRaftUpgrade(kraft_version, request.validate_only) if kraft_version > context.kraft_version else None
    return Result(() if request.validate_only else tuple(records), _reply(request, context), kraft_upgrade=upgrade)


def _upgrade_type(update: UpdateFeaturesRequestFeatureUpdateKey, context: Context) -> int:
    if context.api_version >= _UPGRADE_TYPES_FROM_VERSION:
        return update.upgrade_type
    return SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE


def _reply(request: UpdateFeaturesRequest, context: Context) -> UpdateFeaturesResponse:
    kind = UpdateFeaturesResponse
    if context.api_version > _RESULTS_UP_TO_VERSION:
        return kind(error_message=None)
    results = tuple(kind.UpdatableFeatureResult(update.feature, 0, "NONE") for update in request.feature_updates)
    return kind(error_message=None, results=results)


def _check_update(
    state: ControllerState, name: str, level: int, current: int, upgrade_type: int, proposed: Mapping[str, int]
) -> None:
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(name, level, "A feature version cannot be less than 0.")
    _check_supported(state, name, level)
    if level < current and upgrade_type == UPGRADE:
        raise _invalid(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either "
            "safe or unsafe downgrade.",
        )
    if level > current and upgrade_type != UPGRADE:
        raise _invalid(name, level, "Can't downgrade to a newer version.")
    if name == features.METADATA_VERSION:
        _check_metadata_downgrade(level, current, is_safe=upgrade_type == SAFE_DOWNGRADE)
    elif name == features.KRAFT_VERSION and level < current:
        raise _invalid(name, level, "Can't downgrade the version of this feature.")
    try:
        features.check_dependencies(name, level, proposed)
    except features.FeatureError as error:
        raise _invalid(name, level, str(error)) from None


def _check_supported(state: ControllerState, name: str, level: int) -> None:
    if name not in state.settings.supported_features:
        if not level:  # nobody need support what is off
            raise _invalid(name, level, f"Feature {name} not found.")
        raise _invalid(name, level, f"Local controller {state.settings.node_id} does not support this feature.")
    for who, supported in _nodes(state):
        low, high = supported.get(name, (0, 0))
        if not low <= level <= high:
            raise _invalid(name, level, f"{who} only supports versions {low}-{high}")


def _nodes(state: ControllerState) -> Iterator[tuple[str, Mapping[str, tuple[int, int]]]]:
    yield f"Local controller {state.settings.node_id}", state.settings.supported_features
    for broker in state.image.brokers.values():
        yield f"Broker {broker.broker_id}", broker.features
    for controller in state.image.controllers.values():
        yield f"Controller {controller.controller_id}", controller.features


def _check_metadata_downgrade(level: int, current: int, *, is_safe: bool) -> None:
    """Going down is possible as long as no step on the way has changed the records."""
    if not any(features.METADATA_VERSIONS[step].changes_records for step in range(level + 1, current + 1)):
        return
    reason = (
        "Refusing to perform the requested downgrade because it might delete metadata information."
        if is_safe
        else "Unsafe metadata downgrade is not supported in this version."
    )
    raise _refused(f"Unsupported {features.METADATA_VERSION} downgrade from {current} to {level}. {reason}")


def _elr_records(state: ControllerState) -> list[Versioned]:
    """ELR needs one min.insync.replicas for the whole cluster, and none for single brokers."""
    records = []
    if _MIN_ISR not in state.image.configs(BROKER, CLUSTER_DEFAULT):
        value = str(state.settings.min_insync_replicas)
        records.append(Versioned(ConfigRecord(BROKER, CLUSTER_DEFAULT, _MIN_ISR, value), 0))
    own = [name for name in state.image.config_resources(BROKER) if name != CLUSTER_DEFAULT]
    with_own = [name for name in own if _MIN_ISR in state.image.configs(BROKER, name)]
    return records + [Versioned(ConfigRecord(BROKER, name, _MIN_ISR, None), 0) for name in with_own]


def _invalid(name: str, level: int, reason: str) -> Reject:
    return _refused(f"Invalid update version {level} for feature {name}. {reason}")


def _refused(reason: str) -> Reject:
    """In the words that kafka-features is known to print."""
    return Reject(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"The update failed for all features since the following feature had an error: {reason}",
    )
