"""Simulated clusters: whole nodes of ottla and clients of all kinds in one process, on virtual time.

What runs is the product: `ottla.broker.node.Node` and `ottla.client`. What is simulated is what they stand on.

=================  =====================================================================================
module             holds
=================  =====================================================================================
processes, loop    whose code runs, and when; kill and pause
network, transport links and connections, as TCP makes them
machine            a disk, a clock, threads, and the node that runs there, life after life
world              all of them
clients            what clients do, by kind
history            what they asked for and were told
raft_invariants    what must hold at every step of the quorum
checks             what must hold of the metadata when the calm has come, and of coordinators (`coordinator_checks`)
data_checks        what must hold of records, groups and transactions then, by what a client reads (`readings`)
faults             what goes wrong, and when; `aimed_faults` wait for their moment
runner, command    one seed, many seeds, and the shortest run that still fails
=================  =====================================================================================
"""
