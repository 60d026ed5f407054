"""Logs with transactions, and what is committed of them."""

from __future__ import annotations

from ottla.wire.aborted import AbortedTransaction
from ottla.wire.batch import Record, build_batch, build_end_txn_marker


def history(steps: list[tuple[int, str]]) -> tuple[list[bytes], list[AbortedTransaction]]:
    """Batches of some producers, and what a broker would say of their aborted transactions."""
    batches: list[bytes] = []
    aborted: list[AbortedTransaction] = []
    first: dict[int, int] = {}
    for offset, (producer_id, what) in enumerate(steps):
        who = {"producer_id": producer_id, "producer_epoch": 0}
        if what == "record":
            batches.append(build_batch([Record(offset, 0, b"k", b"v")]))
        elif what == "transactional":
            first.setdefault(producer_id, offset)
            batches.append(build_batch([Record(offset, 0, b"k", b"v")], is_transactional=True, base_sequence=0, **who))
        else:
            began = first.pop(producer_id, None)
            if what == "abort" and began is not None:
                aborted.append(AbortedTransaction(began, producer_id))
            batches.append(
                build_end_txn_marker(
                    committed=what == "commit", coordinator_epoch=0, base_offset=offset, timestamp=0, **who
                )
            )
    return batches, aborted
