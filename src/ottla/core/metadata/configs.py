"""AlterConfigs and IncrementalAlterConfigs: settings of topics, brokers, groups and client metrics.

What is allowed comes from the rules (see `ConfigRules`); here are the semantics of the requests, the order of the
checks, and what eligible leader replicas forbid: with them, min.insync.replicas decides about committed records, so
it must be the same on all brokers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.core.metadata import features
from ottla.core.metadata.checks import check_has_name, check_single, check_size, check_values
from ottla.core.metadata.context import Context, ControllerState, Result
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import BROKER, CLIENT_METRICS, CLUSTER_DEFAULT, GROUP, TOPIC
from ottla.core.metadata.topic_names import check_topic_name
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.wire.types.cluster_metadata import ClearElrRecord, ConfigRecord
from ottla.wire.types.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
VALUE_BYTES_MAX: Final = 32_767
MIN_ISR: Final = "min.insync.replicas"
CORDONED_DIRS: Final = "cordoned.log.dirs"
DEAD_LETTERS: Final = "errors.deadletterqueue."
"""Begins settings that Apache Kafka has since 4.4."""

_NODE_ID: Final = re.compile(r"[0-9]{1,10}")

Change = Mapping[str, str | None]
"""Key -> its new value; None takes the setting away."""


class Step(NamedTuple):
    """What is to be done with one setting."""

    key: str
    operation: int
    value: str | None


class _Alteration(NamedTuple):
    """What is to be done with one resource. `replaces_all` removes the settings that are not named."""

    resource_type: int
    resource_name: str
    steps: tuple[Step, ...]
    replaces_all: bool


def incremental_alter_configs(
    state: ControllerState, request: IncrementalAlterConfigsRequest, context: Context
) -> Result:
    """IncrementalAlterConfigs: settings are set or removed, or entries of lists added or taken away."""
    alterations = [
        _Alteration(
            resource.resource_type,
            resource.resource_name,
            tuple(Step(config.name, config.config_operation, config.value) for config in resource.configs),
            replaces_all=False,
        )
        for resource in request.resources
    ]
    records, verdicts = _alter(state, alterations, context)
    kind = IncrementalAlterConfigsResponse
    responses = tuple(
        kind.AlterConfigsResourceResponse(code, message, each.resource_type, each.resource_name)
        for each, (code, message) in zip(alterations, verdicts, strict=True)
    )
    return Result(() if request.validate_only else tuple(records), kind(responses=responses))


def alter_configs(state: ControllerState, request: AlterConfigsRequest, context: Context) -> Result:
    """AlterConfigs: a resource gets the settings named and no others."""
    alterations = [
        _Alteration(
            resource.resource_type,
            resource.resource_name,
            tuple(Step(config.name, SET, config.value) for config in resource.configs),
            replaces_all=True,
        )
        for resource in request.resources
    ]
    records, verdicts = _alter(state, alterations, context)
    kind = AlterConfigsResponse
    responses = tuple(
        kind.AlterConfigsResourceResponse(code, message, each.resource_type, each.resource_name)
        for each, (code, message) in zip(alterations, verdicts, strict=True)
    )
    return Result(() if request.validate_only else tuple(records), kind(responses=responses))


def change_records(
    state: ControllerState, resource_type: int, resource_name: str, change: Change, *, is_new: bool
) -> list[Versioned]:
    """The records of a change that the rules allow; Reject what they do not. A new resource is not there yet."""
    current = state.image.configs(resource_type, resource_name)
    # Brokers load files anew even when their names stay the same, so for them every setting named is a change.
    altered = {key: new for key, new in change.items() if resource_type == BROKER or new != current.get(key)}
    for key, new in altered.items():
        _check_setting(state, resource_type, resource_name, key, new)
    _check_name(resource_type, resource_name)
    after = {key: new for key, new in {**current, **altered}.items() if new is not None}
    state.rules.check(resource_type, resource_name, after, altered)
    if not is_new:
        _check_exists(state, resource_type, resource_name)
    records = [Versioned(ConfigRecord(resource_type, resource_name, key, new), 0) for key, new in altered.items()]
    if MIN_ISR in altered and state.image.elr_enabled:
        # Who was eligible under the old minimum may not hold all that is committed under the new one.
        records.append(Versioned(ClearElrRecord(resource_name if resource_type == TOPIC else ""), 0))
    return records


_Verdict = tuple[int, str | None]


def _alter(
    state: ControllerState, alterations: Sequence[_Alteration], context: Context
) -> tuple[list[Versioned], list[_Verdict]]:
    counts = Counter((each.resource_type, each.resource_name) for each in alterations)
    records: list[Versioned] = []
    verdicts: list[_Verdict] = []
    for each in alterations:
        try:
            check_single(counts[each.resource_type, each.resource_name])
            new = _alter_resource(state, each, context)
            check_size(len(records) + len(new))
        except Reject as reject:
            verdicts.append((reject.code, reject.message))
        else:
            records += new
            verdicts.append((ErrorCode.NONE, None))
    return records, verdicts


def _alter_resource(state: ControllerState, alteration: _Alteration, context: Context) -> list[Versioned]:
    check_steps(alteration.steps)
    _check_resource(alteration.resource_type, alteration.resource_name)
    _check_access(alteration.resource_type, alteration.resource_name, context)
    current = state.image.configs(alteration.resource_type, alteration.resource_name)
    change: dict[str, str | None] = {
        step.key: _altered(state, alteration.resource_type, current.get(step.key), step) for step in alteration.steps
    }
    if alteration.replaces_all:
        change.update((key, None) for key in current if key not in change)
    return change_records(state, alteration.resource_type, alteration.resource_name, change, is_new=False)


def _altered(state: ControllerState, resource_type: int, current: str | None, step: Step) -> str | None:
    """The value of a setting after a step."""
    if step.operation == SET:
        return step.value
    if step.operation == DELETE:
        return None
    if not state.rules.is_list(resource_type, step.key):
        verb = "appended to" if step.operation == APPEND else "subtracted from"
        raise Reject(ErrorCode.INVALID_CONFIG, f"Nothing can be {verb} {step.key}, which is no list.")
    present = state.rules.default(resource_type, step.key) if current is None else current
    entries = [entry for entry in (present or "").split(",") if entry]
    for entry in (step.value or "").split(","):
        if step.operation == SUBTRACT and entry in entries:
            entries.remove(entry)
        elif step.operation == APPEND and entry and entry not in entries:
            entries.append(entry)
    return ",".join(entries)


# --- checks


def check_steps(steps: Sequence[Step]) -> None:
    """Reject steps that contradict each other, or that nobody can do."""
    if len({step.key for step in steps}) != len(steps):
        raise Reject(ErrorCode.INVALID_REQUEST, "A setting is named twice.")
    check_values(((step.key, step.value) for step in steps if step.operation != DELETE), ErrorCode.INVALID_REQUEST)
    unknown = [step.operation for step in steps if step.operation not in (SET, DELETE, APPEND, SUBTRACT)]
    if unknown:
        raise Reject(ErrorCode.INVALID_REQUEST, f"There is no operation {unknown[0]} on settings.")


def _check_resource(resource_type: int, resource_name: str) -> None:
    if resource_type not in (TOPIC, BROKER, CLIENT_METRICS, GROUP):
        raise Reject(ErrorCode.INVALID_REQUEST, f"Resources of type {resource_type} have no settings to alter here.")
    if resource_type != BROKER or resource_name == CLUSTER_DEFAULT:
        return
    if not _NODE_ID.fullmatch(resource_name):
        raise Reject(ErrorCode.INVALID_REQUEST, f"A broker's id is a number, not {resource_name!r}.")


def _check_access(resource_type: int, resource_name: str, context: Context) -> None:
    kind, name, denied = {
        TOPIC: (ResourceType.TOPIC, resource_name, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        GROUP: (ResourceType.GROUP, resource_name, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    }.get(resource_type, (ResourceType.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    if not context.authorize(Operation.ALTER_CONFIGS, kind, name):
        raise Reject(denied)


def _check_setting(state: ControllerState, resource_type: int, resource_name: str, key: str, value: str | None) -> None:
    if resource_type == BROKER and key == MIN_ISR and state.image.elr_enabled:
        if resource_name != CLUSTER_DEFAULT:
            raise Reject(ErrorCode.INVALID_CONFIG, f"{MIN_ISR} cannot be set for one broker while ELR is on.")
        if value is None:
            raise Reject(ErrorCode.INVALID_CONFIG, f"{MIN_ISR} of the cluster cannot be removed while ELR is on.")
    is_too_early = state.image.metadata_version < features.CORDONED_DIRS_FROM
    if resource_type == BROKER and key == CORDONED_DIRS and is_too_early:
        raise Reject(
            ErrorCode.INVALID_CONFIG,
            f"{CORDONED_DIRS} needs {features.METADATA_VERSION} {features.CORDONED_DIRS_FROM} or later.",
        )
    if key.startswith(DEAD_LETTERS) and value is not None and not _has_dead_letters(state):
        raise Reject(
            ErrorCode.INVALID_CONFIG, f"{key} needs {features.SHARE_VERSION} {features.DEAD_LETTERS_FROM} or later."
        )
    if value is not None and len(value.encode("utf-8", "surrogatepass")) > VALUE_BYTES_MAX:
        raise Reject(ErrorCode.INVALID_CONFIG, f"The value of {key} has more than {VALUE_BYTES_MAX} bytes.")


def _has_dead_letters(state: ControllerState) -> bool:
    return state.image.features.get(features.SHARE_VERSION, 0) >= features.DEAD_LETTERS_FROM


def _check_name(resource_type: int, resource_name: str) -> None:
    check_has_name(resource_type, resource_name)
    if resource_type == TOPIC:
        check_topic_name(resource_name)


def _check_exists(state: ControllerState, resource_type: int, resource_name: str) -> None:
    if resource_type == TOPIC and resource_name not in state.image.topics_by_name:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{resource_name}'.")
    if resource_type == BROKER and resource_name != CLUSTER_DEFAULT:
        node_id = int(resource_name)
        if node_id not in state.image.brokers and node_id not in state.image.controllers:
            raise Reject(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with the id {node_id} is registered.")
