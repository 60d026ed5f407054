"""The life cycle of this broker in its cluster: registration, heartbeats, controlled shutdown.

Registrations and heartbeats go through the controller channel, whichever node the controller is on.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ottla.broker.config.node_config import ListenerConfig
from ottla.broker.config.settings import Settings
from ottla.broker.controller.channel import ControllerChannel
from ottla.broker.controller.metadata_replay import MetadataLogError
from ottla.broker.controller.publisher import MetadataPublisher
from ottla.broker.loop.clock import Clock
from ottla.broker.replicas.replicas import Replica
from ottla.broker.replicas.storage import NodeStorage, cordoned
from ottla.core.metadata.features import CONTROLLER_REGISTRATION_FROM, OTTLA_VERSION, OTTLA_VERSIONS, supported
from ottla.log.directory import LogDirectory
from ottla.wire.errors import ErrorCode
from ottla.wire.types.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.types.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.types.controller_registration import ControllerRegistrationRequest

__all__ = ["BrokerLifecycle"]

log = logging.getLogger(__name__)

_REGISTRATION_VERSION = 4
_HEARTBEAT_VERSION = 2
_SHUTDOWN_SECONDS = 5.0
_SHUTDOWN_PAUSE_SECONDS = 0.05
_REGISTRATION_PAUSE_SECONDS = 0.2
_PASSING = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_BROKER_REGISTRATION)
"""Refusals of a registration that pass by themselves."""


class BrokerLifecycle:
    """Registers the node with the controller and sends its heartbeats."""

    def __init__(
        self,
        settings: Settings,
        storage: NodeStorage,
        publisher: MetadataPublisher,
        channel: ControllerChannel,
        new_uuid: Callable[[], bytes],
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._config = settings.config
        self._storage = storage
        self._publisher = publisher
        self._image = publisher.image
        self._channel = channel
        self._new_uuid = new_uuid
        self._clock = clock
        self.broker_id = self._config.node_id
        self.broker_epoch = -1
        self._listeners: tuple[ListenerConfig, ...] = ()
        self.is_waiting = False
        """A registration or heartbeat of `stay` waits for its reply."""
        self._awake_at_ms = clock.monotonic_ms()
        """When the node last came to look after its heartbeats."""
        self._is_in_doubt = False
        """It has stood still since, for as long as a session."""

    async def register_controller(self, listeners: Sequence[ListenerConfig]) -> None:
        """Register the node as controller, or leave that until metadata.version has records for it.

        Raises MetadataLogError if it is refused, or if no controller is active in time.
        """
        request = self._controller_registration(listeners)
        reply = await self._register(request, 0)
        is_too_early = self._image.metadata_version < CONTROLLER_REGISTRATION_FROM
        if reply.error_code != ErrorCode.UNSUPPORTED_VERSION or not is_too_early:
            self._check(reply.error_code, "controller")
            return
        loop = asyncio.get_running_loop()

        def send_soon() -> None:
            loop.call_soon(partial(self._channel.send, request, 0, lambda reply: None))

        self._publisher.when(lambda: self._image.metadata_version >= CONTROLLER_REGISTRATION_FROM, send_soon)

    async def register(self, listeners: Sequence[ListenerConfig]) -> None:
        """Register the node as broker, and read the metadata up to there.

        Raises MetadataLogError if it is refused, or if no controller can be reached in time.
        """
        self._listeners = tuple(listeners)
        reply = await self._register(self._broker_registration(), _REGISTRATION_VERSION)
        self._check(reply.error_code, "broker")
        self.broker_epoch = reply.broker_epoch
        read = asyncio.get_running_loop().create_future()
        self._publisher.when(lambda: self._is_registered, lambda: read.set_result(None))
        await read

    async def _register(self, request: object, version: int) -> Any:  # noqa: ANN401
        """Ask until a controller takes it: there may be none yet, or one that does not know that this node was gone."""
        loop = asyncio.get_running_loop()
        # A controller alone waits for as long as it takes: others may start much later, and need it.
        patience_ms = self._config["initial.broker.registration.timeout.ms"] if self._config.is_broker else math.inf
        until = loop.time() + patience_ms / 1000
        while True:
            reply = await self._channel.call(request, version)
            if reply.error_code not in _PASSING or loop.time() >= until:
                return reply
            await asyncio.sleep(_REGISTRATION_PAUSE_SECONDS)

    def _check(self, code: int, role: str) -> None:
        if not code:
            return
        reason = f"the {role} cannot be registered: {ErrorCode(code).name}"
        if code == ErrorCode.UNSUPPORTED_VERSION:
            ranges = dict(self._features())
            misfits = [
                f"{name} is at level {level}, but this node supports {low} to {high}"
                for name, level in self._image.features.items()
                for low, high in [ranges.get(name, (0, 0))]
                if not low <= level <= high
            ]
            reason = f"{reason} ({'; '.join(misfits)})" if misfits else reason
        raise MetadataLogError(reason)

    @property
    def _is_registered(self) -> bool:
        broker = self._image.brokers.get(self.broker_id)
        return broker is not None and broker.epoch == self.broker_epoch

    def _controller_registration(self, listeners: Sequence[ListenerConfig]) -> ControllerRegistrationRequest:
        kind = ControllerRegistrationRequest
        return kind(
            controller_id=self.broker_id,
            incarnation_id=self._new_uuid(),
            listeners=tuple(kind.Listener(*each) for each in listeners),
            features=tuple(kind.Feature(name, low, high) for name, (low, high) in self._features()),
        )

    def _broker_registration(self) -> BrokerRegistrationRequest:
        kind = BrokerRegistrationRequest
        return kind(
            broker_id=self.broker_id,
            cluster_id=self._storage.cluster_id,
            incarnation_id=self._new_uuid(),
            listeners=tuple(kind.Listener(*each) for each in self._listeners),
            features=(
                *(kind.Feature(name, low, high) for name, (low, high) in self._features()),
                kind.Feature(OTTLA_VERSION, *OTTLA_VERSIONS),
            ),
            rack=self._config["broker.rack"],
            log_dirs=tuple(self._storage.directory_ids()),
            previous_broker_epoch=self._storage.previous_broker_epoch,
        )

    def _features(self) -> list[tuple[str, tuple[int, int]]]:
        return sorted(supported(is_unstable=self._config["unstable.feature.versions.enable"]).items())

    def stay(self) -> None:
        """Send a heartbeat. A broker that was unregistered while it runs registers again."""
        now_ms = self._clock.monotonic_ms()
        self._is_in_doubt |= self._has_stood_still(now_ms)
        self._awake_at_ms = now_ms
        if self.is_waiting:
            return
        self.is_waiting = True
        if self.broker_id in self._image.brokers:
            # Given up early, it is sent again on another connection before the session ends.
            patience_ms = self._config["broker.session.timeout.ms"] // 2
            self._channel.send(self._heartbeat(), _HEARTBEAT_VERSION, self._replied, timeout_ms=patience_ms)
        else:
            log.warning("broker %d was unregistered while it is running; registering again", self.broker_id)
            self._channel.send(self._broker_registration(), _REGISTRATION_VERSION, self._registered_again)

    def _replied(self, reply: BrokerHeartbeatResponse) -> None:
        self.is_waiting = False
        if not reply.error_code and not reply.is_fenced:
            self._is_in_doubt = False

    def may_be_replaced(self) -> bool:
        """Whether others may lead by now what this broker believes to lead: its process stood still for as long as a
        session, and the controller has not taken it for alive since. What it would answer from memory may be stale."""
        is_alone = len(self._image.brokers) <= 1
        return not is_alone and (self._is_in_doubt or self._has_stood_still(self._clock.monotonic_ms()))

    def _has_stood_still(self, now_ms: int) -> bool:
        session_ms: int = self._config["broker.session.timeout.ms"]
        return now_ms - self._awake_at_ms >= session_ms

    def _registered_again(self, reply: BrokerRegistrationResponse) -> None:
        self.is_waiting = False
        if not reply.error_code:
            self.broker_epoch = reply.broker_epoch
            self.stay()

    async def heartbeat(self, *, want_fence: bool = False, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        """Send a heartbeat and wait for the reply."""
        self._awake_at_ms = self._clock.monotonic_ms()
        request = self._heartbeat(want_fence=want_fence, want_shut_down=want_shut_down)
        reply: BrokerHeartbeatResponse = await self._channel.call(request, _HEARTBEAT_VERSION)
        return reply

    def _heartbeat(self, *, want_fence: bool = False, want_shut_down: bool = False) -> BrokerHeartbeatRequest:
        """A heartbeat, with the log directories that have failed."""
        offline = [directory for directory in self._storage.directories if directory.is_offline]
        return BrokerHeartbeatRequest(
            broker_id=self.broker_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._image.last_offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=_ids(offline),
            cordoned_log_dirs=_ids(cordoned(self._settings, self._storage.directories)),
        )

    def assign(self, placed: Iterable[tuple[Replica, LogDirectory]], done: Callable[[], None]) -> None:
        """Tell the controller which directories hold replicas; `done` is called when it knows, or has refused."""
        kind = AssignReplicasToDirsRequest
        by_directory: dict[bytes, dict[bytes, list[int]]] = {}
        for replica, directory in placed:
            directory_id = directory.properties.directory_id
            if directory_id is not None:
                topics = by_directory.setdefault(directory_id, {})
                topics.setdefault(replica.topic_id, []).append(replica.topic_partition.partition)
        directories = tuple(
            kind.DirectoryData(
                directory_id,
                tuple(
                    kind.TopicData(topic_id, tuple(map(kind.PartitionData, each))) for topic_id, each in topics.items()
                ),
            )
            for directory_id, topics in by_directory.items()
        )
        self._channel.send(kind(self.broker_id, self.broker_epoch, directories), 0, lambda _: done())

    async def leave(self) -> None:
        """Give up leadership and be fenced: a controlled shutdown, for as long as the controller answers."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SHUTDOWN_SECONDS):
                while True:
                    reply = await self.heartbeat(want_shut_down=True)
                    if reply.should_shut_down or reply.error_code:
                        return
                    await asyncio.sleep(_SHUTDOWN_PAUSE_SECONDS)


def _ids(directories: Iterable[LogDirectory]) -> tuple[bytes, ...]:
    ids = (directory.properties.directory_id for directory in directories)
    return tuple(each for each in ids if each is not None)
