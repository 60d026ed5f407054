"""IncrementalAlterConfigs (44): sets or removes single settings or entries of lists, through the controller.

Versions 0 and 1, which differ in their encoding. A resource is changed completely or not at all. Brokers apply changes
as soon as they are committed. The levels of this node's loggers are changed at once, without the controller. Policies
(alter.config.policy.class.name) are not called.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.altered_resources import alter_resources
from ottla.broker.handlers.describe_configs import BROKER_LOGGER, check_own_loggers
from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Answer, Request
from ottla.broker.telemetry.loggers import LevelStep
from ottla.core.metadata.checks import check_single
from ottla.core.metadata.configs import Step, check_steps
from ottla.core.metadata.fault import Reject
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Configs

API_KEY: Final = 44
VERSIONS: Final = (0, 1)

_Resource = IncrementalAlterConfigsRequestAlterConfigsResource
_Verdict = IncrementalAlterConfigsResponseAlterConfigsResourceResponse


def handle(node: Configs, request: Request) -> Answer:
    body: IncrementalAlterConfigsRequest = request.body
    counts = Counter((each.resource_type, each.resource_name) for each in body.resources)

    def answer_here(resource: _Resource) -> _Verdict | None:
        if resource.resource_type != BROKER_LOGGER:
            return None
        return _alter_loggers(node, request, resource, counts[BROKER_LOGGER, resource.resource_name])

    return alter_resources(node, request, IncrementalAlterConfigsResponse, _verdict, answer_here)


def refuse(request: Request, code: int, message: str | None) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=tuple(_verdict(each, code, message) for each in request.body.resources)
    )


def _verdict(resource: _Resource, code: int, message: str | None) -> _Verdict:
    return _Verdict(code, message, resource.resource_type, resource.resource_name)


def _alter_loggers(node: Configs, request: Request, resource: _Resource, count: int) -> _Verdict:
    steps = [Step(each.name, each.config_operation, each.value) for each in resource.configs]
    changes = [LevelStep(*step) for step in steps]
    try:
        check_single(count)
        check_steps(steps)
        is_controller = request.connection.peer.listener in node.controller_listeners
        check_cluster(node, request, Operation.CLUSTER_ACTION if is_controller else Operation.ALTER_CONFIGS)
        check_own_loggers(node, resource.resource_name)
        node.loggers.check(changes)
    except Reject as reject:
        return _verdict(resource, reject.code, reject.message)
    if not request.body.validate_only:
        node.loggers.apply(changes)
    return _verdict(resource, ErrorCode.NONE, None)
