"""Share groups on a node: the share partitions that it leads, and the state that share coordinators keep of them.

`share_node`            everything of share groups that a node has: `Node.share`
`leader`                the share partitions that this node leads, and the share sessions
`led_share_partition`   one share partition: its core, its writes, its deadlines
`delayed_share_fetch`   one ShareFetch request
`acknowledgements`      the acknowledgements of one request, and ShareAcknowledge
`responses`             what the responses of both have in common
`request_checks`        the checks that both begin with
`log_reader`            finds the batches to deliver
`start_offset`          where a group begins: share.auto.offset.reset
`counts`                counts of deliveries, by group
`samples`               the same for the metrics page
`edge`                  what all of these need of a node
`persister`             requests to share coordinators, retried and kept in order
`state_requests`        sends one such request to all share coordinators that it is about
`state_samples`         numbers about the state, for the metrics page
`dead_letters`          writes rejected records to dead-letter queues
`dead_letter_records`   the records that are written there
`backoff`               pauses between retries
`share_window`          what is in flight, for the inspect listener
"""

from ottla.broker.share.share_node import ShareNode

__all__ = ["ShareNode"]
