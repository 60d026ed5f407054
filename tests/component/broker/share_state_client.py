"""The state of share partitions, begun by a raw client."""

from __future__ import annotations

from ottla.wire.errors import ErrorCode
from tests.component.broker.raw_client import READY_ATTEMPTS, RawClient
from tests.unit.broker.share_state_requests import codes, initialize


def begin(client: RawClient, topic_id: bytes, **fields: int) -> None:
    """Initialize a share partition. Apache Kafka's coordinators hear of new topics a little later than its leaders."""
    for _ in range(READY_ATTEMPTS):
        (code,) = codes(client.ask(initialize(topic_id, **fields), 0)).values()
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            assert code == 0
            return
    raise AssertionError("the coordinator does not hear of the topic")
