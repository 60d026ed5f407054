"""Load of all kinds of clients on a cluster of ottla, for hours and without faults: does a node need ever more?

    python -m tools.soak --minutes 120

Needs what `make interop` needs, and Linux. `tests.interop.quorum.cluster_load` has the clients, and checks in the end
what each was promised, as in `tools.chaos`. Old records are deleted and old states compacted all the while, so that the
disk, too, comes to rest. `sampling` looks at memory, open files, threads and disk of each node, `growth` says which of
them grow, and `run` does all of it.
"""
