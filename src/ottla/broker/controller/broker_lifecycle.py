"""The life cycle of this broker in its cluster: registration, heartbeats, controlled shutdown.

The node is broker and controller in one, so its registrations and heartbeats go straight to its metadata log, as the
same requests that a broker in another process would send.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from ottla.broker.config.node_config import ListenerConfig
from ottla.broker.config.settings import Settings
from ottla.broker.controller.metadata_log import MetadataLog, MetadataLogError
from ottla.broker.replicas.replicas import Replica
from ottla.broker.replicas.storage import NodeStorage, cordoned
from ottla.core.metadata.features import supported
from ottla.log.directory import LogDirectory
from ottla.wire.errors import ErrorCode
from ottla.wire.types.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.types.broker_registration import BrokerRegistrationRequest
from ottla.wire.types.controller_registration import ControllerRegistrationRequest

__all__ = ["BrokerLifecycle"]

log = logging.getLogger(__name__)

_REGISTRATION_VERSION = 4
_HEARTBEAT_VERSION = 2
_SHUTDOWN_STEPS_MAX = 10


class BrokerLifecycle:
    """Registers the node with the controller and sends its heartbeats."""

    def __init__(
        self,
        settings: Settings,
        storage: NodeStorage,
        metadata: MetadataLog,
        new_uuid: Callable[[], bytes],
    ) -> None:
        config = settings.config
        self._settings = settings
        self._config = config
        self._storage = storage
        self._metadata = metadata
        self._new_uuid = new_uuid
        self.broker_id = config.node_id
        self.broker_epoch = -1
        self._listeners: tuple[ListenerConfig, ...] = ()

    def register_controller(self, listeners: Sequence[ListenerConfig]) -> None:
        kind = ControllerRegistrationRequest
        request = kind(
            controller_id=self._config.node_id,
            incarnation_id=self._new_uuid(),
            listeners=tuple(kind.Listener(*each) for each in listeners),
            features=tuple(kind.Feature(name, low, high) for name, (low, high) in self._features()),
        )
        self._check(self._metadata.handle_now(request, 0).error_code, "controller")

    def register_broker(self, listeners: Sequence[ListenerConfig]) -> None:
        self._listeners = tuple(listeners)
        kind = BrokerRegistrationRequest
        request = kind(
            broker_id=self._config.node_id,
            cluster_id=self._storage.cluster_id,
            incarnation_id=self._new_uuid(),
            listeners=tuple(kind.Listener(*each) for each in listeners),
            features=tuple(kind.Feature(name, low, high) for name, (low, high) in self._features()),
            rack=self._config["broker.rack"],
            log_dirs=tuple(self._storage.directory_ids()),
            previous_broker_epoch=self._storage.previous_broker_epoch,
        )
        reply = self._metadata.handle_now(request, _REGISTRATION_VERSION)
        self._check(reply.error_code, "broker")
        self.broker_epoch = reply.broker_epoch

    def stay(self) -> None:
        """Send a heartbeat. A broker that was unregistered while it runs registers again."""
        if self.broker_id not in self._metadata.image.brokers:
            log.warning("broker %d was unregistered while it lives, and registers again", self.broker_id)
            self.register_broker(self._listeners)
        self.heartbeat()

    def _features(self) -> list[tuple[str, tuple[int, int]]]:
        return sorted(supported(is_unstable=self._config["unstable.feature.versions.enable"]).items())

    def _check(self, code: int, role: str) -> None:
        if code:
            raise MetadataLogError(f"the {role} cannot be registered: {ErrorCode(code).name}")

    def heartbeat(self, *, want_fence: bool = False, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        """Send a heartbeat, with the log directories that have failed."""
        offline = [directory for directory in self._storage.directories if directory.is_offline]
        request = BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata.image.last_offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=_ids(offline),
            cordoned_log_dirs=_ids(cordoned(self._settings, self._storage.directories)),
        )
        reply: BrokerHeartbeatResponse = self._metadata.handle_now(request, _HEARTBEAT_VERSION)
        return reply

    def assign(self, placed: Iterable[tuple[Replica, LogDirectory]]) -> None:
        """Tell the controller which directories hold replicas."""
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
        self._metadata.handle_now(kind(self.broker_id, self.broker_epoch, directories), 0)

    def leave(self) -> None:
        """Give up leadership and be fenced: a controlled shutdown."""
        for _ in range(_SHUTDOWN_STEPS_MAX):
            reply = self.heartbeat(want_shut_down=True)
            if reply.should_shut_down or reply.error_code:
                return


def _ids(directories: Iterable[LogDirectory]) -> tuple[bytes, ...]:
    ids = (directory.properties.directory_id for directory in directories)
    return tuple(each for each in ids if each is not None)
