"""Requests about the state of share partitions, to the share coordinators of this node.

A request is about one group, whose share partitions may belong to several partitions of `__share_group_state`. Each
coordinator gets its part, and the parts of the response are joined in the order of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ottla.broker.network.request import Request
from ottla.broker.share.ports import ShareStatePorts
from ottla.core.coordinator.partitioner import partition_for
from ottla.core.share.state.kept import Key
from ottla.core.share.state.messages import answer_of, coordinator_key, keys_of, part_of, refusal, results_of
from ottla.wire.errors import ErrorCode

__all__ = ["ask_about", "ask_in_parts", "ask_state"]

Done = Callable[[Any], None]
AskPart = Callable[[int, Any, Sequence[Key], Done], None]
"""Asks about share partitions that have one place."""


def ask_state(node: ShareStatePorts, request: Request | None, body: Any, done: Done) -> None:  # noqa: ANN401
    """Send `body` to the coordinators of all its share partitions; `done` gets the response, at once or later.

    `request` is the client's request, if there is one; without it the node itself asks.
    """
    keys = keys_of(body)
    if keys:
        ask_about(node, request, body, keys, done)
    else:
        done(answer_of(body, {}))


def ask_about(
    node: ShareStatePorts,
    request: Request | None,
    body: Any,  # noqa: ANN401
    keys: Sequence[Key],
    done: Done,
) -> None:
    """`ask_state`, for a caller that knows the share partitions of `body`."""

    def load_part(place: int, part: Any, keys: Sequence[Key], done: Done) -> None:  # noqa: ANN401
        node.share_state.ask(request, coordinator_key(keys[0]), part, done, refuse=partial(refusal, part))

    def ask(code: ErrorCode) -> None:
        if code:
            done(refusal(body, code, None))
            return
        count = node.share_state.partition_count
        ask_in_parts(body, keys, lambda key: partition_for(coordinator_key(key), count), load_part, done)

    node.share_state.ensure_topic(ask)


def ask_in_parts(
    body: Any,  # noqa: ANN401
    keys: Sequence[Key],
    place_of: Callable[[Key], int],
    load_part: AskPart,
    done: Done,
) -> None:
    """Ask about the share partitions of each place apart, and join the answers."""
    if len(keys) == 1:  # as a rule: a leader writes for one share partition
        load_part(place_of(keys[0]), body, keys, done)
        return
    places: dict[int, set[Key]] = {}
    for key in keys:
        places.setdefault(place_of(key), set()).add(key)
    if len(places) == 1:
        load_part(next(iter(places)), body, keys, done)
        return
    results: dict[Key, Any] = {}

    def take(part: Any) -> None:  # noqa: ANN401
        results.update(results_of(body.group_id, part))
        if len(results) == len(set(keys)):
            done(answer_of(body, results))

    for place, wanted in places.items():
        part = part_of(body, wanted)
        load_part(place, part, keys_of(part), take)
