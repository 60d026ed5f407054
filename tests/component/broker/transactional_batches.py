"""Batches of a transaction, put into a log past the coordinator."""

from __future__ import annotations

from ottla.log.producer_state import Origin, Verification
from tests.component.broker.raw_client import RunningNode, Topic, batch


def in_transaction(running: RunningNode, topic: Topic, *steps: tuple[bytes, Origin]) -> None:
    """Append as the coordinator of a transaction would let it be appended."""
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def append() -> None:
        for records, origin in steps:
            verified = Verification(replica.log.producers.verification_guard(5))
            replica.stage(bytearray(records), origin=origin, verification=verified)
        running.node.write_staged()

    running.change(append)


DATA = batch(b"t", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
