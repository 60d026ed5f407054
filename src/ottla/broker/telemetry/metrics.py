"""Counts requests, and writes the page of metrics.

Counting must cost next to nothing, so the parts of the node keep plain integers (a replica its bytes, `Metrics` the
requests), and a page of them is written only when somebody asks. What the other parts have counted comes from `samples`
and from the parts themselves, through one source of samples.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any, Final

from ottla.broker.loop.clock import Clock
from ottla.broker.network.dispatch import Api
from ottla.broker.network.request import Request
from ottla.wire.exposition import Labels, Sample, exposition

__all__ = ["Metrics", "RequestCount"]

_BOUNDS_MS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000)
_QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)

Source = Callable[[], Iterable[Sample]]


class RequestCount:
    """Requests of one API in one version."""

    __slots__ = ("answer_bytes", "buckets", "count", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0
        self.answer_bytes = 0
        self.buckets = [0] * (len(_BOUNDS_MS) + 1)

    def quantile_ms(self, quantile: float) -> int:
        """A time that so many of the requests did not exceed, to the next bound."""
        wanted = quantile * self.count
        index = next((at for at, sum_ in enumerate(accumulate(self.buckets)) if sum_ >= wanted), 0)
        return _BOUNDS_MS[min(index, len(_BOUNDS_MS) - 1)]


class Metrics:
    """Counts requests, and tells what its source gives."""

    def __init__(self, clock: Clock, source: Source) -> None:
        self._monotonic_ms = clock.monotonic_ms
        self._source = source
        self.requests: dict[tuple[str, int], RequestCount] = {}
        self.errors: dict[tuple[str, int], int] = {}

    def answered(self, request: Request, api: Api, answer: Any, size_bytes: int) -> None:  # noqa: ANN401
        key = (api.name, request.version)
        counted = self.requests.get(key)
        if counted is None:
            counted = self.requests[key] = RequestCount()
        took_ms = self._monotonic_ms() - request.received_at_ms
        counted.count += 1
        counted.total_ms += took_ms
        counted.answer_bytes += size_bytes
        counted.buckets[bisect_left(_BOUNDS_MS, took_ms)] += 1
        code = getattr(answer, "error_code", 0)
        if code:
            self.errors[api.name, code] = self.errors.get((api.name, code), 0) + 1

    # --- the page -----------------------------------------------------------------------------------------------------

    def page(self) -> str:
        """All samples in Prometheus' text format."""
        return exposition(self._samples())

    def _samples(self) -> Iterator[Sample]:
        yield from self._request_times()
        yield from self._source()

    def _request_times(self) -> Iterator[Sample]:
        prefix = "kafka_network_requestmetrics"
        for (name, version), counted in sorted(self.requests.items()):
            labels: Labels = {"request": name, "version": version}
            yield f"{prefix}_requests_total", labels, counted.count
            yield f"{prefix}_totaltimems_count", labels, counted.count
            yield f"{prefix}_totaltimems_sum", labels, counted.total_ms
            yield f"{prefix}_responsebytes_total", labels, counted.answer_bytes
            for quantile in _QUANTILES:
                yield f"{prefix}_totaltimems", {**labels, "quantile": quantile}, counted.quantile_ms(quantile)
        for (name, code), total in sorted(self.errors.items()):
            yield f"{prefix}_errors_total", {"request": name, "error": _error_name(code)}, total
        by_topic = "kafka_server_brokertopicmetrics"
        for name, api in (("totalproducerequests", "Produce"), ("totalfetchrequests", "Fetch")):
            total = sum(each.count for key, each in self.requests.items() if key[0] == api)
            yield f"{by_topic}_{name}_total", {}, total


def _error_name(code: int) -> str:
    from ottla.wire.errors import ErrorCode

    return ErrorCode(code).name if code in _known_codes(ErrorCode) else str(code)


def _known_codes(codes: Iterable[int]) -> set[int]:
    return set(codes)
