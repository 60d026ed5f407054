"""Share groups and their members (KIP-932): one kind of the modern groups of `ottla.core.groups.modern`.

===================  =================================================================================================
`members`            a member, and `group`, the group, as their records tell them
`records`            records 10 to 15 of `__consumer_offsets`, written and read
`state_topics`       the share partitions that have state, are getting it, or are losing it
`validation`         what a heartbeat may say, and which epochs are fenced
`heartbeat`          what a heartbeat leads to
`initialization`     share partitions that are getting state, and who waits for it
`offsets`            an administrator changes where a group stands, or makes it forget
`group_description`  a group as it is shown
`effects`            what is asked of the edge: state made, and state deleted
`family`             all of it, behind the interface of the group coordinator
===================  =================================================================================================
"""
