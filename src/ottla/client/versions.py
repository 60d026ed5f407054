"""Which version of a message to speak: the highest that both sides have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.address import Peer
from ottla.client.errors import UnsupportedVersionError
from ottla.wire.index import MESSAGES
from ottla.wire.types.api_versions import ApiVersionsResponseApiVersion

__all__ = ["ApiRange", "ApiRanges", "api_of", "choose_version", "ranges_of"]


class ApiRange(NamedTuple):
    """The versions of an API that a broker takes, both ends included."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"v{self.low}" if self.low == self.high else f"v{self.low} to v{self.high}"


ApiRanges = Mapping[int, ApiRange]


def ranges_of(api_keys: Iterable[ApiVersionsResponseApiVersion]) -> dict[int, ApiRange]:
    """What an ApiVersions answer offers, by API key."""
    return {each.api_key: ApiRange(each.min_version, each.max_version) for each in api_keys}


def api_of(request: type) -> str:
    """The API that a request belongs to: FetchRequest -> Fetch."""
    name = request.__name__
    entry = MESSAGES.get(name)
    if entry is None or entry.kind != "request":
        raise UnsupportedVersionError(None, name, "it is not a request")
    return name.removesuffix("Request")


def choose_version(
    api: str, ranges: ApiRanges, peer: Peer, wanted: int | None = None, *, at_most: int | None = None
) -> int:
    """The highest common version not above `at_most`, or `wanted` if the broker has it; UnsupportedVersionError
    otherwise.

    An unstable version is spoken only if it is wanted: a broker offers it to those who develop it.
    """
    entry = MESSAGES[f"{api}Request"]
    assert entry.key is not None, f"{api} has no API key"
    offered = ranges.get(entry.key)
    if offered is None:
        raise UnsupportedVersionError(peer, api, "it does not support this API")
    if wanted is not None:
        if wanted not in range(offered.low, offered.high + 1):
            raise UnsupportedVersionError(peer, f"{api} v{wanted}", f"it supports {offered}")
        return wanted
    ours = ApiRange(entry.low, entry.high - 1 if entry.unstable and entry.high > entry.low else entry.high)
    if at_most is not None:
        ours = ours._replace(high=min(ours.high, at_most))
    version = min(offered.high, ours.high)
    if version < max(offered.low, ours.low):
        raise UnsupportedVersionError(peer, api, f"it supports {offered}, this client {ours}")
    return version
