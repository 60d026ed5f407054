"""The controller: one door for every request that changes the cluster.

`handle` reads the image and gives records and a reply; it changes nothing but the brokers' sessions, which are soft.
Whoever calls it appends the records, replays them into the image and sends the reply when they are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from ottla.core.metadata import (
    acls,
    bootstrap,
    brokers,
    client_quotas,
    configs,
    delegation_tokens,
    directories,
    elections,
    feature_updates,
    in_sync_replicas,
    leaders,
    partitions,
    producer_ids,
    reassignments,
    scram,
    topics,
)
from ottla.core.metadata.context import (
    ConfigRules,
    Context,
    ControllerSettings,
    ControllerState,
    Result,
    Steps,
    in_slices,
)
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.sessions import BrokerSessions
from ottla.wire.keyed import Versioned
from ottla.wire.types.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.types.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.types.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.wire.types.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ottla.wire.types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from ottla.wire.types.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from ottla.wire.types.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.types.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.types.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from ottla.wire.types.create_acls import CreateAclsRequest
from ottla.wire.types.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.types.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ottla.wire.types.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.types.delete_acls import DeleteAclsRequest
from ottla.wire.types.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.types.elect_leaders import ElectLeadersRequest
from ottla.wire.types.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from ottla.wire.types.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from ottla.wire.types.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.types.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.wire.types.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse
from ottla.wire.types.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


class Controller:
    """The active controller of a cluster. `image` is replayed by the owner."""

    __slots__ = ("_chores", "_state")

    def __init__(self, image: MetadataImage, rules: ConfigRules, settings: ControllerSettings) -> None:
        sessions = BrokerSessions(settings.broker_session_timeout_ms)
        secrets = delegation_tokens.TokenSecrets(settings.token_secret_key)
        self._state = ControllerState(image, rules, settings, sessions, secrets)
        self._chores: list[_Chore] = []

    @property
    def image(self) -> MetadataImage:
        return self._state.image

    def activate(
        self, bootstrap_records: Sequence[Versioned], now_ms: int, *, own_broker_id: int | None = None
    ) -> Result:
        """Take over: begin the brokers' sessions and the timers afresh, and give what is to be written first.

        `own_broker_id` is given while the broker of this very process has not registered yet. No session is begun for
        it: whoever held its id before has ended, since the directory's lock is ours, so nobody need wait for a silence.
        """
        settings = self._state.settings
        self._chores = [_Chore(elections.unclean_leaders, settings.unclean_election_interval_ms, now_ms)]
        if settings.rebalances_leaders:
            interval_ms = settings.leader_imbalance_check_interval_ms
            self._chores.append(_Chore(elections.preferred_leaders, interval_ms, now_ms))
        if self._state.token_secrets.is_enabled:
            interval_ms = settings.token_expiry_check_interval_ms
            self._chores.append(_Chore(delegation_tokens.expired_tokens, interval_ms, now_ms))
        for broker in self.image.brokers.values():
            if not broker.fenced and broker.broker_id != own_broker_id:
                self._state.sessions.touch(broker.broker_id, broker.epoch, now_ms)
        return bootstrap.activation(self._state, bootstrap_records)

    def handle(self, request: Any, context: Context) -> Result:  # noqa: ANN401 - any of the classes in REQUESTS
        """Records and reply for a request; a refused one has no records and says why in the reply."""
        handler, _ = _HANDLERS[type(request)]
        try:
            return handler(self._state, request, context)
        except Reject as reject:
            return Result((), refuse(request, reject), refusal=reject)

    def note_contact(self, request: object, now_ms: int) -> None:
        """A request has come and waits to be handled. If it is a heartbeat, its broker lives, however long it waits."""
        if isinstance(request, BrokerHeartbeatRequest):
            broker = self.image.brokers.get(request.broker_id)
            if broker is not None and broker.epoch == request.broker_epoch:
                self._state.sessions.touch(broker.broker_id, broker.epoch, now_ms)

    def tick(self, now_ms: int, wall_ms: int) -> Result | None:
        """Do one thing that is due, and give its records; None if nothing is. Ask again when they are replayed.

        Brokers whose sessions have run out are fenced one by one, so that each is fenced with the last one's moves in
        view. From time to time preferred leaders get their partitions back, partitions without a leader get one, be it
        unclean where that is allowed, and delegation tokens that have expired by the calendar are removed.
        """
        fencing = brokers.fence_expired(self._state, now_ms)
        if fencing is not None:
            return fencing
        for chore in self._chores:
            if now_ms >= chore.due_ms:
                chore.done_at_ms = now_ms
                return in_slices(chore.steps(self._state, wall_ms), None)
        return None

    def next_deadline_ms(self) -> int | None:
        """When to call `tick` next."""
        expiry_ms = self._state.sessions.next_expiry_ms()
        deadlines = [chore.due_ms for chore in self._chores]
        return min((*deadlines, *(() if expiry_ms is None else (expiry_ms,))), default=None)

    def has_session(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Whether a broker was heard of lately."""
        return self._state.sessions.is_alive(broker_id, epoch, now_ms)

    def broker_ended(self, broker_id: int, epoch: int) -> None:
        """The process of a broker is dead: `tick` fences it."""
        self._state.sessions.end(broker_id, epoch)

    def broker_silent(self, broker_id: int, epoch: int) -> None:
        """Nobody serves where a broker did, and its heartbeats have stopped: a new process may take its place."""
        self._state.sessions.note_silence(broker_id, epoch)

    def excuse(self, duration_ms: int) -> None:
        """The controller itself has stood still for so long: no session runs out by that."""
        self._state.sessions.excuse(duration_ms)


class _Chore(msgspec.Struct):
    """What the controller does by itself from time to time."""

    steps: Callable[[ControllerState, int], Steps]
    """Also gets the time of the calendar."""
    interval_ms: int
    done_at_ms: int

    @property
    def due_ms(self) -> int:
        return self.done_at_ms + self.interval_ms


# --- refusals of whole requests


def refuse(request: Any, reject: Reject) -> Any:  # noqa: ANN401
    """The reply that refuses a request as a whole."""
    _, refuse_whole = _HANDLERS[type(request)]
    return refuse_whole(request, reject)


def _refuse_create_topics(request: CreateTopicsRequest, reject: Reject) -> CreateTopicsResponse:
    kind = CreateTopicsResponse
    names = dict.fromkeys(topic.name for topic in request.topics)
    return kind(
        topics=tuple(
            kind.CreatableTopicResult(name, error_code=reject.code, error_message=reject.message) for name in names
        )
    )


def _refuse_delete_topics(request: DeleteTopicsRequest, reject: Reject) -> DeleteTopicsResponse:
    kind = DeleteTopicsResponse
    asked = dict.fromkeys(topics.asked_topics(request))
    return kind(
        responses=tuple(
            kind.DeletableTopicResult(name, topic_id, reject.code, reject.message) for name, topic_id in asked
        )
    )


def _refuse_create_partitions(request: CreatePartitionsRequest, reject: Reject) -> CreatePartitionsResponse:
    kind = CreatePartitionsResponse
    names = dict.fromkeys(topic.name for topic in request.topics)
    return kind(results=tuple(kind.CreatePartitionsTopicResult(name, reject.code, reject.message) for name in names))


def _refuse_alter_configs(request: AlterConfigsRequest, reject: Reject) -> AlterConfigsResponse:
    kind = AlterConfigsResponse
    entry = kind.AlterConfigsResourceResponse
    return kind(
        responses=tuple(
            entry(reject.code, reject.message, each.resource_type, each.resource_name) for each in request.resources
        )
    )


def _refuse_incremental(request: IncrementalAlterConfigsRequest, reject: Reject) -> IncrementalAlterConfigsResponse:
    kind = IncrementalAlterConfigsResponse
    entry = kind.AlterConfigsResourceResponse
    return kind(
        responses=tuple(
            entry(reject.code, reject.message, each.resource_type, each.resource_name) for each in request.resources
        )
    )


def _refuse_with(kind: Callable[..., Any], *, has_message: bool = True) -> Callable[[Any, Reject], Any]:
    """A refusal whose reply has its error at the top."""

    def refuse_whole(request: object, reject: Reject) -> object:
        return kind(error_code=reject.code, **({"error_message": reject.message} if has_message else {}))

    return refuse_whole


_Handler = Callable[[ControllerState, Any, Context], Result]
_Refusal = Callable[[Any, Reject], Any]

_HANDLERS: Final[dict[type, tuple[_Handler, _Refusal]]] = {
    CreateTopicsRequest: (topics.create_topics, _refuse_create_topics),
    DeleteTopicsRequest: (topics.delete_topics, _refuse_delete_topics),
    CreatePartitionsRequest: (partitions.create_partitions, _refuse_create_partitions),
    ListPartitionReassignmentsRequest: (reassignments.list_reassignments, reassignments.refuse_list),
    IncrementalAlterConfigsRequest: (
        configs.incremental_alter_configs,
        _refuse_incremental,
    ),
    AlterConfigsRequest: (configs.alter_configs, _refuse_alter_configs),
    AlterClientQuotasRequest: (client_quotas.alter_client_quotas, client_quotas.refuse_alter_client_quotas),
    AlterUserScramCredentialsRequest: (
        scram.alter_user_scram_credentials,
        scram.refuse_alter_user_scram_credentials,
    ),
    CreateAclsRequest: (acls.create_acls, acls.refuse_create),
    DeleteAclsRequest: (acls.delete_acls, acls.refuse_delete),
    CreateDelegationTokenRequest: (delegation_tokens.create_token, delegation_tokens.refuse_create),
    RenewDelegationTokenRequest: (delegation_tokens.renew_token, delegation_tokens.refuse_renew),
    ExpireDelegationTokenRequest: (delegation_tokens.expire_token, delegation_tokens.refuse_expire),
    UpdateFeaturesRequest: (feature_updates.update_features, _refuse_with(UpdateFeaturesResponse)),
    AllocateProducerIdsRequest: (
        producer_ids.allocate_producer_ids,
        _refuse_with(AllocateProducerIdsResponse, has_message=False),
    ),
    BrokerRegistrationRequest: (
        brokers.register_broker,
        _refuse_with(BrokerRegistrationResponse, has_message=False),
    ),
    BrokerHeartbeatRequest: (brokers.heartbeat, _refuse_with(BrokerHeartbeatResponse, has_message=False)),
    ControllerRegistrationRequest: (brokers.register_controller, _refuse_with(ControllerRegistrationResponse)),
    AlterPartitionRequest: (
        in_sync_replicas.alter_partition,
        _refuse_with(AlterPartitionResponse, has_message=False),
    ),
    AssignReplicasToDirsRequest: (
        directories.assign_replicas,
        _refuse_with(AssignReplicasToDirsResponse, has_message=False),
    ),
    UnregisterBrokerRequest: (brokers.unregister_broker, _refuse_with(UnregisterBrokerResponse)),
    UnregisterControllerRequest: (brokers.unregister_controller, _refuse_with(UnregisterControllerResponse)),
    ElectLeadersRequest: (leaders.elect_leaders, leaders.refuse_elect_leaders),
    AlterPartitionReassignmentsRequest: (reassignments.alter_reassignments, reassignments.refuse_alter),
}

REQUESTS: Final = frozenset(_HANDLERS)
"""The requests that `Controller.handle` answers."""
