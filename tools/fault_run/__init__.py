"""Faults, one after the other, on a cluster of real nodes with Kafka's own time-outs, while metadata are changed.

    python -m tools.fault_run --faults 100 --seed 7

`plan` says which faults, `writer` changes metadata all the while, `run` does both and looks, `evidence` reads the logs
of the nodes afterwards. What must hold:

* No change that was answered is lost, on any node, and the metadata logs of all nodes are equal.
* Every broker's DescribeQuorum names the leader and the ends of the voters soon after an election, and after a fault.
* The epoch rises by a few for each fault, and not for ever.
* No broker is fenced that could be heard: not before it was out of reach for a session.
"""
