"""Share groups (KIP-932): records of topics handed out like work from a queue. `ShareConsumer` is what users need.

`membership` joins the group, `session` and `exchange` talk to leaders, `records` reads what they hand out, and
`acknowledgements` collects what became of it.
"""

from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.records import AcknowledgeType, Acquired, AcquiredRange, ShareRecord

__all__ = ["AcknowledgeType", "Acquired", "AcquiredRange", "ShareConsumer", "ShareRecord"]
