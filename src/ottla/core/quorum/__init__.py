"""KRaft: who leads the metadata log, how it is replicated, and up to where it is committed.

Theory of operation. `Quorum.step` takes an event and gives actions: things to write, messages to send, a high watermark
that has risen. It does no input or output. As in etcd's raft, a message leaves only after what it speaks of is on disk:
while a new epoch, leader or vote is being stored, messages are held back and events wait; a follower fetches, and so
acknowledges, what it has synced; a leader counts its own records when they are synced.

Followers fetch. A fetch names the end of the follower's log and the epoch of its last record; the leader answers with
records, or with where both logs differ, or with a snapshot to load first. A leader asks nobody to vote for it again:
it resigns when a majority of the voters has not fetched for a while.

===================  =================================================================================
module               holds
===================  =================================================================================
quorum               the state machine: events, polls, transitions
states               the states, with a table of how one leads to another
events               events, actions, settings, and what the quorum needs of the log
requests             the requests on their way, and peers that are left alone for a while
vote                 Vote and pre-votes (KIP-996): who grants what in which state
quorum_epoch         BeginQuorumEpoch and EndQuorumEpoch
fetch                Fetch, as the leader answers it
fetch_snapshot       FetchSnapshot, as the leader answers it
follower             what a follower sends, and what it makes of the answers
leader               a leader's first records, the high watermark, whom it hears
replica_progress     how far the replicas have come
voters               the set of voters, and its history in the log
voter_changes        AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, the upgrade (KIP-853)
describe_quorum      DescribeQuorum
messages             what the messages have in common
stored               quorum-state, the file that must never forget an epoch or a vote
===================  =================================================================================

`simulation.quorum` tries to break it.
"""
