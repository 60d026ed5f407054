"""A connection over a socket pair: order, parking, back-pressure, refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.network import connection as connection_module
from ottla.broker.network import send_queue as send_queue_module
from ottla.broker.network.connection import ConnectionLimits
from ottla.broker.network.request import AfterWrite, Answer, Close, CloseCause, DelayedResponse, Encoded, Request
from ottla.broker.network.send_queue import FileSpan
from ottla.log.disk import OsDisk
from ottla.log.files import Directory, LogFile, LogStorage
from ottla.wire import frames
from ottla.wire.types import FetchResponse, HeartbeatResponse
from tests.component.broker.connection_bench import FETCH, Bench, answer_at_once, fetch_request, heartbeat

Opener = Callable[..., "Bench"]


@pytest.fixture
def parked() -> list[DelayedResponse]:
    return []


@pytest.fixture
def open_bench() -> Iterator[Opener]:
    """Makes benches and closes their sockets at the end."""
    opened: list[Bench] = []

    def make(*args: Any, **kwargs: Any) -> Bench:
        opened.append(Bench(*args, **kwargs))
        return opened[-1]

    yield make
    for bench in opened:
        bench.connection.close("end")
        bench.client.close()


@pytest.fixture
def parking(parked: list[DelayedResponse], open_bench: Opener) -> Bench:
    """Every request waits until the test completes it."""

    def park(_node: Any, _request: Request) -> Answer:
        parked.append(DelayedResponse())
        return parked[-1]

    return open_bench(park)


def test_pipelined_requests_are_answered_in_order_with_one_write(open_bench: Opener) -> None:
    bench = open_bench(answer_at_once)
    bench.send(1, 2, 3)
    assert bench.answers(3) == [1, 2, 3]
    assert bench.owner.writes == 1


def test_a_frame_may_come_in_pieces(open_bench: Opener) -> None:
    bench = open_bench(answer_at_once)
    data = heartbeat(7) + heartbeat(8)
    for index in range(len(data)):
        bench.client.sendall(data[index : index + 1])
        bench.turn()
    assert bench.answers(2) == [7, 8]


def test_a_parked_request_holds_up_those_behind_it(parking: Bench, parked: list[DelayedResponse]) -> None:
    parking.send(1, 2)
    assert parking.is_silent()
    assert len(parked) == 1, "the second is not even looked at"
    parked[0].complete(HeartbeatResponse())
    assert parking.answers(1) == [1]
    parked[1].complete(HeartbeatResponse())
    assert parking.answers(1) == [2]


def test_answers_that_wait_for_their_write_keep_their_order(open_bench: Opener) -> None:
    later = [DelayedResponse(), DelayedResponse()]
    waiting = iter(later)
    bench = open_bench(lambda _node, _request: AfterWrite(lambda: next(waiting)))
    bench.send(1, 2)
    assert bench.owner.writes == 1
    later[1].complete(HeartbeatResponse())
    assert bench.is_silent()
    later[0].complete(HeartbeatResponse())
    assert bench.answers(2) == [1, 2]


def test_answers_that_come_one_by_one_leave_together(open_bench: Opener) -> None:
    later = [DelayedResponse() for _ in range(4)]
    waiting = iter(later)
    bench = open_bench(lambda _node, _request: AfterWrite(lambda: next(waiting)))
    bench.send(1, 2, 3, 4)
    later[0].complete(HeartbeatResponse())
    later[1].complete(HeartbeatResponse())
    assert bench.is_silent(), "the others may be next"
    assert len(bench.loop.queued) == 1
    bench.loop.run_queued()
    assert bench.answers(2) == [1, 2]
    later[2].complete(HeartbeatResponse())
    later[3].complete(HeartbeatResponse())
    assert bench.answers(2) == [3, 4], "nothing is left to wait for"
    bench.connection.close("a test")
    bench.loop.run_queued()


def test_a_write_that_brings_an_answer_lets_those_behind_it_go_on(
    open_bench: Opener, parked: list[DelayedResponse], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of four waits for a write behind that of the first, and all came in one piece."""

    def handle(_node: Any, request: Request) -> Answer:
        if request.correlation_id != 2:
            return AfterWrite(HeartbeatResponse)
        parked.append(DelayedResponse())
        return parked[-1]

    def write() -> None:
        for later in parked:
            later.complete(HeartbeatResponse())

    bench = open_bench(handle)
    monkeypatch.setattr(bench.owner, "write_staged", write)
    bench.send(1, 2, 3, 4)
    assert bench.answers(4) == [1, 2, 3, 4]


def test_no_answer_is_owed_where_the_handler_gives_none(open_bench: Opener) -> None:
    given = iter([None, HeartbeatResponse()])
    bench = open_bench(lambda _node, _request: next(given))
    bench.send(1, 2)
    assert bench.answers(1) == [2]


def test_what_a_handler_did_not_foresee_becomes_an_error_answer(
    open_bench: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_node: Any, _request: Request) -> Answer:
        raise ZeroDivisionError

    bench = open_bench(fail)
    bench.send(1)
    assert bench.answers(1) == [1]
    assert "Heartbeat v4 failed" in caplog.text


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        bytes(4),
        b"\xff\xff\xff\xff",
        frames.frame(bytes.fromhex("7fff0000000000010000")),
        frames.frame(bytes.fromhex("000c0063000000010000 00".replace(" ", ""))),
        frames.frame(bytes.fromhex("0012000000000001ffff")),
        heartbeat(1)[:-3][:3] + bytes([heartbeat(1)[3] - 3]) + heartbeat(1)[4:-3],
    ],
    ids=["http", "empty", "negative", "unknown key", "unknown version", "not offered", "cut body"],
)
def test_what_is_no_request_ends_the_connection(open_bench: Opener, data: bytes) -> None:
    bench = open_bench(answer_at_once)
    bench.client.sendall(data)
    bench.turn()
    assert bench.connection.is_closed
    assert bench.owner.closed == [bench.connection]
    assert bench.client.recv(10) == b""


def test_a_frame_beyond_the_limit_ends_the_connection_before_it_is_read(open_bench: Opener) -> None:
    bench = open_bench(answer_at_once, limits=ConnectionLimits(frame_max_bytes=1_000))
    bench.client.sendall((1_001).to_bytes(4, "big"))
    bench.turn()
    assert bench.connection.is_closed


def test_a_handler_may_end_the_connection_after_earlier_answers_are_lost(open_bench: Opener) -> None:
    def close(_node: Any, _request: Request) -> Answer:
        raise Close("acks=0 failed", CloseCause.FAILED_PRODUCE)

    bench = open_bench(close)
    bench.send(1)
    assert bench.connection.is_closed


def test_bytes_behind_a_body_are_overlooked(open_bench: Opener) -> None:
    bench = open_bench(answer_at_once)
    bench.client.sendall(frames.frame(heartbeat(5)[4:] + b"rest"))
    bench.turn()
    assert bench.answers(1) == [5]


def test_a_peer_that_does_not_read_is_not_served_further(open_bench: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "OUTGOING_MAX_BYTES", 10_000)
    calls = []

    def large(_node: Any, _request: Request) -> Answer:
        calls.append(1)
        partition = FetchResponse.PartitionData(records=bytes(2_000_000))
        return FetchResponse(responses=(FetchResponse.FetchableTopicResponse(topic="t", partitions=(partition,)),))

    bench = open_bench(large, key=FETCH)
    request = frames.write_request(fetch_request(), 4, correlation_id=1)
    bench.client.sendall(request * 5)
    bench.turn()
    assert len(calls) < 5
    received = 0
    while len(calls) < 5 or not bench.connection.is_idle:
        received += len(bench.client.recv(1 << 20))
        if bench.fd in bench.loop.writers:
            bench.loop.writers[bench.fd]()
    assert received > 4 * 2_000_000


def test_one_answer_that_the_socket_takes_in_pieces_arrives_whole(open_bench: Opener) -> None:
    body = bytes(range(256)) * 8_000
    bench = open_bench(lambda _node, _request: Encoded(body))
    for number in (7, 8):
        bench.send(number)
        assert bench.fd in bench.loop.writers
        head = number.to_bytes(4, "big") + b"\x00"
        wanted = (len(head) + len(body)).to_bytes(4, "big") + head + body
        received = b""
        while len(received) < len(wanted):
            received += bench.client.recv(1 << 20)
            if bench.fd in bench.loop.writers:
                bench.loop.writers[bench.fd]()
        assert received == wanted
        assert bench.connection.is_idle


def test_frames_behind_a_parked_request_are_bounded(
    parking: Bench, parked: list[DelayedResponse], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "QUEUED_FRAMES_MAX", 10)
    parking.send(*range(30))
    assert parking.fd not in parking.loop.readers
    while parked and not parked[-1].is_complete:
        parked[-1].complete(HeartbeatResponse())
    assert parking.answers(30) == list(range(30))
    assert parking.fd in parking.loop.readers


@pytest.mark.parametrize("has_sendfile", [True, False])
def test_records_leave_from_a_file(
    open_bench: Opener, tmp_path: Path, has_sendfile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_queue_module, "_SENDFILE", has_sendfile)
    content = bytes(range(256)) * 4_000
    (tmp_path / "x.log").write_bytes(content)
    file = LogFile(Directory(LogStorage(OsDisk()), str(tmp_path)), "x.log")

    def from_file(_node: Any, _request: Request) -> Answer:
        short, long = FileSpan(file, 10, 100), FileSpan(file, 1_000, 900_000)
        partitions = tuple(FetchResponse.PartitionData(records=span) for span in (short, long))  # type: ignore[arg-type]
        return FetchResponse(responses=(FetchResponse.FetchableTopicResponse(topic="t", partitions=partitions),))

    bench = open_bench(from_file, key=FETCH)
    bench.client.sendall(frames.write_request(fetch_request(), 4, correlation_id=1))
    bench.turn()
    size = int.from_bytes(receive_with_writes(bench, 4), "big")
    answer = frames.read_response(receive_with_writes(bench, size), FETCH, 4)
    read = [bytes(part.records) for part in answer.body.responses[0].partitions]
    assert read == [content[10:110], content[1_000:901_000]]
    assert not file.is_pinned


def receive_with_writes(bench: Bench, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if bench.fd in bench.loop.writers:
            bench.loop.writers[bench.fd]()
        data += bench.client.recv(size - len(data))
    return data


def test_a_connection_that_goes_cancels_what_waits_and_lets_go_of_files(
    parking: Bench, parked: list[DelayedResponse]
) -> None:
    cancelled = []
    parking.send(1)
    parked[0].on_cancel = lambda: cancelled.append(True)
    parking.client.close()
    parking.turn()
    assert cancelled == [True]
    parked[0].complete(HeartbeatResponse())  # too late, no harm


def test_draining_answers_what_was_asked_and_closes(parking: Bench, parked: list[DelayedResponse]) -> None:
    parking.send(1)
    parking.connection.drain()
    assert not parking.connection.is_closed
    parked[0].complete(HeartbeatResponse())
    assert parking.answers(1) == [1]
    assert parking.connection.is_closed


def test_a_size_that_comes_in_pieces_is_judged_as_soon_as_it_is_there(open_bench: Opener) -> None:
    bench = open_bench(answer_at_once, limits=ConnectionLimits(frame_max_bytes=1_000))
    bench.client.sendall(b"\x00\x00")
    bench.turn()
    assert not bench.connection.is_closed
    bench.client.sendall((1_001).to_bytes(4, "big")[2:])
    bench.turn()
    assert bench.connection.is_closed


def test_two_connections_do_not_mix_what_they_receive(open_bench: Opener) -> None:
    one, other = open_bench(answer_at_once), open_bench(answer_at_once)
    first, second = heartbeat(1), heartbeat(2)
    one.client.sendall(first[:9])
    one.turn()
    other.client.sendall(second[:11])
    other.turn()
    one.client.sendall(first[9:] + heartbeat(3))
    one.turn()
    other.client.sendall(second[11:])
    other.turn()
    assert (one.answers(2), other.answers(1)) == ([1, 3], [2])
