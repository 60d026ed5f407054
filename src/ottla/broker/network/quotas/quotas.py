"""The quotas of a node, from the metadata log, in five kinds. Changes apply to what is counted next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from ottla.broker.network.addresses import address_text
from ottla.broker.network.quotas.limits import Limit
from ottla.broker.network.quotas.rates import Rate, Windows
from ottla.broker.network.quotas.sensors import RateQuotas, TokenQuotas, _Sensors
from ottla.core.metadata.client_quotas import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from ottla.core.metadata.image import QuotaEntity

__all__ = ["ConnectionRates", "Quotas"]

_PERCENT_PER_NS: Final = 100 / 1e9

Sample = tuple[str, dict[str, object], float]


class ConnectionRates:
    """The limits of connections that an address may open in a second."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._by_entity: Mapping[QuotaEntity, float] = {}
        self.sensors: _Sensors[Rate] = _Sensors(lambda _, now_ms: Rate(windows, now_ms))

    def __bool__(self) -> bool:
        return bool(self._by_entity)

    def replace(self, by_entity: Mapping[QuotaEntity, float]) -> None:
        self._by_entity = {
            tuple((kind, None if name is None else address_text(name)) for kind, name in entity): bound
            for entity, bound in by_entity.items()
        }

    def record(self, address: str, now_ms: int) -> int:
        """Count a connection; returns after how long one that is too many is to be closed. Those do not count."""
        bound = self._by_entity.get(((IP, address),), self._by_entity.get(((IP, None),)))
        if bound is None or not math.isfinite(bound):
            return 0
        sensor = self.sensors.get(Limit((address, ""), bound), now_ms)
        sensor.meter.record(1, now_ms)
        excess_ms = min(sensor.meter.excess_ms(bound, now_ms), self._windows.size_ms)
        if excess_ms:
            sensor.meter.record(-1, now_ms)
            sensor.paused(excess_ms, now_ms)
        return excess_ms


class Quotas:
    """All quotas of a node, and the rates of its clients."""

    def __init__(self, windows: Windows, controller_windows: Windows) -> None:
        self.produce = RateQuotas(windows)
        self.fetch = RateQuotas(windows)
        self.request = RateQuotas(windows, pause_max_ms=windows.size_ms)
        self.mutations = TokenQuotas(controller_windows)
        self.connections = ConnectionRates(windows)

    def follow(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Apply the quotas of the image."""
        for kind, key in (
            (self.produce.limits, PRODUCER_BYTE_RATE),
            (self.fetch.limits, CONSUMER_BYTE_RATE),
            (self.request.limits, REQUEST_PERCENTAGE),
            (self.mutations.limits, CONTROLLER_MUTATION_RATE),
            (self.connections, CONNECTION_CREATION_RATE),
        ):
            kind.replace({entity: limits[key] for entity, limits in quotas.items() if key in limits})

    @property
    def has_client_limits(self) -> bool:
        return any((self.produce.limits, self.fetch.limits, self.request.limits, self.mutations.limits))

    def record_time(self, user: str, client_id: str, spent_ns: int, now_ms: int) -> int:
        """Count time of the loop; how long a pause must follow. One whole second of a second is 100."""
        return self.request.record(user, client_id, spent_ns * _PERCENT_PER_NS, now_ms)

    def add_time(self, user: str, client_id: str, spent_ns: int, now_ms: int) -> None:
        self.request.add(user, client_id, spent_ns * _PERCENT_PER_NS, now_ms)

    def samples(self, now_ms: int) -> Iterator[Sample]:
        """For the metrics page, under Kafka's names."""
        for kind, quotas, what in (
            ("produce", self.produce, "byte_rate"),
            ("fetch", self.fetch, "byte_rate"),
            ("request", self.request, "request_time"),
            ("controllermutation", self.mutations, "tokens"),
        ):
            for (user, client_id), value, pause_ms in quotas.samples(now_ms):
                labels: dict[str, object] = {"user": user, "client_id": client_id}
                yield f"kafka_server_{kind}_{what}", labels, value
                yield f"kafka_server_{kind}_throttle_time", labels, pause_ms
        for (address, _), sensor in self.connections.sensors:
            rate = sensor.meter.per_second(now_ms)
            yield "kafka_server_socket_server_metrics_connection_accept_rate", {"ip": address}, rate
