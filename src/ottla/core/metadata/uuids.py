"""Ids of 16 bytes: those that are reserved, and how to draw a usable one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from ottla.wire import uuid_text
from ottla.wire.properties import RESERVED_IDS

UNASSIGNED: Final = bytes(16)
"""No id; of a replica's directory: not known yet."""
LOST: Final = bytes(15) + b"\x01"
"""The replica's directory has failed."""
MIGRATING: Final = bytes(15) + b"\x02"
"""From a time when directories had no ids."""
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
