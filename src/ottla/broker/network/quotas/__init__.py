"""Client quotas at work: who is over his limit, and how long he is not listened to.

Theory of operation. Nothing is refused and nothing waits: a request is answered at once, the answer says how long its
sender must pause (`throttle_time_ms`), and for that long nothing is read from its connection. So a client that knows of
quotas pauses by itself, and one that does not feels a slow broker.

===========  ===========================================================================================
module       holds
===========  ===========================================================================================
rates        how fast something goes: a rate over moving windows, and a bucket of tokens
limits       whose limit a request counts against
sensors      one kind of limit: the rates of all who have one, and the pause that follows
quotas       the five kinds of a node, as the metadata log tells their limits
charging     a request and its quotas, from its first byte to its answer
===========  ===========================================================================================

Without any limit none of this is touched: `Dispatch.quotas` and `Listener.connection_rates` are None.
"""
