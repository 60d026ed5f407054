"""The format `ottla-share`: a share group as a stream.

Theory of operation. The driver's runner is a member of the group. It acquires records and logs the acquired *ranges* as
the end of a micro-batch; tasks read these ranges with ordinary fetches. So what a batch holds follows from Spark's
offset log alone: a batch that runs again has the same rows, and never any that were acquired later. The runner renews
the locks while a batch runs, and accepts its ranges once Spark has committed it, which it knows from being asked for
the next batch.

What a runner that died had acquired is released by the broker and delivered again. Ranges of batches that are
committed, and whose acceptance is not known to be stored, are *owed*: they are carried from offset to offset, and
accepted without being shown when they come again.

`options`   what users may say                      `plan`       batches, settling, owing
`offsets`   the offset in Spark's log               `acquiring`  the member on the driver
`ranges`    sets of offsets                         `reading`    what a task does
`deciding`  how rows are rejected and released      `decisions`  which rows were
`source`, `stream_reader`  what Spark calls
"""

from ottla.spark.share.deciding import reject, release

__all__ = ["reject", "release"]
