"""The simulation: real coordinators, with simulated time, topics, network and disk.

It has two uses. *Scenarios* (`scenario`) are text conversations with one coordinator, kept as golden files;
docs/how-to/testing.md shows the language. *Worlds* (`world`) are clients, a network and a disk that fail, from a
seed:

    python -m simulation --families classic,consumer --seeds 200

Both drive a real `Shard` over a real `ottla.log` partition on a `VirtualDisk`. The simulation is for ottla's own tests,
so names may change with any release.
"""
