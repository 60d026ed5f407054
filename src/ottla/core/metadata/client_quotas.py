"""Client quotas: who is limited, and to what. AlterClientQuotas, and what DescribeClientQuotas finds in the image.

An entity is a user, a client id, both together, or an address (`ip`) alone; the name None stands for all who have none
of their own. Limits are kept as they were given; what they do is the broker's business (`ottla.broker.network.quotas`).
"""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ottla.core.metadata.checks import check_cluster_access, check_size
from ottla.core.metadata.context import Context, ControllerState, Result
from ottla.core.metadata.image import MetadataImage, QuotaEntity
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.reject import Reject
from ottla.wire.types.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
)
from ottla.wire.types.cluster_metadata import ClientQuotaRecord
from ottla.wire.types.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasRequestComponentData,
)

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

_WHOLE_MAX: Final = {PRODUCER_BYTE_RATE: 2**63, CONSUMER_BYTE_RATE: 2**63, CONNECTION_CREATION_RATE: 2**31 - 1}
"""Limits that must be whole numbers, and the largest of each."""
_FRACTION_MAX: Final = 1e-6
_OF_CLIENTS: Final = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE})
_OF_ADDRESSES: Final = frozenset({CONNECTION_CREATION_RATE})

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2


# --- changing


def alter_client_quotas(state: ControllerState, request: AlterClientQuotasRequest, context: Context) -> Result:
    """AlterClientQuotas: each entity is changed or refused on its own; what is changed is one batch."""
    check_cluster_access(context, Operation.ALTER_CONFIGS)
    counts = Counter(_entity(entry) for entry in request.entries)
    by_entity = {_entity(entry): entry for entry in request.entries}
    records: list[Versioned] = []
    kind = AlterClientQuotasResponse
    results = []
    for entity, entry in by_entity.items():
        parts = tuple(kind.EntityData(*part) for part in entity)
        try:
            if counts[entity] > 1:
                raise _invalid("The request names the entity more than once.")
            new = list(_changes(entity, entry, state.image.quotas.get(entity, {})))
            check_size(len(records) + len(new))
        except Reject as reject:
            results.append(kind.EntryData(reject.code, reject.message, parts))
        else:
            records += new
            results.append(kind.EntryData(error_message=None, entity=parts))
    return Result(() if request.validate_only else tuple(records), kind(entries=tuple(results)))


def refuse_alter_client_quotas(request: AlterClientQuotasRequest, reject: Reject) -> AlterClientQuotasResponse:
    kind = AlterClientQuotasResponse
    return kind(
        entries=tuple(
            kind.EntryData(reject.code, reject.message, tuple(kind.EntityData(*part) for part in _entity(entry)))
            for entry in request.entries
        )
    )


def _entity(entry: AlterClientQuotasRequestEntryData) -> QuotaEntity:
    return tuple(sorted({part.entity_type: part.entity_name for part in entry.entity}.items()))


def _changes(
    entity: QuotaEntity, entry: AlterClientQuotasRequestEntryData, present: Mapping[str, float]
) -> Iterator[Versioned]:
    """The records of an entry: those that change something."""
    keys = _keys_of(dict(entity))
    if len({op.key for op in entry.ops}) != len(entry.ops):
        raise _invalid("The request names a limit of the entity more than once.")
    parts = tuple(ClientQuotaRecord.EntityData(*part) for part in entity)
    for op in entry.ops:
        if op.remove:
            if op.key in present:
                yield Versioned(ClientQuotaRecord(parts, op.key, remove=True), 0)
            continue
        _check_limit(keys, op.key, op.value)
        if present.get(op.key) != op.value:
            yield Versioned(ClientQuotaRecord(parts, op.key, op.value), 0)


def _keys_of(entity: Mapping[str, str | None]) -> frozenset[str]:
    """The limits that an entity can have; rejects one that cannot be."""
    if not entity:
        raise _invalid("An entity without a part cannot have quotas.")
    for part, name in entity.items():
        if part not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Quotas are for {USER}, {CLIENT_ID} and {IP}; there is no entity type '{part}'.")
        if name == "":
            raise _invalid(f"The name of {part} is empty; null stands for the default.")
    if IP not in entity:
        return _OF_CLIENTS
    if len(entity) > 1:
        raise _invalid(f"An entity of the type {IP} stands alone.")
    _check_address(entity[IP])
    return _OF_ADDRESSES


def _check_address(text: str | None) -> None:
    try:
        if text is not None:
            ipaddress.ip_address(text)
    except ValueError:
        raise _invalid(f"'{text}' is no address: give the numbers of one, since names are not looked up.") from None


def _check_limit(keys: frozenset[str], key: str, value: float) -> None:
    if key not in keys:
        raise _invalid(f"An entity of this type has no limit '{key}'; it can have {', '.join(sorted(keys))}.")
    if not value > 0:  # nor is it, if it is no number
        raise _invalid(f"{key} must be more than 0.")
    largest = _WHOLE_MAX.get(key)
    if largest is None:
        return
    if value > largest:
        raise _invalid(f"{key} is more than {largest}.")
    if math.fmod(value, 1.0) > _FRACTION_MAX:
        raise _invalid(f"{key} must be a whole number.")


def _invalid(message: str) -> Reject:
    return Reject(ErrorCode.INVALID_REQUEST, message)


# --- finding


def matching_quotas(
    image: MetadataImage, request: DescribeClientQuotasRequest
) -> list[tuple[QuotaEntity, Mapping[str, float]]]:
    """The entities that a filter lets through, with their limits. Rejects a filter that cannot be."""
    wanted = _conditions(request.components)
    return [
        (entity, limits)
        for entity, limits in image.quotas.items()
        if (not request.strict or len(entity) == len(wanted)) and _is_match(dict(entity), wanted)
    ]


_Condition = tuple[int, str | None]


def _is_match(entity: Mapping[str, str | None], wanted: Mapping[str, _Condition]) -> bool:
    return all(part in entity and (how == _ANY or entity[part] == name) for part, (how, name) in wanted.items())


def _conditions(components: Iterable[DescribeClientQuotasRequestComponentData]) -> dict[str, _Condition]:
    wanted: dict[str, _Condition] = {}
    for component in components:
        _check_component(component, wanted)
        wanted[component.entity_type] = (component.match_type, component.match)
    if IP in wanted and len(wanted) > 1:
        raise _invalid(f"An entity of the type {IP} stands alone, so no filter can ask for more.")
    return wanted


def _check_component(component: DescribeClientQuotasRequestComponentData, before: Mapping[str, _Condition]) -> None:
    part = component.entity_type
    if not part:
        raise _invalid("An entity type is empty.")
    if part in before:
        raise _invalid(f"The filter names the entity type {part} more than once.")
    if part not in (USER, CLIENT_ID, IP):
        raise Reject(ErrorCode.UNSUPPORTED_VERSION, f"There is no entity type '{part}'.")
    if component.match_type not in (_EXACT, _DEFAULT, _ANY):
        raise _invalid(f"There is no match type {component.match_type}.")
    if component.match_type == _EXACT and component.match is None:
        raise _invalid("A filter for a certain name needs the name.")
    if component.match_type != _EXACT and component.match is not None:
        raise _invalid("Only a filter for a certain name can have a name.")
