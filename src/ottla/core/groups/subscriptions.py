"""What the members of a group subscribe to, counted, and the topics that it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["Subscriptions"]

SubscriptionType = TypeVar("SubscriptionType")


class Subscriptions(Generic[SubscriptionType]):
    """A thousand members mostly subscribe to the same: each subscription is kept once, with the number of members that
    have it. `topics_of` tells the names of topics that some subscriptions stand for together."""

    def __init__(self, topics_of: Callable[[Iterable[SubscriptionType]], frozenset[str]]) -> None:
        self.counts: Counter[SubscriptionType] = Counter()
        self._topics_of = topics_of
        self._topics: frozenset[str] | None = None

    def topics(self) -> frozenset[str]:
        if self._topics is None:
            self._topics = self._topics_of(self.counts)
        return self._topics

    def topics_with(self, gone: Iterable[SubscriptionType], come: SubscriptionType | None) -> frozenset[str]:
        """The topics once some subscriptions are gone and one has come."""
        counts = self.counts.copy()
        for each in gone:
            counts[each] -= 1
        if come is not None:
            counts[come] += 1
        remaining = +counts
        if remaining.keys() == self.counts.keys():
            return self.topics()
        if come is not None and remaining.keys() > self.counts.keys():
            return self.topics() | self._topics_of((come,))
        return self._topics_of(remaining)

    def move(self, old: SubscriptionType | None, new: SubscriptionType | None) -> None:
        """A member has the new one in place of the old one; None is that of nobody. As long as subscriptions only come,
        the topics are those of before and a few more: a thousand members may come with a thousand subscriptions."""
        if new is not None:
            if new not in self.counts and self._topics is not None:
                self._topics |= self._topics_of((new,))
            self.counts[new] += 1
        if old is not None:
            self.counts[old] -= 1
            if not self.counts[old]:
                del self.counts[old]
                self.forget_topics()

    def forget_topics(self) -> None:
        """A subscription has come to stand for other topics."""
        self._topics = None
