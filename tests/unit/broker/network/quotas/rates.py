"""Rates along a virtual clock."""

from __future__ import annotations

from ottla.broker.network.quotas.rates import Windows
from ottla.broker.network.quotas.sensors import RateQuotas
from ottla.core.metadata.client_quotas import CLIENT_ID

ANYONE = ((CLIENT_ID, None),)


def rates(bound: float = 1000.0, **options: int) -> RateQuotas:
    quotas = RateQuotas(Windows(), **options)
    quotas.limits.replace({ANYONE: bound})
    return quotas
