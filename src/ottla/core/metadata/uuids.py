"""Ids of 16 bytes: those that are reserved, and how to draw a usable one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from ottla.wire import uuid_text
from ottla.wire.properties import RESERVED_IDS

NO_ID: Final = bytes(16)
MIGRATING: Final = bytes(16)
"""Of a replica's directory: from a time when directories had no ids."""
UNASSIGNED: Final = bytes(15) + b"\x01"
"""Of a replica's directory: its broker has not said yet which."""
LOST: Final = bytes(15) + b"\x02"
"""Of a replica's directory: it has failed."""
METADATA_TOPIC_ID: Final = bytes(15) + b"\x01"

_DRAWS_MAX: Final = 1000


def is_reserved(raw: bytes) -> bool:
    """The first hundred numbers have, or may get, a meaning of their own."""
    return int.from_bytes(raw, "big") < RESERVED_IDS


def is_usable(raw: bytes) -> bool:
    """Not reserved, and no leading dash: tools would take the text for an option."""
    return not is_reserved(raw) and not uuid_text(raw).startswith("-")


def draw(new_uuid: Callable[[], bytes], taken: Collection[bytes] = ()) -> bytes:
    """A usable id that nobody has yet."""
    for _ in range(_DRAWS_MAX):
        raw = new_uuid()
        if is_usable(raw) and raw not in taken:
            return raw
    raise AssertionError(f"no usable id in {_DRAWS_MAX} draws: the source of randomness is broken")
