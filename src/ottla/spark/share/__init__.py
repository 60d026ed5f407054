"""The format `ottla-share`: a share group as a stream.

Theory of operation. The driver's runner is a member of the group. It acquires records and logs the acquired *ranges* as
the end of a micro-batch; tasks read these ranges with ordinary fetches. So Spark's offset log alone defines a batch: a
batch that runs again has the same rows, and none that were acquired later. The runner renews the locks while a batch
runs, and accepts its ranges once Spark has committed it, which it knows when Spark asks for the next batch.

The broker releases the records of a runner that died and delivers them again. Ranges of committed batches whose
acceptance is not known to be stored are *owed*: they are carried from offset to offset, and accepted without being
shown when they are delivered again.

`options`            the options of the format
`offsets`            the offset in Spark's log
`ranges`             sets of offsets
`plan`               plans batches, acknowledges them, and carries what is owed
`group_member`       the member of the share group, on the driver
`task_reader`        reads the acquired ranges, in a task
`decision_listener`  receives from tasks which rows are rejected or released
`decisions`          keeps these decisions until their batch is acknowledged
`source`, `stream_reader`  the interface to Spark
"""

from ottla.spark.share.decision_listener import reject, release

__all__ = ["reject", "release"]
