"""APIs that the controller answers: it gets the request unchanged, and replies when the change is committed.

===========================  ========  ================================================================================
API                          versions  what it does, and what differs between versions
===========================  ========  ================================================================================
CreateTopics                 2 to 7    new topics; from 4 on -1 stands for the defaults, from 5 on the answer has the
                                       number of partitions, replicas and all settings, from 7 on the topic's id.
                                       Policies (create.topic.policy.class.name) are not called
DeleteTopics                 1 to 6    topics and their records go; from 5 on with messages, from 6 on also by id. The
                                       partitions' directories are renamed at once and removed by and by
AlterConfigs                 0 to 2    gives resources the settings named and no others. A resource is changed
                                       completely or not at all. Policies (alter.config.policy.class.name) are not
                                       called; loggers have no settings here, as in Kafka
CreatePartitions             0 to 3    more partitions for a topic
ElectLeaders                 0 to 2    partitions get their preferred leader, or any that lives. Version 0 knows
                                       preferred elections only; an error of the whole request has a place from 1 on
AlterPartitionReassignments  0, 1      partitions are sent to other brokers, or called back; from 1 on the number of
                                       replicas can be held fixed (KIP-860)
ListPartitionReassignments   0         partitions on their way to other brokers
AlterClientQuotas            0, 1      limits are set and removed; they hold at once
AlterUserScramCredentials    0         SCRAM credentials are made, replaced and removed. A login that uses them is not
                                       there yet
UpdateFeatures               0 to 2    levels of features go up or down. In 0 a downgrade is a flag; from 1 on it is
                                       safe or unsafe, and a change can be tried only. From 2 on the answer has one
                                       error for everything
UnregisterBroker             0         a broker that will not come back is forgotten; one that is still there registers
                                       again at once
UnregisterController         0         the same for a controller (KIP-1312). The record for it belongs to a
                                       metadata.version that is not stable yet: none can be forgotten so far
===========================  ========  ================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.core.metadata import controller
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.elect_leaders import ElectLeadersResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

__all__ = ["handle", "refuse"]

_ELECT_LEADERS: Final = 43
_ERROR_FROM: Final = 1


def handle(node: Controller, request: Request) -> Answer:
    reply = node.submit(request)
    if request.api_key != _ELECT_LEADERS or request.version >= _ERROR_FROM:
        return reply
    later = DelayedResponse()
    reply.deliver_to(lambda message: later.complete(_without_error(message)))
    return later


def refuse(request: Request, code: int, message: str | None) -> Any:  # noqa: ANN401 - any of the responses
    """What the controller itself would say."""
    answer = controller.refuse(request.body, Reject(ErrorCode(code), message))
    return _without_error(answer) if request.api_key == _ELECT_LEADERS and request.version < _ERROR_FROM else answer


def _without_error(reply: ElectLeadersResponse) -> ElectLeadersResponse:
    return msgspec.structs.replace(reply, error_code=ErrorCode.NONE)


def _one_error(kind: Callable[..., Message]) -> Refuse:
    """The response of an API with one error for the whole request."""
    return lambda body, code, message: kind(error_code=code, error_message=message)


def _rejected(refuse_request: Callable[[Body, Reject], Message]) -> Refuse:
    """The response that the controller itself would give."""
    return lambda body, code, message: refuse_request(body, Reject(ErrorCode(code), message))


def _create_topics(body: Body, code: int, message: str | None) -> CreateTopicsResponse:
    kind = CreateTopicsResponse
    names = dict.fromkeys(topic.name for topic in body.topics)
    return kind(topics=tuple(kind.CreatableTopicResult(name, error_code=code, error_message=message) for name in names))


def _delete_topics(body: Body, code: int, message: str | None) -> DeleteTopicsResponse:
    kind = DeleteTopicsResponse
    asked = dict.fromkeys(asked_topics(body))
    return kind(responses=tuple(kind.DeletableTopicResult(name, topic_id, code, message) for name, topic_id in asked))


def _alter_configs(body: Body, code: int, message: str | None) -> AlterConfigsResponse:
    kind = AlterConfigsResponse
    return kind(
        responses=tuple(
            kind.AlterConfigsResourceResponse(code, message, each.resource_type, each.resource_name)
            for each in body.resources
        )
    )


def _create_partitions(body: Body, code: int, message: str | None) -> CreatePartitionsResponse:
    kind = CreatePartitionsResponse
    names = dict.fromkeys(topic.name for topic in body.topics)
    return kind(results=tuple(kind.CreatePartitionsTopicResult(name, code, message) for name in names))


_REFUSALS: Final[dict[int, Refuse]] = {
    19: _create_topics,
    20: _delete_topics,
    33: _alter_configs,
    37: _create_partitions,
    _ELECT_LEADERS: _rejected(refuse_elect_leaders),
    45: _one_error(AlterPartitionReassignmentsResponse),
    46: _one_error(ListPartitionReassignmentsResponse),
    49: _rejected(refuse_alter_client_quotas),
    51: _rejected(refuse_alter_user_scram_credentials),
    57: _one_error(UpdateFeaturesResponse),
    64: _one_error(UnregisterBrokerResponse),
    94: _one_error(UnregisterControllerResponse),
}
