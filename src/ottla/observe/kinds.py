"""The kinds of samples that an observer takes, how often it takes them, and which kinds come first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["AFTER", "INTERVALS_S", "KindError", "intervals"]

INTERVALS_S: Final[dict[str, float]] = {
    "cluster": 2,
    "topic": 5,
    "group": 1,
    "quorum": 1,
    "lag": 5,
    "share_offsets": 5,
    "share_state": 1,
    "configs": 60,
    "log_dirs": 60,
    "transactions": 60,
    "share_metrics": 5,
    "share_window": 5,
    "access": 5,
}
"""The default interval of each kind, in seconds."""

AFTER: Final[dict[str, frozenset[str]]] = {
    "topic": frozenset({"cluster"}),
    "group": frozenset({"cluster"}),
    "quorum": frozenset({"cluster"}),
    "lag": frozenset({"group", "topic"}),
    "share_offsets": frozenset({"group", "topic"}),
    "share_state": frozenset({"group", "topic"}),
    "configs": frozenset({"group", "topic"}),
    "log_dirs": frozenset({"cluster"}),
    "transactions": frozenset({"topic"}),
    "share_window": frozenset({"group"}),
    "access": frozenset({"cluster"}),
}
"""The kinds that a kind waits for: its probe needs, for example, to know which groups and topics exist."""


class KindError(ValueError):
    """A kind that does not exist."""

    def __init__(self, kind: str) -> None:
        super().__init__(f'unknown kind "{kind}"')
        self.kind = kind


def intervals(every_s: float | None = None, own: Mapping[str, float] | None = None) -> Mapping[str, float]:
    """The interval of each kind: its own if one is given, else `every_s`, else the default. Raises KindError."""
    for kind in own or ():
        if kind not in INTERVALS_S:
            raise KindError(kind)
    return {kind: every_s or default for kind, default in INTERVALS_S.items()} | dict(own or {})
