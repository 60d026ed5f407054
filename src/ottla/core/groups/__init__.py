"""The group coordinator: classic, consumer and streams groups, and the offsets that groups commit.

`coordinator.GroupCoordinator` is the core of one partition of `__consumer_offsets` (shape A of the design). It routes
requests, records and deadlines to *families*, one for each kind of group and one for offsets; they share one table of
groups (`table.GroupTable`). No input or output: time, topics, settings and randomness come in with each call.
"""
