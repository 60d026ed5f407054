"""Frames that no honest client sends, all from a seed: noise, lies about sizes, broken and odd requests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from ottla.broker.handlers import SERVED
from ottla.wire import frames
from ottla.wire.frames import request_header_version
from tests.property.mutation import LIES, mutated, seeds

NOISE_MAX_BYTES = 300


class Weapon(NamedTuple):
    kind: str
    data: bytes
    """What goes over the wire, with its size in front, true or not."""

    @property
    def api_key(self) -> int:
        return int.from_bytes(self.data[4:6], "big")


class Body(NamedTuple):
    key: int
    version: int
    data: bytes


@cache
def bodies() -> tuple[Body, ...]:
    """Golden requests of the APIs that are served."""
    keys = {f"{name}Request": key for key, name in frames.api_names().items() if key in SERVED}
    return tuple(Body(keys[name], version, data) for name, version, data in seeds() if name in keys)


def weapons(seed: int, count: int, spared: int | None = None) -> Iterator[Weapon]:
    """So many frames; none asks for the API with the spared key."""
    return islice((each for each in _all_weapons(seed) if each.api_key != spared), count)


def _all_weapons(seed: int) -> Iterator[Weapon]:
    source = random.Random(seed)
    makers = (_noise, _wrong_size, _broken_header, _broken_body, _broken_body, _broken_body, _golden, _foreign_body)
    while True:
        yield source.choice(makers)(source)


def _framed(data: bytes, size: int | None = None) -> bytes:
    return (len(data) if size is None else size).to_bytes(4, "big", signed=True) + data


def _request(source: random.Random, body: Body, data: bytes) -> bytes:
    client_id = source.choice((b"\xff\xff", b"\x00\x00", b"\x00\x07hostile"))
    tags = b"\x00" if request_header_version(body.key, body.version) == 2 else b""
    head = body.key.to_bytes(2, "big") + body.version.to_bytes(2, "big") + source.randbytes(4)
    return head + client_id + tags + data


def _noise(source: random.Random) -> Weapon:
    return Weapon("noise", _framed(source.randbytes(source.randrange(NOISE_MAX_BYTES))))


def _wrong_size(source: random.Random) -> Weapon:
    size = source.choice((-1, 0, 1, 3, -(2**31), 2**31 - 1, 104_857_601, 100_000))
    return Weapon("wrong size", _framed(source.randbytes(source.randrange(40)), size))


def _broken_header(source: random.Random) -> Weapon:
    body = source.choice(bodies())
    whole = _request(source, body, body.data)
    at = source.randrange(14)
    broken = whole[:at] + source.choice(LIES) + whole[at + 1 :]
    return Weapon("broken header", _framed(broken))


def _broken_body(source: random.Random) -> Weapon:
    body = source.choice(bodies())
    data = body.data
    for _ in range(source.choice((1, 1, 2, 4))):
        data = mutated(source, data)
    return Weapon("broken body", _framed(_request(source, body, data)))


def _golden(source: random.Random) -> Weapon:
    """Well formed, and about things that do not exist, with numbers at their limits."""
    body = source.choice(bodies())
    return Weapon("golden", _framed(_request(source, body, body.data)))


def _foreign_body(source: random.Random) -> Weapon:
    body = source.choice(bodies())
    return Weapon("foreign body", _framed(_request(source, body, source.choice(bodies()).data)))
