"""Failed logins: who is shut out, for how long, and what the audit log is told of it."""

from __future__ import annotations

import pytest

from ottla.broker.network.login_failures import ADDRESSES_MAX, LoginFailures
from ottla.broker.network.logins import LoginResult, Logins
from ottla.broker.network.request import Peer

GUESSER = Peer("10.0.0.9", 40_000, "SASL_SSL")
NEIGHBOUR = Peer("10.0.0.8", 40_000, "SASL_SSL")


class Guessed:
    def __init__(self, per_minute: int) -> None:
        self.now_ms = 0
        self.told: list[tuple[str, dict[str, object]]] = []
        self.logins = Logins(LoginFailures(per_minute), lambda: self.now_ms, lambda *event: self.told.append(event))

    def fail(self, peer: Peer = GUESSER, times: int = 1) -> None:
        for _ in range(times):
            self.logins.failed(peer, "PLAIN", "wrong user or password", "ann")


@pytest.fixture
def guessed() -> Guessed:
    return Guessed(per_minute=3)


def test_who_guesses_is_shut_out_for_longer_each_time_and_others_are_not(guessed: Guessed):
    guessed.fail(times=3)
    assert not guessed.logins.is_shut_out(GUESSER)
    for pause_ms in (1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000):
        guessed.fail()
        guessed.now_ms += pause_ms - 1
        assert guessed.logins.is_shut_out(GUESSER)
        assert not guessed.logins.is_shut_out(NEIGHBOUR)
        guessed.now_ms += 1
        assert not guessed.logins.is_shut_out(GUESSER)


def test_a_minute_without_failures_wipes_the_slate_clean(guessed: Guessed):
    guessed.fail(times=4)
    guessed.now_ms += 61_000
    guessed.fail(times=3)
    assert not guessed.logins.is_shut_out(GUESSER)


def test_each_time_that_somebody_is_shut_out_is_told_once(guessed: Guessed):
    guessed.fail(times=4)
    for _ in range(100):
        assert guessed.logins.is_shut_out(GUESSER)
    throttled = [fields for event, fields in guessed.told if event == "login.throttled"]
    assert throttled == [{"host": "10.0.0.9", "listener": "SASL_SSL", "ms": 1_000}]
    assert guessed.logins.counts["SASL_SSL", "", LoginResult.SHUT_OUT] == 100


def test_0_is_no_limit():
    guessed = Guessed(per_minute=0)
    guessed.fail(times=1_000)
    assert not guessed.logins.is_shut_out(GUESSER)


def test_the_address_that_was_unheard_of_for_longest_is_forgotten(guessed: Guessed):
    guessed.fail(times=4)
    for number in range(ADDRESSES_MAX):
        guessed.fail(Peer(f"11.{number // 65536}.{number // 256 % 256}.{number % 256}", 1, "SASL_SSL"))
    assert len(guessed.logins._failures._addresses) == ADDRESSES_MAX
    assert not guessed.logins.is_shut_out(GUESSER)
