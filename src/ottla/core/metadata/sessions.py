"""Who was heard of when: the brokers' sessions with the active controller. Soft state, begun anew by each one."""

from __future__ import annotations


class BrokerSessions:
    """Times of last contact by (broker id, broker epoch), and how far each broker has read the metadata log."""

    __slots__ = ("_contact_at_ms", "_metadata_offsets", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._contact_at_ms: dict[tuple[int, int], int] = {}
        self._metadata_offsets: dict[int, int] = {}

    def touch(self, broker_id: int, epoch: int, now_ms: int, metadata_offset: int | None = None) -> None:
        """A broker has shown that it lives."""
        self._contact_at_ms[broker_id, epoch] = now_ms
        if metadata_offset is not None:
            self._metadata_offsets[broker_id] = metadata_offset

    def forget(self, broker_id: int, epoch: int) -> None:
        self._contact_at_ms.pop((broker_id, epoch), None)
        self._metadata_offsets.pop(broker_id, None)

    def is_alive(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Whether the broker has a session that has not run out."""
        contact_at_ms = self._contact_at_ms.get((broker_id, epoch))
        return contact_at_ms is not None and now_ms - contact_at_ms < self.timeout_ms

    def metadata_offset(self, broker_id: int) -> int:
        """How far the broker says it has read; -1 if it has not said."""
        return self._metadata_offsets.get(broker_id, -1)

    def expired(self, now_ms: int) -> list[tuple[int, int]]:
        """Sessions that have run out, longest ago first."""
        late = [(at, key) for key, at in self._contact_at_ms.items() if now_ms - at >= self.timeout_ms]
        return [key for _, key in sorted(late)]

    def next_expiry_ms(self) -> int | None:
        """When the next session runs out if nothing is heard until then."""
        return min(self._contact_at_ms.values()) + self.timeout_ms if self._contact_at_ms else None
