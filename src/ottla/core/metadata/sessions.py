"""Who was heard of when: the brokers' sessions with the active controller. Soft state, begun anew by each one."""

from __future__ import annotations

from typing import Final

_LONG_AGO_MS: Final = -(10**15)


class BrokerSessions:
    """Times of last contact by (broker id, broker epoch), and how far each broker has read the metadata log."""

    __slots__ = ("_contact_at_ms", "_metadata_offsets", "_moved_at", "_silent", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._contact_at_ms: dict[tuple[int, int], int] = {}
        self._silent: set[tuple[int, int]] = set()
        self._metadata_offsets: dict[int, int] = {}
        self._moved_at: dict[int, tuple[int, int]] = {}

    def touch(self, broker_id: int, epoch: int, now_ms: int, metadata_offset: int | None = None) -> None:
        """A broker has shown that it lives."""
        self._contact_at_ms[broker_id, epoch] = now_ms
        self._silent.discard((broker_id, epoch))
        if metadata_offset is not None:
            self._metadata_offsets[broker_id] = metadata_offset

    def forget(self, broker_id: int, epoch: int) -> None:
        self._contact_at_ms.pop((broker_id, epoch), None)
        self._silent.discard((broker_id, epoch))
        self._metadata_offsets.pop(broker_id, None)
        self._moved_at.pop(broker_id, None)

    def is_alive(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Whether the broker has a session that has not run out."""
        contact_at_ms = self._contact_at_ms.get((broker_id, epoch))
        return contact_at_ms is not None and now_ms - contact_at_ms < self.timeout_ms

    def end(self, broker_id: int, epoch: int) -> None:
        """The broker's process is dead: its session has run out."""
        if (broker_id, epoch) in self._contact_at_ms:
            self._contact_at_ms[broker_id, epoch] = _LONG_AGO_MS

    def note_silence(self, broker_id: int, epoch: int) -> None:
        """Nobody serves at the broker's listeners, and its heartbeats have stopped. That may pass."""
        if (broker_id, epoch) in self._contact_at_ms:
            self._silent.add((broker_id, epoch))

    def is_silent(self, broker_id: int, epoch: int) -> bool:
        return (broker_id, epoch) in self._silent

    def metadata_offset(self, broker_id: int) -> int:
        """How far the broker says it has read; -1 if it has not said."""
        return self._metadata_offsets.get(broker_id, -1)

    def note_moves(self, broker_id: int, epoch: int, offset: int) -> None:
        """Leaders were moved off a broker that shuts down; a record at this offset was the last one."""
        self._moved_at[broker_id] = (epoch, offset)

    def moved_at(self, broker_id: int, epoch: int, default: int) -> int:
        """The offset of the last record that moved leaders off a broker in this life of its, if it is known."""
        noted_epoch, offset = self._moved_at.get(broker_id, (-1, -1))
        return offset if noted_epoch == epoch else default

    def excuse(self, duration_ms: int) -> None:
        """Nobody could be heard of for so long, since the controller itself stood still: that counts for nobody."""
        for key in self._contact_at_ms:
            self._contact_at_ms[key] += duration_ms

    def expired(self, now_ms: int) -> list[tuple[int, int]]:
        """Sessions that have run out, longest ago first."""
        late = [(at, key) for key, at in self._contact_at_ms.items() if now_ms - at >= self.timeout_ms]
        return [key for _, key in sorted(late)]

    def next_expiry_ms(self) -> int | None:
        """When the next session runs out if nothing is heard until then."""
        return min(self._contact_at_ms.values()) + self.timeout_ms if self._contact_at_ms else None
