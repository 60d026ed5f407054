"""Records of `__share_group_state`."""

from __future__ import annotations

from typing import Any, Final

from ottla.wire.keyed import versioned_decoder

__all__ = ["SNAPSHOT", "STATE_TYPES", "read_state", "start_of"]

SNAPSHOT: Final = "ShareSnapshot"
STATE_TYPES: Final = (SNAPSHOT, "ShareUpdate")
_READERS: Final = {each: versioned_decoder(f"{each}Value") for each in STATE_TYPES}


def read_state(record_type: str, value: bytes) -> Any:
    """The value of a snapshot or an update. WireError if it cannot be read."""
    return _READERS[record_type](value)


def start_of(state: Any) -> int | None:
    """The start offset; None if an update does not change it."""
    return None if state.start_offset < 0 else state.start_offset
