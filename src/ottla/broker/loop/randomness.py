"""Everything random that a node draws, from one source, so that a simulation can repeat it."""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["Randomness"]


class Randomness:
    """Random values; by default from the operating system."""

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._bytes = random_bytes

    def uuid(self) -> bytes:
        """16 random bytes, marked as a random UUID (version 4)."""
        raw = bytearray(self._bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)

    def fraction(self) -> float:
        """From 0 to 1, without 1."""
        return int.from_bytes(self._bytes(6), "big") / (1 << 48)

    def below(self, limit: int) -> int:
        """From 0 to a limit, without it; 0 if it is not above 0."""
        return int.from_bytes(self._bytes(8), "big") % limit if limit > 0 else 0
