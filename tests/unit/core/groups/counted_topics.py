"""Topics that count how often they are looked at."""

from __future__ import annotations

from collections import Counter
from typing import Any

from simulation.topics import VirtualTopics


class CountedTopics(VirtualTopics):
    """Counts how often somebody asks."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def by_name(self, name: str) -> Any:
        self.asked["by_name"] += 1
        return super().by_name(name)

    def by_id(self, topic_id: bytes) -> Any:
        self.asked["by_id"] += 1
        return super().by_id(topic_id)

    def names(self) -> Any:
        self.asked["names"] += 1
        return super().names()
