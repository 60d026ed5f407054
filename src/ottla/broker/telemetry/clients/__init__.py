"""Metrics that clients push to the broker (KIP-714): who is asked for what, what has come, and how it is shown."""

from typing import Final

SETTING: Final = "ottla.client.telemetry.enable"
"""Whether clients are told that they can push, and what they push is kept."""
