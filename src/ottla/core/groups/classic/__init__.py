"""Classic groups: members elect a leader among them, and the leader assigns the work (KIP-62, KIP-345, KIP-394).

Theory of operation. A member joins (JoinGroup); its request is parked until all members have joined again or time is
up. Then a new *generation* begins: everybody is answered, one member as leader, with what each member told about
itself. The leader assigns and hands the assignment in (SyncGroup); all other SyncGroups are parked until it is written
to the log. What the metadata and the assignments mean is the clients' business: consumers, Connect workers and Schema
Registries are all the same here, and a cooperative rebalance is two ordinary ones.

Hard state is what the last GroupMetadata record of a group says, kept as `ClassicGroup.stored`. Kafka writes one

* before the answer to the first JoinGroup of a group: no type, generation 0, no members;
* when the leader's assignment is there: all members, with it;
* when a rebalance ends with nobody left: type, the new generation, no protocol, no leader, no members;
* when a static member comes back to a stable group under a new member id;
* and a tombstone when the group is deleted or turns into another kind of group.

Everything else is soft and is lost with the node: the rebalance in progress and its deadlines, members that have joined
since the last record, parked requests, members that were given an id and have not come back with it (*pending* ones),
when a member was last heard of. After a restart the members of the last record are there, the group is Stable in that
generation, and every session begins anew; clients that were in the middle of a rebalance are told so by their next
request and join again.

The steps are in `states.TRANSITIONS`. The step to Stable needs a write: until it is committed the group stays in
CompletingRebalance, and if it cannot be written everybody is told the error and a new rebalance begins. A write that
brings back a static member is undone likewise.

==============================  ======================================================================================
`states`                        the states and the steps between them
`member`, `group`               what a member and a group are, and what any kind of group can be asked
`step`                          what one call decides: answers, timers, records
`subscriptions`                 the topics that consumers subscribe to, if their metadata can be read
`rebalance`                     the beginning and the end of the joining phase
`join_group`, `static_members`  JoinGroup
`sync_group`                    SyncGroup and the step to Stable
`leave_group`                   LeaveGroup
`expiry`                        sessions, pending members and syncs that did not come in time
`records`                       a group as its record, and back
`release`                       a group that turns into another kind
`family`                        which request goes where
==============================  ======================================================================================
"""
