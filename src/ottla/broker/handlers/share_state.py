"""Requests about the state of share partitions: what the handlers of all five have in common. No handler.

Only brokers may send them. Each share partition has an error of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Later, Request
from ottla.broker.share.asking import ask_state
from ottla.core.share.state.messages import refusal
from ottla.wire.access import Operation

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ShareGroups


def handle(node: ShareGroups, request: Request) -> Later:
    check_cluster(node, request, Operation.CLUSTER_ACTION)
    later = Later()
    ask_state(node, request, request.body, later.complete)
    return later


def refuse(request: Request, code: int, message: str | None) -> Any:  # noqa: ANN401
    return refusal(request.body, code, message)
