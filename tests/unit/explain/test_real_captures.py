"""Captures of Java clients and Apache Kafka: nothing in them is unknown, and no response is without its request."""

from pathlib import Path

import pytest

from ottla.explain.exchanges import Exchange
from tests.unit.explain import real_captures
from tests.unit.explain.real_captures import complaints, exchanges_of

CAPTURES = sorted(real_captures.FOLDER.glob("*.pcap.gz"))
TCPDUMP, PROXY = CAPTURES


@pytest.fixture(scope="module")
def by_path() -> dict[Path, list[Exchange]]:
    return {path: exchanges_of(path) for path in CAPTURES}


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_every_byte_is_known_and_every_response_paired(path: Path, by_path: dict[Path, list[Exchange]]):
    exchanges = by_path[path]
    assert len(exchanges) > 300
    assert list(complaints(exchanges)) == []
    assert {each.first.api for each in exchanges if each.outcome == "unanswered"} <= {"Fetch"}  # a long poll, given up


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_the_protocols_are_there(path: Path, by_path: dict[Path, list[Exchange]]):
    apis = {exchange.first.api for exchange in by_path[path]}
    assert apis >= {"Produce", "Fetch", "JoinGroup", "ConsumerGroupHeartbeat", "ShareFetch", "EndTxn", "DescribeQuorum"}
    assert ("StreamsGroupHeartbeat" in apis) == (path == TCPDUMP)


def test_a_broker_that_is_older_than_the_client_answers_api_versions_in_version_0(by_path: dict[Path, list[Exchange]]):
    both = {
        (exchange.request.version, exchange.response.version)
        for exchange in by_path[PROXY]
        if exchange.first.api == "ApiVersions" and exchange.request and exchange.response
    }
    assert both == {(5, 0), (4, 4)}


@pytest.mark.parametrize("api", ["Fetch", "ShareFetch", "StreamsGroupHeartbeat"])
def test_a_wrong_byte_would_be_noticed(api: str, by_path: dict[Path, list[Exchange]]):
    """The judge can say no: each message of the API with one byte less is complained of."""
    from ottla.explain.exchanges import read_response

    answered = [each for each in by_path[TCPDUMP] if each.first.api == api and each.response is not None]
    assert answered
    for exchange in answered:
        assert exchange.request is not None
        assert exchange.response is not None
        frame = exchange.response.frame
        short = frame._replace(data=frame.data[:-1], size_bytes=frame.size_bytes - 1)
        broken = Exchange(exchange.request, read_response(short, exchange.request), "answered")
        assert list(complaints([broken]))


def test_an_unpaired_response_would_be_noticed(by_path: dict[Path, list[Exchange]]):
    some = next(each for each in by_path[TCPDUMP] if each.outcome == "answered")
    assert list(complaints([Exchange(None, some.response, "unpaired")]))
