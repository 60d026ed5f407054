"""The share coordinator: what has become of the records of share partitions, kept in `__share_group_state`.

`batches`      ranges of delivery states, combined as Kafka combines them
`kept`         what is kept of a share partition, and its records
`messages`     its requests, taken apart by share partition
`coordinator`  the core of one partition of the topic
"""

from ottla.core.share.state.coordinator import PruneLog, ShareStateCoordinator

__all__ = ["PruneLog", "ShareStateCoordinator"]
