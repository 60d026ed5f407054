"""Groups that change between the classic and the consumer protocol while members are in them (KIP-848, migration).

Theory of operation. Members are rolled one by one. The first member of the new protocol that joins a classic group
*upgrades* it: the group becomes a consumer group in place, its members keep their ids, sessions and partitions, and
their generation becomes the group epoch. From then on the coordinator assigns, to members of either protocol; those of
the classic one are told by the answers of their own protocol what to do:

================  ====================================================================================================
Heartbeat         REBALANCE_IN_PROGRESS when the member is behind, must revoke, or can have what it waited for
JoinGroup         is a step of the member: what it reports to own is taken for what it owns. The answer has its member
                  epoch as the generation, and no leader, so that nobody assigns
SyncGroup         gives the member what it may have now
LeaveGroup        removes it
================  ====================================================================================================

When the last member of the new protocol goes, the group is *downgraded*: it becomes a classic group with the epoch as
its generation and the target as its assignment, and rebalances, so that one of its members assigns again. Which of the
two is allowed, group.consumer.migration.policy says.

`subscriptions` reads and writes what classic members send as opaque bytes, `upgrade` and `downgrade` convert,
`host` serves members of the classic protocol in a consumer group, `attachment` joins the two families.
"""
