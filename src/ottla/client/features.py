"""Features of a cluster: what its nodes could do, what they have agreed on, and how to change that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.client.client import Client
from ottla.client.errors import check
from ottla.wire.types.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.types.update_features import UpdateFeaturesRequest, UpdateFeaturesRequestFeatureUpdateKey

__all__ = ["UNSAFE_DOWNGRADE", "UPGRADE", "Feature", "describe_features", "finalized_levels", "update_features"]

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
_TIMEOUT_MS: Final = 60_000


class Feature(NamedTuple):
    """A feature with the levels that every node supports, and the one that holds (0: off)."""

    name: str
    supported_low: int
    supported_high: int
    finalized: int

    @property
    def can_rise(self) -> bool:
        return self.finalized < self.supported_high


async def describe_features(client: Client) -> list[Feature]:
    """By name; what only some of the nodes know is left out."""
    answers = [await _ask(client, node_id) for node_id in sorted(client.metadata.brokers)]
    ranges = [{each.name: (each.min_version, each.max_version) for each in one.supported_features} for one in answers]
    common = set.intersection(*map(set, ranges)) if ranges else set()
    levels = _levels(answers[0]) if answers else {}
    return [
        Feature(
            name,
            max(one[name][0] for one in ranges),
            min(one[name][1] for one in ranges),
            levels.get(name, 0),
        )
        for name in sorted(common)
    ]


async def finalized_levels(client: Client) -> dict[str, int]:
    """The level of each feature that is on, as any broker tells it."""
    return _levels(await _ask(client))


def _levels(answer: ApiVersionsResponse) -> dict[str, int]:
    return {each.name: each.max_version_level for each in answer.finalized_features}


async def _ask(client: Client, node_id: int | None = None) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version="0")
    answer: ApiVersionsResponse = await client.send(request, broker=node_id)
    check(None, "ApiVersions", answer.error_code)
    return answer


async def update_features(
    client: Client, levels: Mapping[str, int], *, upgrade_type: int = UPGRADE, validate_only: bool = False
) -> None:
    """Set levels, all of them or none. ResponseError says which one cannot be."""
    updates = tuple(
        UpdateFeaturesRequestFeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
        for name, level in levels.items()
    )
    answer = await client.send(UpdateFeaturesRequest(_TIMEOUT_MS, updates, validate_only), broker="controller")
    check(None, "UpdateFeatures", answer.error_code, message=answer.error_message)
    for each in answer.results:
        check(None, "UpdateFeatures", each.error_code, f"feature {each.feature}", each.error_message)
