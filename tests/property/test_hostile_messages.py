"""Broken bytes raise WireError and nothing else, soon, and without taking memory for what they claim."""

from __future__ import annotations

import tracemalloc

import pytest

from ottla.wire.compile import classes_of, message_shape
from ottla.wire.fault import WireError
from ottla.wire.trace import trace
from tests.property.judge import agrees_with_interpreter, peak_bytes, verdict
from tests.property.mutation import LIES, Mutation, mutations, seeds

MEMORY_FACTOR = 4
MEMORY_FLOOR_BYTES = 1 << 20
LENGTH_ROLES = ("length", "count", "null", "tags", "tag size")


@pytest.mark.parametrize("seed", range(1, 9))
def test_mutations_are_refused_or_read_as_the_interpreter_reads_them(seed: int) -> None:
    for broken in mutations(seed, 2_500):
        assert agrees_with_interpreter(broken, verdict(broken)), (seed, broken)


def test_every_cut_of_every_message_is_refused() -> None:
    for name, version, data in seeds()[::7]:
        for end in range(0, len(data), max(1, len(data) // 40)):
            found = verdict(Mutation(name, version, data[:end]))
            assert isinstance(found, WireError), (name, version, end)


def test_a_length_that_lies_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        for bomb in bombs():
            verdict(bomb)  # compiled and cached before it is measured
            assert peak_bytes(bomb) <= MEMORY_FACTOR * len(bomb.data) + MEMORY_FLOOR_BYTES, bomb
    finally:
        tracemalloc.stop()


def bombs() -> list[Mutation]:
    """Each length, count and size field of one dense message per version, replaced by huge ones."""
    found = []
    dense = {(name, version): data for name, version, data in seeds()}
    for (name, version), data in list(dense.items())[::3]:
        traced = trace(message_shape(name, version), classes_of(name), data)
        for span in [span for span in traced.spans if span.role in LENGTH_ROLES][:6]:
            lie = LIES[7] if span.type == "uvarint" else b"\x7f" + b"\xff" * (span.end - span.start - 1)
            found.append(Mutation(name, version, data[: span.start] + lie + data[span.end :]))
    return found
