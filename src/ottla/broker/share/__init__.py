"""Share groups on a node: the leaders' side of share partitions, and what keeps their state.

`share_node`     what a node has of it, in one place: `Node.share`
`leader`         the share partitions that are led here, and the sessions of those who fetch from them
`led`            one share partition: its core, its writes, its deadlines
`fetching`       one ShareFetch on its way
`acknowledging`  the acknowledgements of one request
`answering`      what both have in their answers
`checking`       what both are judged by
`reading`        where the records lie
`starting`       where a group begins
`counts`         what has become of records, by group
`samples`        the same for the page of metrics
`edge`           what all of these need of a node
`persister`      requests to the share coordinators, wherever they are, tried again and kept in order
`asking`         one such request, put to those who are concerned
`pruning`        what the share coordinators ask for
`state_samples`  numbers about all of this
`dead_letters`   what groups give up, on its way to their dead-letter queues
`letters`        what stands in a dead letter
`backing_off`    how often something is tried again
`viewing`        what is in flight, for those who look
"""

from ottla.broker.share.share_node import ShareNode

__all__ = ["ShareNode"]
