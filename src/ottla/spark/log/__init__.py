"""Topics from the files of a broker: the format `ottla-log`.

A log directory of ottla or of Apache Kafka is read as it lies there, on any file system, without a broker; one that is
running, stopped or gone. How it fits together, from below:

==============  ======================================================================================================
`storage`       files of this machine, or of whatever pyarrow or fsspec can reach
`directory`     which partitions there are, which files they have, what the checkpoints say
`segments`      a segment and its indexes, which are hints: what they say is compared with the log before it is used
`view`          one partition: where it begins and ends, offsets by time, the last stable offset, aborted transactions
`plan`          ranges of offsets to tasks, cut at record batches
`read`          a task to Arrow batches; damage, torn ends, files that are gone
==============  ======================================================================================================
"""
