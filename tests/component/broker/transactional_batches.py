"""Batches of a transaction, put into a log past the coordinator."""

from __future__ import annotations

from ottla.log.producer_state import Verification
from tests.component.broker.raw_client import RunningNode, Topic, batch


def in_transaction(running: RunningNode, topic: Topic, data: bytes, marker: bytes | None = None) -> None:
    """Append a batch as the coordinator of its transaction would let it be appended, and the marker that ends it."""
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def append() -> None:
        replica.stage(bytearray(data), verification=Verification(replica.log.producers.verification_guard(5)))
        if marker is not None:
            replica.stage_as_coordinator(bytearray(marker))
        running.node.write_staged()

    running.change(append)


DATA = batch(b"t", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
