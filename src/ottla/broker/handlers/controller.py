"""APIs that the controller answers: it gets the request unchanged, and replies when the change is committed.

===========================  ========  ================================================================================
API                          versions  what it does, and what differs between versions
===========================  ========  ================================================================================
CreateTopics                 2 to 7    creates topics; from 4 on -1 means the defaults, from 5 on the response has the
                                       number of partitions and replicas and all settings, from 7 on the topic's id.
                                       Policies (create.topic.policy.class.name) are not called
DeleteTopics                 1 to 6    deletes topics; from 5 on with messages, from 6 on also by id. The partitions'
                                       directories are renamed at once and removed later
CreatePartitions             0 to 3    adds partitions to a topic
ElectLeaders                 0 to 2    elects the preferred leader of partitions, or any live replica. Version 0 has
                                       only preferred elections; from 1 on there is an error of the whole request
AlterPartitionReassignments  0, 1      moves partitions to other brokers, or cancels that; from 1 on the request can
                                       forbid a change of the replication factor (KIP-860)
ListPartitionReassignments   0         lists ongoing reassignments
AlterClientQuotas            0, 1      sets and removes quotas, which take effect at once
AlterUserScramCredentials    0         creates, replaces and deletes SCRAM credentials
UpdateFeatures               0 to 2    changes levels of features. In 0 a downgrade is a flag; from 1 on it is safe or
                                       unsafe, and a change can be validated only. From 2 on there is one error for
                                       all features
UnregisterBroker             0         removes a broker that will not come back; one that is alive registers again at
                                       once
UnregisterController         0         the same for a controller (KIP-1312). Its record belongs to a metadata.version
                                       that is not stable yet, so no controller can be removed so far
===========================  ========  ================================================================================

Brokers ask for these, on the listener of controllers:

===========================  ========  ================================================================================
API of brokers               versions  what it does, and what differs between versions
===========================  ========  ================================================================================
AlterPartition               2, 3      changes the in-sync replicas of partitions for their leader; from 3 on their
                                       brokers' epochs are compared
BrokerRegistration           0 to 4    gives a broker its epoch; from 2 on with log directories, from 3 on with the
                                       epoch before, which tells that the broker had stopped in order
BrokerHeartbeat              0 to 2    keeps a broker alive, and fences, unfences or shuts it down; from 1 on with log
                                       directories that have failed, from 2 on with those that are cordoned
AllocateProducerIds          0         gives a broker a block of producer ids
ControllerRegistration       0         tells where a controller is reached, and what it supports
AssignReplicasToDirs         0         tells which log directories of a broker hold replicas
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
