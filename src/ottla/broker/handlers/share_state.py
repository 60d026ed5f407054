"""APIs about the state of share partitions. Only brokers may use them; each share partition has an error of its own.

===============================  ========  ============================================================================
API                              versions  what it does
===============================  ========  ============================================================================
InitializeShareGroupState (83)   0         initializes the state of share partitions, and replaces earlier state. The
                                           group coordinator sends it
ReadShareGroupState (84)         0         returns the state of share partitions. A leader sends it before it serves a
                                           share partition; from then on leaders of earlier epochs cannot write
WriteShareGroupState (85)        0, 1      writes the state of share partitions. Leaders send it. Version 1 also has the
                                           number of finished records after the start, for the lag of a group
DeleteShareGroupState (86)       0         deletes the state. The group coordinator sends it when a group or its offsets
                                           are deleted
ReadShareGroupStateSummary (87)  0, 1      returns the start offsets of share partitions, to describe them; version 1
                                           also the number of finished records after the start
===============================  ========  ============================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import DelayedResponse, Request
from ottla.broker.share.state_requests import ask_state
from ottla.core.share.state.messages import refusal
from ottla.wire.access import Operation

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ShareGroups

__all__ = ["handle", "refuse"]


def handle(node: ShareGroups, request: Request) -> DelayedResponse:
    check_cluster(node, request, Operation.CLUSTER_ACTION)
    later = DelayedResponse()
    ask_state(node, request, request.body, later.complete)
    return later


def refuse(request: Request, code: int, message: str | None) -> Any:  # noqa: ANN401
    return refusal(request.body, code, message)
