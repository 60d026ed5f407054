"""Share groups (KIP-932): members, share partitions, share sessions and the coordinator of their state. No input or
output.

`group` is a family of the group coordinator: who is a member, and who reads which partitions.
`partition` is one share partition on the leader of its topic partition: who holds which offsets, and what has become of
them. `sessions` are the conversations of members with a broker. `state` is the core of a partition of
`__share_group_state`, which keeps what must outlive a leader.
"""
