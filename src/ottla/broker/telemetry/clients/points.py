"""The data points of a push: OpenTelemetry metrics (OTLP), perhaps compressed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.wire.compress import decompress
from ottla.wire.fault import WireError

if TYPE_CHECKING:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData

__all__ = ["PUSH_BYTES_MAX", "Point", "PushError", "points", "read_push"]

PUSH_BYTES_MAX: Final = 8 << 20
"""So large may a push be once it is unpacked."""
_DELTA: Final = 1

Labels = tuple[tuple[str, str], ...]


class PushError(ValueError):
    """A push that cannot be read."""


class Point(msgspec.Struct, frozen=True):
    """One data point. A delta is added to the known value; any other point replaces it."""

    name: str
    labels: Labels
    value: float
    is_counter: bool = False
    is_delta: bool = False


def read_push(compression_type: int, data: bytes) -> MetricsData:
    """Raises PushError."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    try:
        unpacked = decompress(compression_type, data, max_bytes=PUSH_BYTES_MAX)
        read: MetricsData = MetricsData.FromString(unpacked)
    except (WireError, DecodeError) as error:
        raise PushError(str(error)) from error
    return read


def points(data: MetricsData) -> Iterator[Point]:
    """All numbers of a push; what a resource says of itself goes with each of them."""
    for resource in data.resource_metrics:
        common = _labels(resource.resource.attributes)
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                yield from _points(metric, common)


def _points(metric: Metric, common: Labels) -> Iterator[Point]:
    kind = metric.WhichOneof("data")
    if kind == "gauge":
        for each in metric.gauge.data_points:
            yield Point(metric.name, _labels(each.attributes, common), _number(each))
    elif kind == "sum":
        is_delta = metric.sum.aggregation_temporality == _DELTA
        for each in metric.sum.data_points:
            labels = _labels(each.attributes, common)
            yield Point(metric.name, labels, _number(each), metric.sum.is_monotonic, is_delta)
    elif kind == "histogram":
        is_delta = metric.histogram.aggregation_temporality == _DELTA
        for each in metric.histogram.data_points:
            labels = _labels(each.attributes, common)
            yield Point(f"{metric.name}.count", labels, each.count, is_counter=True, is_delta=is_delta)
            yield Point(f"{metric.name}.sum", labels, each.sum, is_counter=True, is_delta=is_delta)


def _number(point: Any) -> float:  # noqa: ANN401 - of the generated classes of two kinds
    return float(point.as_int if point.WhichOneof("value") == "as_int" else point.as_double)


def _labels(attributes: Iterable[Any], common: Labels = ()) -> Labels:
    return (*common, *((each.key, _text(each.value)) for each in attributes))


def _text(value: Any) -> str:  # noqa: ANN401
    kind = value.WhichOneof("value")
    return "" if kind is None else str(getattr(value, kind))
