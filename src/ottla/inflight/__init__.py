"""What share groups have in flight, on any cluster.

`window` is what is in flight in a partition, range by range; `sources` reads it from an ottla broker, or from records
of `__share_group_state`.
"""
