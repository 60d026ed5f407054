"""The coordinators that can be simulated: the same cores that a broker makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.broker.coordinators.composing import CORES, CorePlace
from ottla.coordinator.contract import Core

__all__ = ["KINDS", "Kind", "MakeCore"]


MakeCore = Callable[[CorePlace], Core]


class Kind(NamedTuple):
    """A kind of coordinator: the topic of its log, and how an empty core is made."""

    topic: str
    make_core: MakeCore


_TOPICS: Final = {"groups": "__consumer_offsets", "transactions": "__transaction_state"}

KINDS: Final = {name: Kind(topic, CORES[topic]) for name, topic in _TOPICS.items() if topic in CORES}
