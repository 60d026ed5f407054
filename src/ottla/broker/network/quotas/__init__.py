"""Client quotas: which clients are over a limit, and for how long their connections are muted.

Theory of operation. No request is refused or delayed: it is answered at once, the response says how long the client
must pause (`throttle_time_ms`), and for that long the broker reads nothing from its connection. A client that knows
quotas pauses by itself; for any other the broker is just slow.

===========  ===========================================================================================
module       holds
===========  ===========================================================================================
rates        how fast something goes: a rate over moving windows, and a bucket of tokens
limits       whose limit a request counts against
sensors      one kind of limit: the rates of all who have one, and the pause that follows
quotas       the five kinds of a node, as the metadata log tells their limits
charges      a request and its quotas, from its first byte to its answer
===========  ===========================================================================================

Without any limit none of this is touched: `Dispatch.quotas` and `Listener.connection_rates` are None.
"""
