"""Simulated quorums: real `ottla.core.quorum` replicas, with a virtual clock, network and disks that fail from a seed.

=============  =====================================================================================
module         holds
=============  =====================================================================================
virtual_log    the metadata log of one node, on a disk that may lose what is not synced
node           one machine: its disk, its quorum, what it was told to send and to write
world          all of them, the network between them, the clock; the invariants after every step
faults         what goes wrong, and when
runner         one seed, many seeds, and the shortest run that still fails
scenario       conversations with quorums as text, as they are kept in tests/golden/scenarios/quorum
picture        a run as SVG: who led when, where the logs ended
=============  =====================================================================================
"""
