"""Sends requests about the state of share partitions to their share coordinators.

A request is about one group, whose share partitions may belong to several partitions of `__share_group_state`. Each
coordinator gets its part, and the parts of the response are joined in the order of the request. Leaders and group
coordinators use it (`Persister`), and so do requests that come over the network.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.broker.coordinators.internal_topics import SHARE_STATE
from ottla.broker.network.request import Request
from ottla.broker.share.ports import ShareStatePorts
from ottla.core.coordinator.partitioner import partition_for
from ottla.core.share.state.kept import Key
from ottla.core.share.state.messages import answer_of, coordinator_key, keys_of, part_of, refusal, results_of
from ottla.wire.errors import ErrorCode

__all__ = ["ask_about", "ask_state"]

Done = Callable[[Any], None]


def ask_state(node: ShareStatePorts, request: Request | None, body: Any, done: Done) -> None:  # noqa: ANN401
    """Send `body` to the coordinators of all its share partitions; `done` gets the response, at once or later.

    `request` is the client's request, if there is one; without it the node itself asks.
    """
    keys = keys_of(body)
    if keys:
        ask_about(node, request, body, keys, done)
    else:
        done(answer_of(body, {}))


def ask_about(node: ShareStatePorts, request: Request | None, body: Any, keys: list[Key], done: Done) -> None:  # noqa: ANN401
    """`ask_state`, for a caller that knows the share partitions of `body`."""
    if node.share_state.partition_count:
        _ask(node, request, body, keys, done)
    else:
        node.internal_topics.ensure(SHARE_STATE, lambda _: _ask_created(node, request, body, keys, done))


def _ask_created(node: ShareStatePorts, request: Request | None, body: Any, keys: list[Key], done: Done) -> None:  # noqa: ANN401
    if node.share_state.partition_count:
        _ask(node, request, body, keys, done)
    else:
        done(refusal(body, ErrorCode.COORDINATOR_NOT_AVAILABLE, None))


def _ask(node: ShareStatePorts, request: Request | None, body: Any, keys: list[Key], done: Done) -> None:  # noqa: ANN401
    if len(keys) == 1:  # as a rule: a leader writes for one share partition
        _ask_one(node, request, body, keys[0], done)
        return
    places: dict[int, set[Key]] = {}
    for key in keys:
        places.setdefault(partition_for(coordinator_key(key), node.share_state.partition_count), set()).add(key)
    if len(places) == 1:
        _ask_one(node, request, body, keys[0], done)
        return
    results: dict[Key, Any] = {}

    def take(part: Any) -> None:  # noqa: ANN401
        results.update(results_of(body.group_id, part))
        if len(results) == len(set(keys)):
            done(answer_of(body, results))

    for part in places.values():
        _ask_one(node, request, part_of(body, part), next(iter(part)), take)


def _ask_one(node: ShareStatePorts, request: Request | None, body: Any, key: Key, done: Done) -> None:  # noqa: ANN401
    node.share_state.ask(request, coordinator_key(key), body, done, refuse=partial(refusal, body))
