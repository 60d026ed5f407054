"""Broken messages: golden ones, cut, flipped, stretched and with lengths that lie. All from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.unit.wire.message_vectors import raw, vectors

INPUT_MAX_BYTES = 4_000
"""Longer vectors say nothing new about hostility and take the interpreter long."""
LIES = (
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\x80\x00",
    b"\x80\x01",
    b"\xff",
    b"\xff\x7f",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x80\x00",
    b"\x7f\xff",
    b"\x80\x00\x00\x00",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xfe",
)
"""Lengths and counts that claim too much, too little or something odd."""


class Mutation(NamedTuple):
    name: str
    version: int
    data: bytes


@cache
def seeds() -> tuple[Mutation, ...]:
    return tuple(
        Mutation(name, case["version"], raw(case))
        for name, cases in sorted(vectors().items())
        for case in cases
        if len(case["hex"]) // 2 <= INPUT_MAX_BYTES
    )


def mutations(seed: int, count: int) -> Iterator[Mutation]:
    source = random.Random(seed)
    good = seeds()
    for _ in range(count):
        name, version, data = source.choice(good)
        for _ in range(source.choice((1, 1, 1, 2, 4))):
            data = mutated(source, data)
        yield Mutation(name, version, data)


def mutated(source: random.Random, data: bytes) -> bytes:
    at = source.randrange(len(data) + 1)
    kind = source.randrange(6)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + source.choice(LIES) + data[at + 1 :]
    if kind == 2:
        return data[:at] + source.choice(LIES) + data[at:]
    if kind == 3:
        return data[:at] + bytes([source.randrange(256)]) + data[at + 1 :]
    if kind == 4:
        return data[:at] + data[at + source.randrange(1, 9) :]
    return data + source.randbytes(source.randrange(1, 9))
