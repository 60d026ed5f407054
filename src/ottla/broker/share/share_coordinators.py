"""The share coordinators of all nodes, as leaders of share partitions and group coordinators ask them.

Each gets its part of a request: one on this node by a call, one on another node over the network, where requests about
one group go together. A coordinator that cannot be reached, or has not heard of a topic that this node knows, is not
available: whoever asks tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ottla.broker.peers.gathered_requests import GatheredRequests
from ottla.broker.peers.peer_connection import PeerError
from ottla.broker.share.ports import ShareCoordinatorPorts
from ottla.broker.share.state_requests import ask_about, ask_in_parts
from ottla.core.metadata.topic_image import NO_LEADER
from ottla.core.share.state.kept import Key
from ottla.core.share.state.messages import answer_of, coordinator_key, form_of, keys_of, merged, refusal, results_of
from ottla.wire import versions
from ottla.wire.errors import ErrorCode

__all__ = ["ShareCoordinators"]

StateRequest = Any
"""One of the five."""
Done = Callable[[Any], None]


class ShareCoordinators:
    def __init__(self, node: ShareCoordinatorPorts) -> None:
        self._node = node
        self._remote: dict[type, GatheredRequests[StateRequest]] = {}

    def ask(self, body: StateRequest, keys: Sequence[Key], done: Done) -> None:
        """Ask the coordinators of all share partitions of `body`; `done` gets the response, at once or later."""

        def ask(code: ErrorCode) -> None:
            if code:
                done(refusal(body, code, None))
            else:
                ask_in_parts(body, keys, self._coordinator_of, self._ask_one, done)

        self._node.share_state.ensure_topic(ask)

    def _coordinator_of(self, key: Key) -> int:
        return self._node.share_state.coordinator_of(coordinator_key(key))

    def _ask_one(self, coordinator: int, body: StateRequest, keys: Sequence[Key], done: Done) -> None:
        if coordinator == self._node.node_id:
            ask_about(self._node, None, body, keys, done)
        elif coordinator == NO_LEADER:
            done(refusal(body, ErrorCode.COORDINATOR_NOT_AVAILABLE, None))
        else:
            self._requests(type(body)).ask(coordinator, body, partial(self._answered, body, done), lane=body.group_id)

    def _requests(self, kind: type) -> GatheredRequests[StateRequest]:
        found = self._remote.get(kind)
        if found is None:
            known = versions(kind.__name__)
            found = self._remote[kind] = GatheredRequests(self._node.brokers, (known[0], known[-1]), merged, keys_of)
        return found

    def _answered(self, body: StateRequest, done: Done, response: Any) -> None:  # noqa: ANN401
        if isinstance(response, PeerError):
            done(refusal(body, ErrorCode.COORDINATOR_NOT_AVAILABLE, None))
            return
        found = results_of(body.group_id, response)
        done(answer_of(body, {key: self._result(body, key, found.get(key)) for key in keys_of(body)}))

    def _result(self, body: StateRequest, key: Key, result: Any) -> Any:  # noqa: ANN401
        is_behind = result is not None and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if result is not None and not (is_behind and self._knows(key)):
            return result
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return form_of(body).partition_result(partition=key.partition, error_code=code, error_message=code.meaning)

    def _knows(self, key: Key) -> bool:
        topic = self._node.image.topics_by_id.get(key.topic_id)
        return topic is not None and key.partition in topic.partitions
