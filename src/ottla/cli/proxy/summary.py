"""The totals of a proxy: exchanges, errors and latencies per API. Memory does not grow with the traffic."""

from collections import Counter
from typing import NamedTuple

from ottla.cli.latencies import Latencies
from ottla.explain.exchanges import Exchange
from ottla.explain.facts import Facts


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
