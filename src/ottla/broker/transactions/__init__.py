"""Transactions where they touch logs and connections: markers, producer ids, and what Produce asks the coordinator.

`ottla.core.txn` decides what a transaction is and when it ends. `markers` performs the effects of its coordinator,
`marker_appends` writes markers to partitions of this node, and `verification` asks the coordinator whether an append
belongs to an ongoing transaction (`remote_coordinators`, if it is on another node); `transactional_produce` does so for
Produce.
"""
