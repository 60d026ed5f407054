import pytest

from ottla.broker.telemetry.clients import instances as module
from ottla.wire.errors import ErrorCode
from tests.unit.broker.telemetry.clients.instance_table import INTERVAL_MS, MAX_BYTES, Table


@pytest.fixture
def table() -> Table:
    return Table()


def test_who_asks_too_early_is_throttled(table: Table):
    assert table.ask(0) is ErrorCode.NONE
    assert table.ask(INTERVAL_MS - 1) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert table.ask(INTERVAL_MS) is ErrorCode.NONE


def test_who_has_pushed_may_not_ask_before_the_interval_is_over(table: Table):
    table.ask(0)
    table.push(5_000)
    assert table.ask(INTERVAL_MS) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert table.ask(5_000 + INTERVAL_MS) is ErrorCode.NONE


def test_the_first_push_after_an_answer_may_come_at_any_time(table: Table):
    table.ask(0)
    assert table.push(1) is ErrorCode.NONE
    assert table.push(2) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert table.push(1 + INTERVAL_MS) is ErrorCode.NONE


def test_the_last_push_may_come_at_any_time_and_is_the_last(table: Table):
    table.ask(0)
    table.push(1)
    assert table.push(2, last=True) is ErrorCode.NONE
    assert table.push(1 + INTERVAL_MS) is ErrorCode.INVALID_REQUEST


def test_another_number_is_not_known(table: Table):
    table.ask(0)
    assert table.push(1, subscription_id=78) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID


@pytest.mark.parametrize("code", [5, -1, 99])
def test_a_codec_that_does_not_exist_is_refused(table: Table, code: int):
    table.ask(0)
    assert table.push(1, codec=code) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4])
def test_every_codec_of_kafka_is_taken(table: Table, code: int):
    table.ask(0)
    assert table.push(1, codec=code) is ErrorCode.NONE


def test_a_push_has_a_size(table: Table):
    table.ask(0)
    assert table.push(1, size=MAX_BYTES + 1) is ErrorCode.TELEMETRY_TOO_LARGE
    assert table.push(1 + INTERVAL_MS, size=MAX_BYTES) is ErrorCode.NONE


@pytest.mark.parametrize("wrong", [{"subscription_id": 78}, {"codec": 9}])
def test_who_was_told_that_he_is_wrong_may_ask_at_once(table: Table, wrong: dict[str, int]):
    table.ask(0)
    table.push(1, **wrong)  # type: ignore[arg-type]
    assert table.ask(2) is ErrorCode.NONE
    assert table.ask(3) is ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_other_subscriptions_begin_everything_anew(table: Table):
    table.ask(0)
    table.generation += 1
    assert table.ask(1) is ErrorCode.NONE


def test_who_is_silent_for_three_intervals_is_forgotten(table: Table):
    table.find(now_ms=0)
    kept_ms = max(60_000, 3 * INTERVAL_MS)
    table.instances.expire(kept_ms - 1)
    assert len(table.instances) == 1
    table.instances.expire(kept_ms)
    assert table.left == [(1).to_bytes(16, "big")]


def test_a_client_goes_with_its_connection(table: Table):
    table.find(1, connection="c1")
    table.find(2, connection="c2")
    table.instances.disconnected("c1")
    table.instances.disconnected("c1")
    assert table.left == [(1).to_bytes(16, "big")]
    assert len(table.instances) == 1


def test_a_client_that_has_come_back_stays(table: Table):
    table.find(1, connection="old")
    table.find(1, connection="new")
    table.instances.disconnected("old")
    assert table.left == []


def test_of_too_many_the_one_that_was_silent_for_longest_goes(table: Table, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "INSTANCES_MAX", 2)
    for number in (1, 2, 1, 3):
        table.find(number, connection=number)
    assert table.left == [(2).to_bytes(16, "big")]
