"""KRaft: who leads the metadata log, and up to where it is committed.

Theory of operation. `Quorum.step` takes an event and gives actions: things to write, a high watermark that has risen.
It does no input or output. A transition that needs something on disk is pending until the write is reported done, as
in etcd's raft: nothing is said or appended in an epoch before the state that speaks of it is stored.

So far a quorum has one voter, this node. The events and actions are those that several voters need as well; their
messages will be further events.

=======  ========================================================================
module   holds
=======  ========================================================================
quorum   the state machine
voters   the set of voters, and its history in the log
stored   quorum-state, the file that must never forget an epoch or a vote
=======  ========================================================================
"""
