"""Brokers and controllers as the metadata log has them."""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.core.metadata.fault import MetadataFault
from ottla.core.metadata.uuids import LOST, MIGRATING, UNASSIGNED
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

FENCE: Final = 1
UNFENCE: Final = -1
_NO_CHANGE: Final = 0
_FENCING: Final = {FENCE: True, UNFENCE: False, _NO_CHANGE: None}
_SHUTDOWN: Final = {1: True, _NO_CHANGE: None}

VersionRange = tuple[int, int]


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """Where a listener is reached. `security_protocol`: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class BrokerImage(msgspec.Struct, frozen=True):
    """A registered broker. `cordoned_log_dirs` is None until the broker has said which."""

    broker_id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...] = ()
    features: dict[str, VersionRange] = {}
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """Whether it may lead partitions and be in their ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def takes_replicas(self) -> bool:
        """Whether a directory is left in which a new replica may be put."""
        if not self.log_dirs or self.cordoned_log_dirs is None:
            return True
        return not set(self.log_dirs) <= set(self.cordoned_log_dirs)

    @property
    def default_dir(self) -> bytes:
        """The directory of a new replica, if that is clear from here; else the broker chooses."""
        if not self.log_dirs:
            return MIGRATING
        return self.log_dirs[0] if len(self.log_dirs) == 1 else UNASSIGNED

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener), None)

    def has_online_dir(self, directory: bytes) -> bool:
        """Whether a replica in that directory can be served; what is not known is hoped for."""
        if directory in (UNASSIGNED, MIGRATING):
            return True
        return directory != LOST and (not self.log_dirs or directory in self.log_dirs)


class ControllerImage(msgspec.Struct, frozen=True):
    """A registered controller."""

    controller_id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...] = ()
    features: dict[str, VersionRange] = {}
    zk_migration_ready: bool = False

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener), None)


def broker_from_record(record: RegisterBrokerRecord) -> BrokerImage:
    return BrokerImage(
        broker_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
        features={f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=record.log_dirs,
        cordoned_log_dirs=record.cordoned_log_dirs,
        is_migrating_zk_broker=record.is_migrating_zk_broker,
    )


def broker_record(broker: BrokerImage, version: int) -> Versioned:
    """The registration in the given version; what that version has no field for is left out."""
    kind = RegisterBrokerRecord
    record = RegisterBrokerRecord(
        broker_id=broker.broker_id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker if version >= 2 else False,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=tuple(kind.BrokerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in broker.endpoints),
        features=tuple(kind.BrokerFeature(name, low, high) for name, (low, high) in broker.features.items()),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.log_dirs if version >= 3 else (),
        cordoned_log_dirs=broker.cordoned_log_dirs if version >= 4 else None,
    )
    return Versioned(record, version)


def change_broker(broker: BrokerImage, change: BrokerRegistrationChangeRecord) -> BrokerImage:
    """The broker after a change. MetadataFault for a change that nobody knows."""
    if change.fenced not in _FENCING or change.in_controlled_shutdown not in _SHUTDOWN:
        raise MetadataFault(
            f"fenced {change.fenced} or inControlledShutdown {change.in_controlled_shutdown} is no known change"
        )
    fenced = _FENCING[change.fenced]
    stopping = _SHUTDOWN[change.in_controlled_shutdown]
    return msgspec.structs.replace(
        broker,
        fenced=broker.fenced if fenced is None else fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown if stopping is None else stopping,
        log_dirs=change.log_dirs or broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if change.cordoned_log_dirs is None else change.cordoned_log_dirs,
    )


def controller_from_record(record: RegisterControllerRecord) -> ControllerImage:
    return ControllerImage(
        controller_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
        features={f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
        zk_migration_ready=record.zk_migration_ready,
    )


def controller_record(controller: ControllerImage) -> Versioned:
    kind = RegisterControllerRecord
    record = RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=tuple(
            kind.ControllerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in controller.endpoints
        ),
        features=tuple(kind.ControllerFeature(name, low, high) for name, (low, high) in controller.features.items()),
    )
    return Versioned(record, 0)
