"""Coordinators in a world made of values: time, topics, network and disk are simulated, everything else is the product.

Two uses. *Scenarios* (`scenario`) are text conversations with one coordinator, kept as golden files; docs/testing.md
shows the language. *Worlds* (`world`) are clients, a network and a disk that misbehave at random, from a seed:

    python -m simulation --families classic,consumer --seeds 200

Both drive a real `Shard` over a real `ottla.log` partition, which lies on a `VirtualDisk`. Meant for ottla's own tests;
whoever is curious how a group protocol behaves may use it, but names here may change with any release.
"""
