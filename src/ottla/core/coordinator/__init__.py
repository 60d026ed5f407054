"""What all coordinators with a log have in common: groups, transactions, share-group state.

A coordinator is a *core*, which decides, and a *shard* of the broker's runtime, which does: it appends what the core
decides to one partition of an internal topic, replays it, and lets the answers leave when it is committed. This package
says what passes between the two (`contract`) and has the small pieces that every core needs: deadlines as data
(`deadlines`), which partition a name belongs to (`partitioner`), records as bytes (`records`). It does no input or
output.
"""
