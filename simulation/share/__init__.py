"""A world of share groups: two brokers that lead share partitions, the coordinator of their state, members, faults.

`deliveries`  what has become of each record, as whoever watches the brokers sees it, and what must hold
`node`        the brokers: the product's leaders, sessions and coordinator on a virtual disk
`member`      a member of a share group
`world`       all of them together
`faults`      what goes wrong, and a run from beginning to end
"""
