"""Copying the records of a topic to another topic, on the same cluster or on another one.

    starts, ends = {TopicPartition("orders", 0): 0}, {TopicPartition("orders", 0): 120}
    copy = TopicCopy(client, starts, ends, SameRecords("orders-copy"), PlainWriter(client))
    async for state in copy.rounds():
        print(state.copied)

Theory of operation. A copy goes round by round: read what has come, choose records, write them, save how far it got.
Nothing is saved before it was written, so a copy that is interrupted and started again loses nothing. What was written
but not saved is copied again, unless the writer does both in one transaction.

`rounds`       reads and chooses records
`redrive`      turns dead letters into the records they stand for
`writers`      write records and save the progress: not at all, as offsets of a group, or in a transaction
"""

from ottla.client.copy.redrive import OriginalRecords
from ottla.client.copy.rounds import Copied, Filter, SameRecords, TopicCopy
from ottla.client.copy.writers import PlainWriter, Progress, TransactionalWriter

__all__ = [
    "Copied",
    "Filter",
    "OriginalRecords",
    "PlainWriter",
    "Progress",
    "SameRecords",
    "TopicCopy",
    "TransactionalWriter",
]
