"""Transactions where they touch logs and connections: markers, producer ids, and what Produce asks the coordinator.

What a transaction is and when it may end is decided in `ottla.core.txn`. Here is what its coordinator has done
(`markers`), how markers get into this node's partitions (`appending`), and how an append finds out whether it belongs
to a transaction (`verifying`).
"""
