"""Records of `__share_group_state` in Kafka's JSON, with the fields that jobs use."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["STATE_TYPES", "State", "StateKey", "read_state", "read_state_key"]

STATE_TYPES: Final = ("ShareSnapshot", "ShareUpdate")


class Batch(msgspec.Struct, rename="camel", gc=False):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class State(msgspec.Struct, rename="camel", gc=False):
    """The value of a snapshot or of an update, which has no state epoch."""

    start_offset: int = -1
    state_epoch: int | None = None
    delivery_complete_count: int | None = None
    state_batches: tuple[Batch, ...] = ()

    @property
    def start(self) -> int | None:
        """The start offset; None if an update does not change it."""
        return None if self.start_offset < 0 else self.start_offset


class StateKey(msgspec.Struct, rename="camel", gc=False):
    group_id: str
    topic_id: str
    partition: int


read_state: Final = msgspec.json.Decoder(State).decode
read_state_key: Final = msgspec.json.Decoder(StateKey).decode
