"""Brokers: registration, heartbeats, fencing and shutdown; registration of controllers.

States of a broker as its heartbeats move it. A registration by a new process makes it FENCED.

======================  ==========================================  =============================================
state                   heartbeat asks for                          next state, records
======================  ==========================================  =============================================
FENCED                  nothing, and it has read the log up to      UNFENCED: unfenced, and leaders for partitions
                        its own registration                        that had none
FENCED                  to stay fenced, or it is behind             FENCED
FENCED                  to shut down                                SHUTDOWN_NOW
UNFENCED                to be fenced                                FENCED: out of ISRs, fenced
UNFENCED                to shut down, and it leads partitions       CONTROLLED_SHUTDOWN: marked, out of ISRs
UNFENCED                to shut down, and it leads nothing          SHUTDOWN_NOW: fenced
CONTROLLED_SHUTDOWN     anything, while it leads partitions or      CONTROLLED_SHUTDOWN
                        active brokers have not read of the moves
CONTROLLED_SHUTDOWN     anything, afterwards                        SHUTDOWN_NOW: fenced
======================  ==========================================  =============================================

Sessions are soft: heartbeats prolong them at once, whatever becomes of the records.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from itertools import chain

from ottla.core.metadata import elections, features
from ottla.core.metadata.checks import check_cluster_access
from ottla.core.metadata.cluster_image import FENCE, UNFENCE, BrokerImage, ControllerImage, Endpoint, controller_record
from ottla.core.metadata.context import Context, ControllerState, Result, Steps, in_slices
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.uuids import is_reserved
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.types.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.types.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.wire.types.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from ottla.wire.types.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.wire.types.unregister_controller import UnregisterControllerRequest

_PREVIOUS_EPOCH_FROM_VERSION = 3
# Lowest versions of BrokerRegistrationChange that can say it.
_CHANGE_FENCED = 0
_CHANGE_SHUTDOWN = 1
_CHANGE_LOG_DIRS = 2
_CHANGE_CORDONED = 3


# --- registration


def register_broker(state: ControllerState, request: BrokerRegistrationRequest, context: Context) -> Result:
    """BrokerRegistration: a process takes its broker id, or amends what it said before."""
    check_cluster_access(context, Operation.CLUSTER_ACTION)
    known = state.image.brokers.get(request.broker_id)
    _check_registration(state, request, context, known)
    is_same_process = known is not None and known.incarnation_id == request.incarnation_id
    changes: Steps = ()
    if not is_same_process:
        is_clean = (
            known is not None
            and context.api_version >= _PREVIOUS_EPOCH_FROM_VERSION
            and known.epoch == request.previous_broker_epoch
        )
        changes = elections.broker_stopped(state, request.broker_id, is_clean=is_clean)
    epoch = known.epoch if known is not None and is_same_process else context.log_end_offset
    record = _registration_record(state, request, epoch, known if is_same_process else None)
    # Not atomic: the registration comes last, so a broker that sees it cut off registers again.
    return in_slices(chain(changes, (record,)), BrokerRegistrationResponse(broker_epoch=epoch))


def _check_registration(
    state: ControllerState, request: BrokerRegistrationRequest, context: Context, known: BrokerImage | None
) -> None:
    if request.cluster_id != state.settings.cluster_id:
        raise Reject(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"This is cluster {state.settings.cluster_id}, the broker belongs to {request.cluster_id}.",
        )
    if known is not None and known.incarnation_id != request.incarnation_id:
        _check_former_process(state, request, context, known)
    if request.is_migrating_zk_broker:
        raise Reject(ErrorCode.BROKER_ID_NOT_REGISTERED, "Brokers that use ZooKeeper cannot register.")
    if state.image.metadata_version >= features.DIRECTORIES_FROM:
        _check_log_dirs(state, request)
    _check_features(state, request, context)


def _check_former_process(
    state: ControllerState, request: BrokerRegistrationRequest, context: Context, known: BrokerImage
) -> None:
    """Two processes must not use one broker id, so the former one must be gone.

    It is, if its session has run out. It is, too, if nobody serves where it did, and the new process has taken its
    directories and its ports: the former one would hold both.
    """
    is_silent = state.sessions.is_silent(known.broker_id, known.epoch)
    if is_silent and _has_same_directories(request, known) and _has_same_listeners(request, known):
        return
    if state.sessions.is_alive(known.broker_id, known.epoch, context.now_ms):
        raise Reject(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Broker id {known.broker_id} is in use by another process, which was heard of in the last "
            f"{state.sessions.timeout_ms} ms. If that process has just been stopped, try again then.",
        )


def _has_same_directories(request: BrokerRegistrationRequest, known: BrokerImage) -> bool:
    return bool(known.log_dirs) and set(known.log_dirs) <= set(request.log_dirs)


def _has_same_listeners(request: BrokerRegistrationRequest, known: BrokerImage) -> bool:
    return {(each.name, each.host, each.port) for each in request.listeners} == {
        (each.name, each.host, each.port) for each in known.endpoints
    }


def _check_log_dirs(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    if not request.log_dirs:
        raise Reject(ErrorCode.INVALID_REGISTRATION, "The broker has no log directories.")
    if any(is_reserved(directory) for directory in request.log_dirs):
        raise Reject(ErrorCode.INVALID_REGISTRATION, "The broker names a reserved id as a log directory.")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise Reject(ErrorCode.INVALID_REGISTRATION, "The broker names a log directory twice.")
    for other in state.image.brokers.values():
        if other.broker_id != request.broker_id and not set(other.log_dirs).isdisjoint(request.log_dirs):
            raise Reject(
                ErrorCode.INVALID_REGISTRATION, f"A log directory of the broker belongs to broker {other.broker_id}."
            )


def _check_features(state: ControllerState, request: BrokerRegistrationRequest, context: Context) -> None:
    finalized = {**state.image.features, features.KRAFT_VERSION: context.kraft_version}
    ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    for name, supported in ranges.items():
        _check_range(name, finalized.get(name, 0), supported)
    if features.METADATA_VERSION not in ranges:
        raise Reject(
            ErrorCode.INVALID_REGISTRATION, f"The broker does not say which {features.METADATA_VERSION} it supports."
        )
    for name, level in finalized.items():
        _check_range(name, level, ranges.get(name, (0, 0)))


def _check_range(name: str, level: int, supported: tuple[int, int]) -> None:
    low, high = supported
    if not low <= level <= high:
        raise Reject(
            ErrorCode.UNSUPPORTED_VERSION,
            f"The cluster runs with {name} {level}; the broker supports {low} to {high}.",
        )


def _registration_record(
    state: ControllerState, request: BrokerRegistrationRequest, epoch: int, amended: BrokerImage | None
) -> Versioned:
    version = features.record_version("RegisterBrokerRecord", state.image.metadata_version)
    kind = RegisterBrokerRecord
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=tuple(
            kind.BrokerEndpoint(each.name, each.host, each.port, each.security_protocol) for each in request.listeners
        ),
        features=tuple(
            kind.BrokerFeature(each.name, each.min_supported_version, each.max_supported_version)
            for each in request.features
        ),
        rack=request.rack,
        fenced=True if amended is None else amended.fenced,
        in_controlled_shutdown=False if amended is None else amended.in_controlled_shutdown,
        log_dirs=request.log_dirs if version >= 3 else (),
    )
    return Versioned(record, version)


def register_controller(state: ControllerState, request: ControllerRegistrationRequest, context: Context) -> Result:
    """ControllerRegistration: where a controller is reached, and what it supports."""
    check_cluster_access(context, Operation.CLUSTER_ACTION)
    if state.image.metadata_version < features.CONTROLLER_REGISTRATION_FROM:
        raise Reject(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Controllers register from {features.METADATA_VERSION} {features.CONTROLLER_REGISTRATION_FROM} on.",
        )
    controller = ControllerImage(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners),
        features={f.name: (f.min_supported_version, f.max_supported_version) for f in request.features},
    )
    return Result((controller_record(controller),), ControllerRegistrationResponse(error_message=None))


def unregister_broker(state: ControllerState, request: UnregisterBrokerRequest, context: Context) -> Result:
    """UnregisterBroker: a broker is forgotten for good."""
    check_cluster_access(context, Operation.ALTER)
    broker = state.image.brokers.get(request.broker_id)
    if broker is None:
        raise Reject(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {request.broker_id} is not currently registered")
    changes = elections.broker_unregistered(state, broker.broker_id)
    record = Versioned(UnregisterBrokerRecord(broker.broker_id, broker.epoch), 0)
    return in_slices(chain(changes, (record,)), UnregisterBrokerResponse())


def unregister_controller(state: ControllerState, request: UnregisterControllerRequest, context: Context) -> Result:
    """UnregisterController (KIP-1312): no metadata.version that can be run with has a record for it yet."""
    check_cluster_access(context, Operation.ALTER)
    if request.controller_id == state.settings.node_id:
        raise Reject(ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    raise Reject(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{features.METADATA_VERSION} {state.image.metadata_version} cannot say that a controller is gone.",
    )


# --- heartbeats


class _Next(Enum):
    """Where a heartbeat takes a broker."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shut down now"


def heartbeat(state: ControllerState, request: BrokerHeartbeatRequest, context: Context) -> Result:
    """BrokerHeartbeat: a broker lives, says how far it has read, and asks for a change of its state."""
    check_cluster_access(context, Operation.CLUSTER_ACTION)
    broker = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    registered_at = state.image.registered_at[broker.broker_id]
    following = _next_state(state, broker, request)
    changes = chain(_TRANSITIONS[following](state, broker), _directory_changes(state, broker, request))
    if following is _Next.SHUTDOWN_NOW:  # it leads nothing and will not be heard of again: its next process may come
        state.sessions.forget(broker.broker_id, broker.epoch)
    else:
        state.sessions.touch(broker.broker_id, broker.epoch, context.now_ms, request.current_metadata_offset)
    reply = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= registered_at,
        is_fenced=following in (_Next.FENCED, _Next.SHUTDOWN_NOW),
        should_shut_down=following is _Next.SHUTDOWN_NOW,
    )
    if following is not _Next.CONTROLLED_SHUTDOWN or broker.in_controlled_shutdown:
        return in_slices(changes, reply)
    return in_slices(changes, reply, then=lambda: _note_moves(state, broker))


def check_broker_epoch(state: ControllerState, broker_id: int, epoch: int) -> BrokerImage:
    """The broker, if it is registered with that epoch; else Reject with STALE_BROKER_EPOCH."""
    broker = state.image.brokers.get(broker_id)
    if broker is None:
        raise Reject(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} is not registered.")
    if broker.epoch != epoch:
        raise Reject(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} has the epoch {broker.epoch}, not {epoch}.")
    return broker


def fence_expired(state: ControllerState, now_ms: int) -> Result | None:
    """Fence one broker that was not heard of for too long, so that each is fenced with the last one's moves in view."""
    for broker_id, epoch in state.sessions.expired(now_ms):
        broker = state.image.brokers.get(broker_id)
        if broker is not None and broker.epoch == epoch and not broker.fenced:
            return in_slices(_fence(state, broker), None)
        state.sessions.forget(broker_id, epoch)
    return None


def _next_state(state: ControllerState, broker: BrokerImage, request: BrokerHeartbeatRequest) -> _Next:
    if broker.fenced:
        return _next_of_fenced(state, broker, request)
    if broker.in_controlled_shutdown:
        if state.image.led_counts.get(broker.broker_id) or not _moves_are_known(state, broker):
            return _Next.CONTROLLED_SHUTDOWN
        return _Next.SHUTDOWN_NOW
    if request.want_fence:
        return _Next.SHUTDOWN_NOW if request.want_shut_down else _Next.FENCED
    if not request.want_shut_down:
        return _Next.UNFENCED
    return _Next.CONTROLLED_SHUTDOWN if state.image.led_counts.get(broker.broker_id) else _Next.SHUTDOWN_NOW


def _next_of_fenced(state: ControllerState, broker: BrokerImage, request: BrokerHeartbeatRequest) -> _Next:
    if request.want_shut_down:
        return _Next.SHUTDOWN_NOW
    is_caught_up = request.current_metadata_offset >= state.image.registered_at[broker.broker_id]
    return _Next.UNFENCED if is_caught_up and not request.want_fence else _Next.FENCED


def _moves_are_known(state: ControllerState, broker: BrokerImage) -> bool:
    """Whether every active broker has read the records that moved leaders off this one."""
    active = [each.broker_id for each in state.image.brokers.values() if each.is_active]
    # A former controller may have moved them: then the record that began the shutdown is all that is known.
    moved_at = state.sessions.moved_at(broker.broker_id, broker.epoch, state.image.shutdown_at[broker.broker_id])
    return all(state.sessions.metadata_offset(broker_id) >= moved_at for broker_id in active)


def _note_moves(state: ControllerState, broker: BrokerImage) -> None:
    """Leaders have just been moved off a broker that shuts down: the last record says so."""
    state.sessions.note_moves(broker.broker_id, broker.epoch, state.image.last_offset)


def _fence(state: ControllerState, broker: BrokerImage) -> Steps:
    if broker.fenced:
        return ()
    change = _registration_change(broker, _CHANGE_FENCED, fenced=FENCE)
    return chain(elections.broker_leaves(state, broker.broker_id), (change,))


def _unfence(state: ControllerState, broker: BrokerImage) -> Steps:
    if not broker.fenced:
        return ()
    change = _registration_change(broker, _CHANGE_FENCED, fenced=UNFENCE)
    return chain((change,), elections.broker_unfenced(state, broker.broker_id))


def _begin_shutdown(state: ControllerState, broker: BrokerImage) -> Steps:
    if broker.in_controlled_shutdown:
        return ()
    change = _registration_change(broker, _CHANGE_SHUTDOWN, in_controlled_shutdown=1)
    return chain((change,), elections.broker_leaves(state, broker.broker_id))


_TRANSITIONS: dict[_Next, Callable[[ControllerState, BrokerImage], Steps]] = {
    _Next.FENCED: _fence,
    _Next.SHUTDOWN_NOW: _fence,
    _Next.UNFENCED: _unfence,
    _Next.CONTROLLED_SHUTDOWN: _begin_shutdown,
}


def _directory_changes(state: ControllerState, broker: BrokerImage, request: BrokerHeartbeatRequest) -> Steps:
    """Changes for log directories that have failed, or are closed for new replicas."""
    failed = [directory for directory in broker.log_dirs if directory in request.offline_log_dirs]
    if failed and state.image.metadata_version >= features.DIRECTORIES_FROM:
        for directory in failed:
            yield from elections.directory_failed(state, broker.broker_id, directory)
        online = tuple(directory for directory in broker.log_dirs if directory not in failed)
        yield _registration_change(broker, _CHANGE_LOG_DIRS, log_dirs=online)
    cordoned = request.cordoned_log_dirs
    if cordoned is None or state.image.metadata_version < features.CORDONED_DIRS_FROM:
        return
    if broker.cordoned_log_dirs is None or set(broker.cordoned_log_dirs) != set(cordoned):
        yield _registration_change(broker, _CHANGE_CORDONED, cordoned_log_dirs=cordoned)


def _registration_change(
    broker: BrokerImage,
    version: int,
    *,
    fenced: int = 0,
    in_controlled_shutdown: int = 0,
    log_dirs: tuple[bytes, ...] = (),
    cordoned_log_dirs: tuple[bytes, ...] | None = None,
) -> Versioned:
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=log_dirs,
        cordoned_log_dirs=cordoned_log_dirs,
    )
    return Versioned(record, version)
