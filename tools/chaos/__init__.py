"""Faults on a cluster of ottla, of Apache Kafka or of both, while clients of all kinds work on it.

    python -m tools.chaos --nodes ottla,ottla,apache --minutes 30 --seed 7

Needs what `make interop` needs: Java, and the jars of Apache Kafka. `tools.fault_run` chooses the faults: nodes are
killed, stopped, paused and cut off from others, the leader of the quorum or a follower, for seconds or for longer than
a broker's session. `tests.interop.quorum.cluster_load` has the clients, of librdkafka and Java, and checks in the end
what each was promised:

* What was acknowledged with acks=all is there; what idempotent producers have sent, once and in order.
* A transaction is there as a whole or not at all; what was read, processed and written in transactions, once.
* No record of a share group comes again after its acceptance was answered, and none is left.
* No record comes again to a consumer group that has committed its offset; words are counted once.
* Clients go on after each fault, and all replicas have the same bytes in the end.

`leadership` says who leads what, and when that changes. `tools.fault_run` is the other run: only ottla, Kafka's own
time-outs, and how soon all nodes know the truth about the quorum.
"""
