"""A world of share groups: two brokers that lead share partitions, the coordinator of their state, members, faults.

`deliveries`  the history of each record, from the responses of the brokers, and its invariants
`node`        the brokers: the product's leaders, sessions and coordinator on a virtual disk
`member`      a member of a share group
`world`       all of them together
`faults`      the faults, and a run from beginning to end
"""
