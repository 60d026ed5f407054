"""The totals of a proxy: exchanges, errors and latencies per API.

Memory does not grow with the traffic: latencies are counted in buckets that are 3 % wide.
"""

from collections import Counter
from math import exp, log
from typing import NamedTuple

from ottla.explain.exchanges import Exchange
from ottla.explain.facts import Facts

_CLASS_WIDTH = log(1.03)


class Latencies:
    """A histogram of durations in nanoseconds; quantiles are exact to half the width of a bucket."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, duration_ns: int) -> None:
        self._counts[round(log(max(duration_ns, 1)) / _CLASS_WIDTH)] += 1

    def quantile_ns(self, share: float) -> int | None:
        """The duration that a `share` of all do not exceed; None if there are none."""
        wanted = share * self._counts.total()
        seen = 0
        for number in sorted(self._counts):
            seen += self._counts[number]
            if seen >= wanted:
                return round(exp(number * _CLASS_WIDTH))
        return None


class Row(NamedTuple):
    """The totals of one API."""

    api: str
    exchanges: int
    unanswered: int
    p50_ns: int | None
    p99_ns: int | None
    errors: dict[str, int]


class _Tally:
    def __init__(self) -> None:
        self.exchanges = 0
        self.unanswered = 0
        self.latencies = Latencies()
        self.errors: Counter[str] = Counter()


class Summary:
    """Takes every exchange with `add`; `rows` is the table, the busiest API first."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self.exchanges = 0
        self.unread = 0
        """Messages that could not be read completely."""

    def add(self, exchange: Exchange, facts: Facts) -> None:
        tally = self._tallies.setdefault(exchange.first.api or "unpaired", _Tally())
        self.exchanges += 1
        tally.exchanges += 1
        tally.unanswered += exchange.outcome == "unanswered"
        if exchange.latency_ns is not None:
            tally.latencies.add(exchange.latency_ns)
        tally.errors.update(facts.errors)
        both = (exchange.request, exchange.response)
        self.unread += sum(message is not None and message.error is not None for message in both)

    def rows(self) -> list[Row]:
        rows = [
            Row(
                api,
                tally.exchanges,
                tally.unanswered,
                tally.latencies.quantile_ns(0.50),
                tally.latencies.quantile_ns(0.99),
                dict(tally.errors.most_common()),
            )
            for api, tally in self._tallies.items()
        ]
        return sorted(rows, key=lambda row: (-row.exchanges, row.api))
