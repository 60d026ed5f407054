"""Resources of AlterConfigs and IncrementalAlterConfigs: the broker itself answers for some, the controller for others.

The settings of one broker are altered through that broker, which knows whether they fit: it opens the certificates
that they name. On a listener of controllers nobody asks for a certain broker, so there they go to the controller like
others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.core.metadata.config_defs import ConfigError
from ottla.core.metadata.config_values import split_list
from ottla.core.metadata.configs import APPEND, CORDONED_DIRS, SET
from ottla.core.metadata.image import BROKER, CLUSTER_DEFAULT
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Configs

__all__ = ["alter_resources"]

_TLS: Final = re.compile(r"(listener\.name\.[^.]+\.)?ssl\.")


def _check_broker(node: Configs, request: Request, resource: Any) -> None:  # noqa: ANN401 - of one of two requests
    """Reject settings of another broker than the one that was asked, TLS that cannot work, and unknown directories."""
    name = resource.resource_name
    if resource.resource_type != BROKER or name == CLUSTER_DEFAULT:
        return
    if request.connection.peer.listener in node.controller_listeners:
        return
    if name != str(node.node_id):
        raise Reject(ErrorCode.INVALID_REQUEST, f"This is broker {node.node_id}; send the request to broker {name!r}.")
    tls = {each.name: each.value for each in resource.configs if _TLS.match(each.name)}
    cordoned = [each for each in resource.configs if each.name == CORDONED_DIRS and each.value is not None]
    if not (tls or cordoned):
        return
    check_cluster(node, request, Operation.ALTER_CONFIGS)
    given = node.settings.as_given(name)
    try:
        if tls:
            node.security.check_tls(
                {key: None if text is None else node.settings.resolve(key, text, given) for key, text in tls.items()}
            )
        for each in cordoned:
            _check_cordoned(node, given, getattr(each, "config_operation", SET), each.value)
    except ConfigError as error:
        raise Reject(ErrorCode.INVALID_REQUEST, str(error)) from None


def _check_cordoned(node: Configs, given: Mapping[str, str], operation: int, value: str) -> None:
    present = given.get(CORDONED_DIRS, "") if operation == APPEND else ""
    if operation in (SET, APPEND):
        paths = [
            path for text in (present, value) for path in split_list(node.settings.resolve(CORDONED_DIRS, text, given))
        ]
        node.settings.config.check_cordoned(paths)


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
            _check_broker(node, request, resource)
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
    if not others:
        return response(responses=tuple(verdicts))
    later = DelayedResponse()

    def put_together(reply: Any) -> None:  # noqa: ANN401 - one of two responses
        # Apache Kafka's controllers answer in any order, and once for what is named twice.
        found = {(each.resource_type, each.resource_name): each for each in reply.responses}
        answers = (
            verdict or found[each.resource_type, each.resource_name]
            for each, verdict in zip(resources, verdicts, strict=True)
        )
        later.complete(msgspec.structs.replace(reply, responses=tuple(answers)))

    node.submit(request, msgspec.structs.replace(request.body, resources=others)).deliver_to(put_together)
    return later
