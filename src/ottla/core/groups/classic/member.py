"""A member of a classic group."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

from ottla.wire.types.join_group import JoinGroupRequest

__all__ = ["ClassicGroupMember", "Parked", "Protocol", "Terms", "terms_of"]


class Protocol(NamedTuple):
    """A way to assign that a member knows, and what it says about itself for it. Opaque to the broker."""

    name: str
    metadata: bytes


class Terms(NamedTuple):
    """On what terms somebody is a member. Each JoinGroup may change them."""

    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]


def terms_of(request: JoinGroupRequest, api_version: int) -> Terms:
    """Version 0 has no rebalance time-out and takes the session's. Of two protocols of one name the first counts."""
    rebalance_timeout_ms = request.rebalance_timeout_ms if api_version > 0 else request.session_timeout_ms
    named = {each.name: each.metadata for each in reversed(request.protocols)}
    protocols = tuple(Protocol(name, named[name]) for name in dict.fromkeys(each.name for each in request.protocols))
    return Terms(rebalance_timeout_ms, request.session_timeout_ms, protocols)


class Parked(NamedTuple):
    """A request that is answered later."""

    token: Any
    api_version: int


class ClassicGroupMember:
    """Soft fields are `join`, `sync`, `is_new` and `session_at_ms`; the rest is soft as well until it is recorded."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join",
        "member_id",
        "session_at_ms",
        "sync",
        "terms",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        terms: Terms,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.terms = terms
        self.assignment = assignment
        self.join: Parked | None = None
        self.sync: Parked | None = None
        self.is_new = False
        """It has not seen the end of a rebalance yet, does not know its id and cannot send heartbeats."""
        self.session_at_ms = 0
        """When the session ends. A heartbeat moves this alone; the timer, which may be earlier, is set again when it
        comes, so that the most frequent request costs next to nothing."""

    def __repr__(self) -> str:
        return f"Member({self.member_id!r})"

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether it waits for an answer, so that no sign of life can be expected of it. The answer, whatever it is,
        must begin its session anew, since its timer may have come meanwhile."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    @property
    def rebalance_timeout_ms(self) -> int:
        return self.terms.rebalance_timeout_ms

    @property
    def session_timeout_ms(self) -> int:
        return self.terms.session_timeout_ms

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        return self.terms.protocols

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it says about itself for a protocol; nothing, if it does not know it."""
        return next((each.metadata for each in self.protocols if each.name == protocol_name), b"")

    def vote(self, candidates: Container[str]) -> str | None:
        """The first of its protocols that is among the candidates."""
        return next((each.name for each in self.protocols if each.name in candidates), None)

    def renew(self, now_ms: int) -> int:
        """It has shown that it lives. Gives the end of its session."""
        self.session_at_ms = now_ms + self.terms.session_timeout_ms
        return self.session_at_ms
