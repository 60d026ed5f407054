"""What the codec makes of a broken message, and whether the interpreter sees it the same way."""

from __future__ import annotations

import tracemalloc

from ottla import wire
from ottla.wire.compile import classes_of, message_shape
from ottla.wire.fault import WireError
from ottla.wire.trace import trace
from tests.property.mutation import Mutation


def verdict(broken: Mutation) -> object:
    """The message, or the WireError that it raises; anything else goes through."""
    try:
        return wire.decode(broken.name, broken.version, broken.data)
    except WireError as error:
        _check_error(error, len(broken.data))
        return error


def _check_error(error: WireError, size: int) -> None:
    assert error.path, "an error without a path"
    assert error.byte_offset is not None, "an error without an offset"
    assert 0 <= error.byte_offset <= size
    assert "please report" not in error.reason, "the compiled codec and the interpreter disagree"


def agrees_with_interpreter(broken: Mutation, found: object) -> bool:
    traced = trace(message_shape(broken.name, broken.version), classes_of(broken.name), broken.data)
    if isinstance(found, WireError):
        return traced.error is not None and str(traced.error) == str(found)
    # Compared by their texts where they differ: a NaN is equal to itself there.
    return traced.error is None and (traced.message == found or repr(traced.message) == repr(found))


def peak_bytes(broken: Mutation) -> int:
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    verdict(broken)
    return tracemalloc.get_traced_memory()[1] - before
