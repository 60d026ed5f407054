"""The records that are in flight in the share partitions of a node, as plain values for the inspect listener."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ottla.core.share.partition.states import RecordState
from ottla.core.share.partition.window import NO_WRITE, Run, Window
from ottla.wire import uuid_text

if TYPE_CHECKING:
    from ottla.broker.loop.clock import Clock
    from ottla.broker.share.led_share_partition import LedSharePartition
    from ottla.core.metadata.image import MetadataImage

__all__ = ["share_window"]


def share_window(
    group_id: str, partitions: Iterable[LedSharePartition], *, node_id: int, image: MetadataImage, clock: Clock
) -> dict[str, Any]:
    """The share partitions of a group: their offsets, and the state of each range of records."""
    now_ms = clock.monotonic_ms()
    views = [_partition(led, image.topic_name(led.key.topic_id), now_ms) for led in partitions]
    return {
        "group": group_id,
        "node": node_id,
        "partitions": sorted(views, key=lambda view: (view["topic"] or "", view["partition"])),
    }


def _partition(led: LedSharePartition, topic: str | None, now_ms: int) -> dict[str, Any]:
    core, window = led.core, led.core.window
    return {
        "topic": topic,
        "topic_id": uuid_text(led.key.topic_id),
        "partition": led.key.partition,
        "phase": core.phase.value,
        "start_offset": window.start,
        "end_offset": window.end,
        "next_fetch_offset": window.next_fetch_offset,
        "in_flight": window.in_flight_count,
        "max_record_locks": core.settings.max_record_locks,
        "delivery_count_limit": core.settings.delivery_count_limit,
        "delivery_complete_count": window.complete_count,
        "state_epoch": core.state_epoch,
        "leader_epoch": core.leader_epoch,
        "ranges": [_range(run, now_ms) for run in window.runs() if _is_in_flight(run, window)],
    }


def _is_in_flight(run: Run, window: Window) -> bool:
    """A range that was deleted from the log stays as long as a member holds it."""
    return run.last >= window.start or run.state is RecordState.ACQUIRED


def _range(run: Run, now_ms: int) -> dict[str, Any]:
    is_acquired = run.state is RecordState.ACQUIRED
    return {
        "first_offset": run.first,
        "last_offset": run.last,
        "state": run.state.name,
        "next_state": run.target.name if run.write_id != NO_WRITE else None,
        "delivery_count": run.delivery_count,
        "member_id": run.member_id if is_acquired else None,
        "lock_timeout_ms": max(run.lock_at_ms - now_ms, 0) if is_acquired else None,
    }
