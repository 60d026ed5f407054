import pytest

from ottla.cli.proxy.session import Session
from ottla.cli.proxy.summary import Latencies, Summary
from ottla.explain.facts import TopicNames, exchange_facts
from ottla.wire import frames, types


def run(session: Session, summary: Summary, request: bytes, response: bytes, took_ns: int = 1_000_000) -> None:
    for exchange in session.from_client(request, 0):
        summary.add(exchange, exchange_facts(exchange, TopicNames()))
    for exchange in session.from_broker(response, took_ns).exchanges:
        summary.add(exchange, exchange_facts(exchange, TopicNames()))


def heartbeat(correlation_id: int, error_code: int = 0) -> tuple[bytes, bytes]:
    request = frames.write_request(types.HeartbeatRequest(), 4, correlation_id=correlation_id)
    return request, frames.write_response(
        types.HeartbeatResponse(error_code=error_code), 4, correlation_id=correlation_id
    )


def test_rows_count_exchanges_and_errors():
    session, summary = Session(lambda host, port, _: (host, port)), Summary()
    for number in range(3):
        run(session, summary, *heartbeat(number, error_code=27 if number == 1 else 0))
    run(
        session,
        summary,
        frames.write_request(types.ApiVersionsRequest(), 4, correlation_id=9),
        frames.write_response(types.ApiVersionsResponse(), 4, correlation_id=9),
    )
    first, second = summary.rows()
    assert (first.api, first.exchanges, first.errors) == ("Heartbeat", 3, {"REBALANCE_IN_PROGRESS": 1})
    assert (second.api, second.exchanges, second.errors) == ("ApiVersions", 1, {})
    assert summary.exchanges == 4
    assert first.p50_ns == pytest.approx(1_000_000, rel=0.02)


def test_unanswered_and_unread_are_counted():
    session, summary = Session(lambda host, port, _: (host, port)), Summary()
    run(session, summary, heartbeat(1)[0], b"")
    run(session, summary, frames.frame(b"\x03\xe7\0\0\0\0\0\x05\xff\xff"), frames.frame(b"\0\0\0\x05"))
    for exchange in session.close():
        summary.add(exchange, exchange_facts(exchange, TopicNames()))
    rows = {row.api: row for row in summary.rows()}
    assert rows["Heartbeat"].unanswered == 1
    assert rows["Heartbeat"].p50_ns is None
    assert rows["Api999"].exchanges == 1
    assert summary.unread == 2  # the request and its response


def test_quantiles_are_near_the_truth_for_any_size():
    latencies = Latencies()
    for duration_us in range(1, 1001):
        latencies.add(duration_us * 1000)
    assert latencies.quantile_ns(0.5) == pytest.approx(500_000, rel=0.03)
    assert latencies.quantile_ns(0.99) == pytest.approx(990_000, rel=0.03)
    assert latencies.quantile_ns(1.0) == pytest.approx(1_000_000, rel=0.03)
    assert Latencies().quantile_ns(0.5) is None
