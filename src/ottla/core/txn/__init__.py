"""The transaction coordinator: who may write under a transactional id, and how its transactions end.

`coordinator.TransactionCoordinator` is the core of one partition of `__transaction_state` (shape A of the design). What
a transactional id is and which steps it can take stands in `transaction` and `states`; how each request is judged in
`init_producer_id`, `add_partitions` and `end_txn`; how a transaction is ended on all its partitions in `workflow`.
No input or output: markers and producer ids are effects (`messages`) that the broker performs.
"""
