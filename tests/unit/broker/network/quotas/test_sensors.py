"""Rates of all who have a limit: kept, expired, and the pauses that follow."""

from __future__ import annotations

import math

import pytest

from ottla.broker.network.quotas import sensors as sensors_module
from ottla.broker.network.quotas.quotas import ConnectionRates, Quotas
from ottla.broker.network.quotas.rates import Windows
from ottla.broker.network.quotas.sensors import EXPIRY_MS, RateQuotas, TokenQuotas
from ottla.core.metadata.client_quotas import IP, USER
from tests.unit.broker.network.quotas.rates import ANYONE, rates

WHO = ("ann", "c")


class TestRateQuotas:
    def test_who_has_no_limit_is_not_counted(self) -> None:
        quotas = RateQuotas(Windows())
        assert quotas.record(*WHO, 1e9, 0) == 0
        assert quotas.most_without_pause(*WHO) == math.inf
        assert len(quotas.sensors) == 0

    def test_who_is_over_his_limit_pauses(self) -> None:
        quotas = rates()
        assert quotas.record(*WHO, 10_000, 0) == 0
        assert quotas.record(*WHO, 1_000, 0) == 1_000

    def test_clients_do_not_pay_for_each_other(self) -> None:
        quotas = rates()
        assert quotas.record("ann", "greedy", 50_000, 0) > 0
        assert quotas.record("ann", "modest", 10_000, 0) == 0

    def test_a_longest_pause(self) -> None:
        quotas = rates(pause_max_ms=1000)
        assert quotas.record(*WHO, 1e9, 0) == 1000

    def test_a_new_bound_is_held_against_what_was_counted_before(self) -> None:
        quotas = rates()
        assert quotas.record(*WHO, 10_000, 0) == 0
        quotas.limits.replace({ANYONE: 500.0})
        assert quotas.record(*WHO, 0, 0) == 10_000
        quotas.limits.replace({ANYONE: 5000.0})
        assert quotas.record(*WHO, 0, 0) == 0

    def test_what_one_answer_may_have(self) -> None:
        assert rates().most_without_pause(*WHO) == 10_000

    def test_only_what_is_too_much_for_all_windows_is_overdue(self) -> None:
        quotas = rates()
        assert not quotas.is_overdue(*WHO, 11_000, 0)
        assert quotas.is_overdue(*WHO, 11_001, 0)
        quotas.record(*WHO, 1, 0)
        assert not quotas.is_overdue(*WHO, 11_001, 0)
        assert quotas.is_overdue(*WHO, 11_001, 11_000)

    def test_pauses_are_averaged(self) -> None:
        quotas = rates()
        quotas.record(*WHO, 1, 0)
        quotas.paused(*WHO, 100, 0)
        quotas.paused(*WHO, 300, 1000)
        (tag,) = quotas.samples(2000)
        assert (tag.tags, tag.pause_ms) == (("", "c"), 200)
        (tag,) = quotas.samples(200_000)
        assert tag.pause_ms == 0


class TestBounds:
    def test_sensors_that_nobody_uses_expire(self) -> None:
        quotas = rates()
        quotas.record("ann", "old", 1, 0)
        quotas.record("ann", "used", 1, 0)
        quotas.record("ann", "used", 1, EXPIRY_MS - 1)
        quotas.record("ann", "new", 1, EXPIRY_MS)
        assert [tags for tags, _ in quotas.sensors] == [("", "used"), ("", "new")]

    def test_of_too_many_the_longest_unused_goes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sensors_module, "SENSORS_MAX", 3)
        quotas = rates()
        for number in range(3):
            quotas.record("ann", f"c{number}", 1, 0)
        quotas.record("ann", "c0", 1, 0)
        quotas.record("ann", "c3", 1, 0)
        assert [tags for tags, _ in quotas.sensors] == [("", "c2"), ("", "c0"), ("", "c3")]


class TestMutations:
    def made(self) -> TokenQuotas:
        quotas = TokenQuotas(Windows())
        quotas.limits.replace({ANYONE: 1.0})
        return quotas

    def test_a_strict_request_gets_what_overdraws_and_then_nothing(self) -> None:
        request = self.made().begin(*WHO, 0, is_strict=True)
        assert request is not None
        assert request.take(15, 0)
        assert request.pause_ms(0) == 0
        assert not request.take(1, 0)
        assert request.pause_ms(0) == 4_000
        assert request.pause_ms(1_500) == 2_500

    def test_another_request_gets_all_and_pauses(self) -> None:
        request = self.made().begin(*WHO, 0, is_strict=False)
        assert request is not None
        assert request.take(15, 0)
        assert request.take(1, 0)
        assert request.pause_ms(0) == 5_000

    def test_requests_share_the_bucket(self) -> None:
        quotas = self.made()
        first, second = (quotas.begin(*WHO, 0, is_strict=True) for _ in range(2))
        assert first is not None
        assert second is not None
        assert first.take(12, 0)
        assert not second.take(1, 0)

    def test_nobody_without_a_limit(self) -> None:
        assert TokenQuotas(Windows()).begin(*WHO, 0, is_strict=True) is None


class TestConnectionRates:
    def made(self, **limits: float) -> ConnectionRates:
        rates = ConnectionRates(Windows())
        named = {"default": None, "home": "10.0.0.1"}
        rates.replace({((IP, named[name]),): bound for name, bound in limits.items()})
        return rates

    def test_too_many_from_one_address(self) -> None:
        rates = self.made(home=2.0)
        assert [rates.record("10.0.0.1", 0) for _ in range(21)] == [0] * 20 + [500]
        assert rates.record("10.0.0.2", 0) == 0

    def test_one_that_is_refused_does_not_count(self) -> None:
        rates = self.made(home=2.0)
        for _ in range(100):
            rates.record("10.0.0.1", 0)
        assert rates.record("10.0.0.1", 500) == 0

    def test_an_address_of_its_own_beats_the_default(self) -> None:
        rates = self.made(default=1.0, home=100.0)
        assert sum(rates.record("10.0.0.1", 0) > 0 for _ in range(50)) == 0
        assert sum(rates.record("10.0.0.2", 0) > 0 for _ in range(50)) == 40

    def test_an_address_may_be_written_in_short(self) -> None:
        rates = ConnectionRates(Windows())
        rates.replace({((IP, "fd00::5"),): 1.0})
        assert sum(rates.record("fd00:0:0:0:0:0:0:5", 0) > 0 for _ in range(50)) == 40

    def test_no_longer_than_a_window(self) -> None:
        rates = self.made(default=0.001)
        assert rates.record("10.0.0.2", 0) == 1000


def test_limits_are_taken_from_the_metadata_by_their_kind() -> None:
    def found(**limits: float) -> list[bool]:
        quotas = Quotas(Windows(), Windows())
        quotas.follow({((USER, "ann"),): limits})
        kinds = (quotas.produce, quotas.fetch, quotas.request, quotas.mutations)
        return [quotas.has_client_limits, *(bool(kind.limits) for kind in kinds), bool(quotas.connections)]

    assert found() == [False] * 6
    assert found(producer_byte_rate=5.0, request_percentage=1.0) == [True, True, False, True, False, False]
    assert found(consumer_byte_rate=5.0, controller_mutation_rate=1.0) == [True, False, True, False, True, False]
    assert found(connection_creation_rate=5.0) == [False, False, False, False, False, True]


def test_time_of_the_loop_is_counted_in_percent() -> None:
    quotas = Quotas(Windows(), Windows())
    quotas.follow({((USER, "ann"),): {"request_percentage": 10.0}})
    assert quotas.record_time("ann", "c", 1_000_000_000, 0) == 0  # one second of ten
    assert quotas.record_time("ann", "c", 100_000_000, 0) == 1000
