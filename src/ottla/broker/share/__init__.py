"""Share groups on a node: the leaders' side of share partitions, and what keeps their state.

`share_node`  what a node has of it, in one place: `Node.share`
`persister`   requests to the share coordinators, wherever they are
"""

from ottla.broker.share.share_node import ShareNode

__all__ = ["ShareNode"]
