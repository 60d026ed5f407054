"""Metrics that clients push to the broker (KIP-714): subscriptions, client instances, and the values they push."""

from typing import Final

SETTING: Final = "ottla.client.telemetry.enable"
"""Whether clients are told that they can push, and what they push is kept."""
