"""Exponential backoff for requests to other brokers and to coordinators."""

from __future__ import annotations

from typing import Final

__all__ = ["ATTEMPTS_MAX", "pause_ms"]

ATTEMPTS_MAX: Final = 5
_FIRST_PAUSE_MS: Final = 1_000
_PAUSE_MAX_MS: Final = 30_000


def pause_ms(attempts: int) -> int:
    """The pause after so many attempts: each is twice as long as the last."""
    return min(_FIRST_PAUSE_MS << (attempts - 1), _PAUSE_MAX_MS)
