"""The trace of a world: its events, line by line, and a digest of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

__all__ = ["Trace", "Violation"]


class Violation(AssertionError):
    """An invariant does not hold. `name` is the name of the invariant; the trace shows what led to it."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail
        self.world: Any = None
        """The world in which it was found."""


class Trace:
    """Lines with their times. Two runs of one seed have the same `digest`, on any machine."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.faults: Counter[str] = Counter()
        """The number of injected faults, by kind."""
        self._hash = hashlib.blake2b(digest_size=8)

    def add(self, at_ms: int, line: str) -> None:
        text = f"{at_ms:>8} {line}"
        self.lines.append(text)
        self._hash.update(text.encode())

    def fault(self, at_ms: int, kind: str, detail: str = "") -> None:
        self.faults[kind] += 1
        self.add(at_ms, f"!! {kind} {detail}")

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
