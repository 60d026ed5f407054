"""Resources of AlterConfigs and IncrementalAlterConfigs: the broker itself answers for some, the controller for others.

The settings of one broker are altered through that broker, which knows whether they fit. On a listener of controllers
nobody asks for a certain broker, so there they go to the controller like others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.core.metadata.image import BROKER, CLUSTER_DEFAULT
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Configs

__all__ = ["alter_resources"]


def _check_broker(node: Configs, request: Request, resource_type: int, resource_name: str) -> None:
    """Reject settings of another broker than the one that was asked."""
    if resource_type != BROKER or resource_name == CLUSTER_DEFAULT:
        return
    if request.connection.peer.listener not in node.controller_listeners and resource_name != str(node.node_id):
        raise Reject(
            ErrorCode.INVALID_REQUEST, f"This is broker {node.node_id}; send the request to broker {resource_name!r}."
        )


def alter_resources(
    node: Configs,
    request: Request,
    response: Callable[..., Any],
    verdict_on: Callable[[Any, int, str | None], Any],
    answer_here: Callable[[Any], Any | None] = lambda resource: None,
) -> Answer:
    """The verdicts in the order of the request: those of `answer_here`, and the controller's where that gives None.

    `verdict_on` makes one of a resource, an error code and a message.
    """

    def verdict_of(resource: Any) -> Any | None:  # noqa: ANN401 - a resource of one of two requests
        try:
            _check_broker(node, request, resource.resource_type, resource.resource_name)
        except Reject as reject:
            return verdict_on(resource, reject.code, reject.message)
        return answer_here(resource)

    resources = request.body.resources
    request.former_configs = {
        (each.resource_type, each.resource_name, config.name): former.get(config.name)
        for each in resources
        for former in [node.image.configs(each.resource_type, each.resource_name)]
        for config in each.configs
    }
    verdicts = [verdict_of(each) for each in resources]
    others = tuple(each for each, verdict in zip(resources, verdicts, strict=True) if verdict is None)
    if len(others) == len(resources):
        return node.submit(request)
    if not others:
        return response(responses=tuple(verdicts))
    later = DelayedResponse()

    def put_together(reply: Any) -> None:  # noqa: ANN401 - one of two responses
        of_others = iter(reply.responses)
        later.complete(response(responses=tuple(verdict or next(of_others) for verdict in verdicts)))

    node.submit(request, msgspec.structs.replace(request.body, resources=others)).deliver_to(put_together)
    return later
