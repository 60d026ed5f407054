"""The clock of timeouts and pauses: that of the event loop, so that a client lives on its loop's time."""

from __future__ import annotations

import asyncio
import time

__all__ = ["monotonic_s"]


def monotonic_s() -> float:
    """Seconds that never go back; without a running loop, as in blocking clients, those of the system."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()
