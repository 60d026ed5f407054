"""Requests that change features and settings."""

from __future__ import annotations

from typing import Any

from ottla.wire.types import IncrementalAlterConfigsRequest, UpdateFeaturesRequest
from tests.component.broker.raw_client import RawClient

UPGRADE, SAFE_DOWNGRADE = 1, 2
GROUP, TOPIC, BROKER = 32, 2, 4


def update(client: RawClient, name: str, level: int, kind: int = UPGRADE, version: int = 2) -> Any:
    key = UpdateFeaturesRequest.FeatureUpdateKey(name, level, upgrade_type=kind)
    return client.ask(UpdateFeaturesRequest(feature_updates=(key,)), version)


def set_config(client: RawClient, kind: int, name: str, key: str, value: str | None) -> int:
    request = IncrementalAlterConfigsRequest
    entry = request.AlterableConfig(key, 1 if value is None else 0, value)
    answer = client.ask(request((request.AlterConfigsResource(kind, name, (entry,)),)), 1)
    return int(answer.responses[0].error_code)
