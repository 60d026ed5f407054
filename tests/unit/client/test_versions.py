"""The highest common version, and clear words where there is none."""

import pytest

from ottla.client.address import Address, Peer
from ottla.client.errors import UnsupportedVersionError
from ottla.client.versions import ApiRange, api_of, choose_version, ranges_of
from ottla.wire.index import MESSAGES
from ottla.wire.types import ApiVersionsResponse, FetchRequest, FetchResponse

PEER = Peer(Address("kafka", 9092), 3)
FETCH = MESSAGES["FetchRequest"]


def choose(low: int, high: int, wanted: int | None = None) -> int:
    return choose_version("Fetch", {1: ApiRange(low, high)}, PEER, wanted)


@pytest.mark.parametrize(
    ("low", "high", "version"),
    [(0, 99, FETCH.high), (4, 12, 12), (0, 4, 4), (FETCH.high, 99, FETCH.high)],
)
def test_the_highest_common_version_is_chosen(low: int, high: int, version: int):
    assert choose(low, high) == version


@pytest.mark.parametrize(("low", "high"), [(0, 3), (FETCH.high + 1, 99)])
def test_ranges_without_overlap_are_refused(low: int, high: int):
    with pytest.raises(
        UnsupportedVersionError, match=rf"Fetch cannot be sent to broker 3 .*: it supports v{low} to v{high}"
    ):
        choose(low, high)


def test_an_api_that_is_not_there_is_named():
    with pytest.raises(UnsupportedVersionError, match=r"ShareFetch cannot be sent to .*: it does not support this API"):
        choose_version("ShareFetch", {1: ApiRange(4, 12)}, PEER)


def test_a_version_may_be_asked_for():
    assert choose(4, 12, wanted=7) == 7
    with pytest.raises(UnsupportedVersionError, match=r"Fetch v13 cannot be sent to .*: it supports v4 to v12"):
        choose(4, 12, wanted=13)


def test_an_unstable_version_is_spoken_only_when_wanted():
    entry = MESSAGES["InitProducerIdRequest"]
    assert entry.unstable
    ranges = {22: ApiRange(0, entry.high)}
    assert choose_version("InitProducerId", ranges, PEER) == entry.high - 1
    assert choose_version("InitProducerId", ranges, PEER, entry.high) == entry.high


def test_offers_are_read_by_key():
    offered = [ApiVersionsResponse.ApiVersion(1, 4, 18), ApiVersionsResponse.ApiVersion(18, 3, 3)]
    assert ranges_of(offered) == {1: ApiRange(4, 18), 18: ApiRange(3, 3)}
    assert str(ranges_of(offered)[18]) == "v3"


def test_only_requests_belong_to_an_api():
    assert api_of(FetchRequest) == "Fetch"
    for other in (FetchResponse, int):
        with pytest.raises(UnsupportedVersionError, match="is not a request"):
            api_of(other)
