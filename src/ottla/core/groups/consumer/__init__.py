"""Consumer groups: the rebalance protocol of KIP-848, in which the coordinator assigns and members follow one by one.

Theory of operation. Epochs, targets and heartbeats are those of all modern groups (`ottla.core.groups.modern`). A
member whose epoch is not the one that the coordinator knows is fenced: it lost an answer, or its place.

Between target and member stands *reconciliation*: a partition is first taken from its owner, who confirms with a
heartbeat that no longer lists it, and only then given to the next. So nobody waits for the others, and no partition has
two owners.

===========================  =======================================================================================
`members`                    a member as the records tell it
`group`                      a group as the records tell it: members, targets, who owns what, resolved patterns
`records`                    values from and to records 3 to 8 and 16 of `__consumer_offsets`
`validation`                 requests that cannot be, and epochs that must not be
`settings`                   what is set for a group
`heartbeat`                  one step of one member: subscription, epochs, target, reconciliation
`reconciliation`             from what a member owns towards its target
`targets`, `topic_sets`      what the assignors are asked, and what their answer changes
`patterns`                   subscriptions by pattern, in RE2's language, resolved in slices
`group_description`          a group for people
`family`                     the requests, records and deadlines of all of them
===========================  =======================================================================================
"""
