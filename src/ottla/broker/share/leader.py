"""The share partitions that are led here, and the sessions of the members who fetch from them.

A share partition is made by the first fetch that names it and lives until it is dropped: leadership moves, the topic is
deleted, its state was changed elsewhere, a write was fenced, or the group has no session left here. Then everything but
what the share coordinator has kept is forgotten, and the next fetch makes a new one.

Requests are in `delayed_share_fetch` and `acknowledgements`; a single share partition is in `led_share_partition`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from functools import partial
from typing import Final

from ottla.broker.share.counts import GroupCounts
from ottla.broker.share.edge import Edge, Source
from ottla.broker.share.led_share_partition import LedSharePartition
from ottla.core.coordinator.deadlines import Deadlines
from ottla.core.metadata.features import DEAD_LETTERS_FROM
from ottla.core.share.partition import SharePartitionSettings
from ottla.core.share.sessions import Ended, ShareSession, ShareSessions
from ottla.core.share.state.kept import Key
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["ShareLeader"]

_SESSIONS_MAX: Final = "group.share.max.share.sessions"
SETTINGS_MAX: Final = 10_000
"""Groups whose settings are cached: a client that may fetch can name any number of groups."""


class ShareLeader:
    def __init__(self, edge: Edge) -> None:
        self.edge = edge
        self.sessions = ShareSessions(edge.setting(_SESSIONS_MAX))
        self.counts = GroupCounts()
        self._led: dict[Key, LedSharePartition] = {}
        self._deadlines = Deadlines()
        self._settings: dict[str, SharePartitionSettings] = {}
        self._settings_version = -1

    def __iter__(self) -> Iterator[LedSharePartition]:
        return iter(list(self._led.values()))

    # --- share partitions ---------------------------------------------------------------------------------------------

    def get(self, key: Key) -> LedSharePartition | None:
        return self._led.get(key)

    def lead(self, key: Key, source: Source) -> LedSharePartition:
        """The share partition; if it is new it begins to load its state."""
        led = self._led.get(key)
        if led is not None and (led.source is not source or led.core.leader_epoch != source.leader_epoch):
            led.drop(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # it is led again, and somebody else may have led it meanwhile
            led = None
        if led is None:
            led = self._led[key] = LedSharePartition(key, source, self)
            led.load()
        led.is_retiring = False
        return led

    def forget(self, led: LedSharePartition) -> None:
        """Remove a share partition that was dropped."""
        self._deadlines.cancel(led)
        if self._led.get(led.key) is led:
            del self._led[led.key]

    def drop(self, group_id: str, topic_ids: Collection[bytes] | None = None) -> None:
        """Drop share partitions of a group whose state was changed elsewhere."""
        for key, led in list(self._led.items()):
            if key.group_id == group_id and (topic_ids is None or key.topic_id in topic_ids):
                led.drop(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def follow(self) -> None:
        """The cluster has changed: drop what is not led here any more, and all if share groups were switched off."""
        self._settings_version = -1  # what a group may have depends on features
        if not self.edge.share_version():
            self.stop()
            return
        for led in self:
            error = self._fault(led)
            if error is not None:
                led.drop(error)

    def _fault(self, led: LedSharePartition) -> ErrorCode | None:
        """Why a share partition cannot be served from here any more."""
        name = self.edge.topic_name(led.key.topic_id)
        if name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        try:
            source = self.edge.source(name, led.key.partition)
        except Reject as reject:
            return reject.code
        is_same = source is led.source and source.leader_epoch == led.core.leader_epoch
        return None if is_same else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def stop(self) -> None:
        """Share groups are switched off, or the node stops: nothing is kept."""
        self.sessions.close_all()
        for led in self:
            led.drop(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # --- settings -----------------------------------------------------------------------------------------------------

    def settings(self, group_id: str) -> SharePartitionSettings:
        """The present settings of a group."""
        version = self.edge.settings_version
        if self._settings_version != version:
            self._settings_version = version
            self._settings.clear()
        settings = self._settings.get(group_id)
        if settings is None:
            if len(self._settings) > SETTINGS_MAX:
                self._settings.clear()
            settings = self._settings[group_id] = self._read_settings(group_id)
        return settings

    def _read_settings(self, group_id: str) -> SharePartitionSettings:
        bounded = partial(self._bounded_setting, group_id)
        return SharePartitionSettings(
            lock_duration_ms=bounded("record.lock.duration.ms"),
            delivery_count_limit=bounded("delivery.count.limit"),
            max_record_locks=bounded("partition.max.record.locks"),
            is_renew_enabled=self.edge.group_setting(group_id, "share.renew.acknowledge.enable"),
            has_dead_letters=self.edge.share_version() >= DEAD_LETTERS_FROM and self._has_queue(group_id),
        )

    def _bounded_setting(self, group_id: str, name: str) -> int:
        """A group's own value that has come to lie outside the broker's bounds counts as the nearest one inside."""
        value: int = self.edge.group_setting(group_id, f"share.{name}")
        low: int = self.edge.setting(f"group.share.min.{name}")
        high: int = self.edge.setting(f"group.share.max.{name}")
        return max(min(value, high), low)

    def _has_queue(self, group_id: str) -> bool:
        name: str | None = self.edge.group_setting(group_id, "errors.deadletterqueue.topic.name")
        return bool(name and name.strip())

    # --- the ends of sessions -----------------------------------------------------------------------------------------

    def close(self, session: ShareSession) -> None:
        """End a session, after its last response."""
        ended = self.sessions.close(session)
        if ended is not None:
            self._release(ended)

    def disconnected(self, connection: Hashable) -> None:
        """A connection is gone, and with it the sessions that it has opened."""
        for ended in self.sessions.disconnected(connection):
            self._release(ended)

    def _release(self, ended: Ended) -> None:
        """Release the records that a member holds; then drop the share partitions of a group without sessions."""
        held = [led for each in ended.partitions if (led := self._led.get(Key(ended.group_id, *each))) is not None]
        unwritten = len(held) + 1

        def released(_error: ErrorCode, _message: str | None) -> None:
            nonlocal unwritten
            unwritten -= 1
            if not unwritten and not self.sessions.has_group(ended.group_id):
                for led in self:
                    if led.key.group_id == ended.group_id:
                        led.retire()

        for led in held:
            led.release(ended.member_id, released)
        released(ErrorCode.NONE, None)

    # --- time ---------------------------------------------------------------------------------------------------------

    def due_at(self, led: LedSharePartition, at_ms: int) -> None:
        """Call `expire` of a share partition then: acquisition locks time out."""
        if self._deadlines.set(led, at_ms):
            self.edge.due_at(at_ms)

    def next_at_ms(self) -> int | None:
        """When `expire` has something to do."""
        return self._deadlines.next_at_ms()

    def expire(self) -> None:
        """End all acquisition locks that are due: one write, then one try for delayed fetches."""
        now_ms = self.edge.monotonic_ms()
        while (led := self._deadlines.take_due(now_ms)) is not None:
            assert isinstance(led, LedSharePartition)
            next_at_ms = led.expire()
            if next_at_ms is not None:
                self._deadlines.set(led, max(next_at_ms, now_ms + 1))
