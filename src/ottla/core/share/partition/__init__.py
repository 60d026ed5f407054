"""A share partition: which offsets of a topic partition are delivered to whom, and what has become of them.

One for each group and topic partition, on the leader. `SharePartition.step(event, now_ms)` changes its own memory and
gives `Actions`: answers, writes for the share coordinator, when to call again, whether waiting fetches have a chance.

`states`           the states of a record and how it is acknowledged
`window`           the offsets in flight, as ranges of equal state
`acquisition`      which offsets a fetch gets
`acknowledgement`  what a member may say about its records, and what that changes
`locks`            when acquisition locks end
`tally`            what has become of records, counted
`events`           what goes in and what comes out
`partition`        all of them together
"""

from ottla.core.share.partition.events import Actions, SharePartitionSettings
from ottla.core.share.partition.partition import SharePartition
from ottla.core.share.partition.tally import Tally

__all__ = ["Actions", "SharePartition", "SharePartitionSettings", "Tally"]
