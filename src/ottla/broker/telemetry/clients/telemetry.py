"""Receives client telemetry: keeps the newest value of every series that clients push.

Values are kept as long as their client is known (`instances`). The number of series is bounded, for each client and in
total, and so is the length of each; what is more is counted and dropped. Delta sums are added up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final

from ottla.broker.config.settings import Settings
from ottla.broker.loop.clock import Clock
from ottla.broker.loop.randomness import Randomness
from ottla.broker.network.request import Request
from ottla.broker.telemetry.clients import SETTING
from ottla.broker.telemetry.clients.instances import Instance, Instances
from ottla.broker.telemetry.clients.points import Labels, Point, PushError, points, read_push
from ottla.broker.telemetry.clients.subscriptions import Client, Subscription, client_subscription, subscription_from
from ottla.core.metadata.image import CLIENT_METRICS, Changes, MetadataImage
from ottla.core.metadata.uuids import draw, is_reserved
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from ottla.wire.types.push_telemetry import PushTelemetryRequest

__all__ = ["SERIES_CHARS_MAX", "SERIES_MAX", "SERIES_OF_CLIENT_MAX", "Telemetry"]

SERIES_MAX: Final = 50_000
SERIES_OF_CLIENT_MAX: Final = 2_000
SERIES_CHARS_MAX: Final = 2_048
"""The name of a series with its labels."""
_ACCEPTED: Final = (4, 3, 1, 2)
_PREFIX: Final = "org.apache.kafka."
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_]+")

Sample = tuple[str, dict[str, object], float]
_Series = dict[tuple[str, Labels], tuple[float, bool]]


class Telemetry:
    """The client metrics of one node."""

    def __init__(self, settings: Settings, image: MetadataImage, clock: Clock, randomness: Randomness) -> None:
        self._randomness = randomness
        self._settings = settings
        self._image = image
        self._clock = clock
        self._instances = Instances(self._left)
        self._generation = 0
        self._subscriptions: list[Subscription] | None = None
        self._series: dict[bytes, _Series] = {}
        self._series_count = 0
        self.dropped = 0
        """Points that came when there were too many series, or whose labels were too long."""
        self.pushes = 0
        self.throttled = 0

    def __len__(self) -> int:
        return len(self._instances)

    # --- requests -----------------------------------------------------------------------------------------------------

    def get_subscriptions(self, request: Request) -> GetTelemetrySubscriptionsResponse:
        """Answer GetTelemetrySubscriptions: what the client is to push. Raises Reject."""
        instance_id = request.body.client_instance_id
        if not any(instance_id):
            instance_id = draw(self._randomness.uuid)
        instance, now_ms = self._instance(request, instance_id), self._clock.monotonic_ms()
        self._counting_throttled(lambda: self._instances.check_get(instance, now_ms))
        subscription = instance.subscription
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=subscription.subscription_id,
            accepted_compression_types=_ACCEPTED,
            push_interval_ms=subscription.interval_ms,
            telemetry_max_bytes=self._settings["telemetry.max.bytes"],
            delta_temporality=True,
            requested_metrics=subscription.metrics,
        )

    def push(self, request: Request) -> None:
        """Answer PushTelemetry: take the client's metrics. Raises Reject."""
        body: PushTelemetryRequest = request.body
        if is_reserved(body.client_instance_id):
            raise Reject(ErrorCode.INVALID_REQUEST)
        instance, now_ms = self._instance(request, body.client_instance_id), self._clock.monotonic_ms()
        self._counting_throttled(
            lambda: self._instances.check_push(
                instance,
                body.subscription_id,
                body.compression_type,
                len(body.metrics),
                is_terminating=body.terminating,
                max_bytes=self._settings["telemetry.max.bytes"],
                now_ms=now_ms,
            )
        )
        if body.metrics and self._settings[SETTING]:
            self._take(instance, body)
        instance.last_error = ErrorCode.NONE

    def _counting_throttled(self, check: Callable[[], None]) -> None:
        try:
            check()
        except Reject as reject:
            self.throttled += reject.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
            raise

    def _instance(self, request: Request, instance_id: bytes) -> Instance:
        now_ms = self._clock.monotonic_ms()
        self._instances.expire(now_ms)
        peer, software = request.connection.peer, request.connection.client_software
        name, version = software or (None, None)
        client = Client(instance_id, request.client_id, name, version, peer.host, peer.port)
        return self._instances.find(
            client,
            id(request.connection),
            self._generation,
            lambda: client_subscription(client, self._present_subscriptions()),
            now_ms,
        )

    def _present_subscriptions(self) -> list[Subscription]:
        if self._subscriptions is None:
            image = self._image
            self._subscriptions = [
                subscription_from(name, image.configs(CLIENT_METRICS, name))
                for name in image.config_resources(CLIENT_METRICS)
            ]
        return self._subscriptions

    def follow(self, changes: Changes) -> None:
        """Subscriptions may have changed: work out those of clients again."""
        if any(resource_type == CLIENT_METRICS for resource_type, _ in changes.configs):
            self._subscriptions = None
            self._generation += 1

    def disconnected(self, connection: object) -> None:
        self._instances.disconnected(id(connection))

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _take(self, instance: Instance, body: PushTelemetryRequest) -> None:
        try:
            data = read_push(body.compression_type, body.metrics)
        except PushError:
            instance.last_error = ErrorCode.INVALID_RECORD
            raise Reject(ErrorCode.INVALID_RECORD) from None
        self.pushes += 1
        series = self._series.setdefault(instance.client.instance_id, {})
        for point in points(data):
            self._keep(series, point)

    def _keep(self, series: _Series, point: Point) -> None:
        key = (point.name, point.labels)
        known = series.get(key)
        value = point.value if known is None or not point.is_delta else known[0] + point.value
        if not math.isfinite(value):  # as an average over nothing
            self._series_count -= series.pop(key, None) is not None
            return
        if known is None:
            is_full = len(series) >= SERIES_OF_CLIENT_MAX or self._series_count >= SERIES_MAX
            if is_full or _length(point) > SERIES_CHARS_MAX:
                self.dropped += 1
                return
            self._series_count += 1
        series[key] = (value, point.is_counter)

    def _left(self, instance_id: bytes) -> None:
        self._series_count -= len(self._series.pop(instance_id, ()))

    def samples(self) -> Iterator[Sample]:
        """The values for the metrics page, each with its client."""
        self._instances.expire(self._clock.monotonic_ms())
        yield "ottla_client_instances", {}, len(self._instances)
        yield "ottla_client_pushes_total", {}, self.pushes
        yield "ottla_client_throttled_total", {}, self.throttled
        yield "ottla_client_points_dropped_total", {}, self.dropped
        for instance in self._instances.all():
            who = _who(instance.client)
            for (name, labels), (value, is_counter) in self._series.get(instance.client.instance_id, {}).items():
                yield _page_name(name, is_counter=is_counter), {**who, **_page_labels(labels), **who}, value

    def view(self) -> dict[str, object]:
        """The clients with their subscriptions and values, for the inspect listener."""
        now_ms = self._clock.monotonic_ms()
        self._instances.expire(now_ms)
        return {
            "telemetry": self._settings[SETTING],
            "series": self._series_count,
            "dropped": self.dropped,
            "clients": [self._view_of(each, now_ms) for each in self._instances.all()],
        }

    def _view_of(self, instance: Instance, now_ms: int) -> dict[str, object]:
        client, subscription = instance.client, instance.subscription
        series = self._series.get(client.instance_id, {})
        return {
            **_who(client),
            "address": f"{client.address}:{client.port}",
            "metrics": list(subscription.metrics),
            "interval_ms": subscription.interval_ms,
            "silent_ms": now_ms - max(instance.got_at_ms, instance.pushed_at_ms),
            "terminating": instance.is_terminating,
            "values": [
                {"name": name, "labels": dict(labels), "value": value} for (name, labels), (value, _) in series.items()
            ],
        }


def _length(point: Point) -> int:
    return len(point.name) + sum(len(name) + len(value) for name, value in point.labels)


def _who(client: Client) -> dict[str, object]:
    return {
        "client_instance_id": uuid_text(client.instance_id),
        "client_id": client.client_id,
        "client_software_name": client.software_name or "",
        "client_software_version": client.software_version or "",
    }


def _page_name(name: str, *, is_counter: bool) -> str:
    plain = _UNFIT.sub("_", name.removeprefix(_PREFIX)).strip("_").lower()
    suffix = "_total" if is_counter and not plain.endswith("_total") else ""
    return f"ottla_client_{plain}{suffix}"


def _page_labels(labels: Labels) -> dict[str, object]:
    return {_label_name(name): value for name, value in labels}


def _label_name(name: str) -> str:
    """A name that Prometheus takes: one with anything else makes it reject the whole page."""
    plain = _UNFIT.sub("_", name).lstrip("_")
    return plain if plain[:1].isalpha() else f"_{plain}"
