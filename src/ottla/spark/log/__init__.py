"""The format `ottla-log`: topics from the files of a broker.

It reads a log directory of ottla or of Apache Kafka on any file system, without a broker, which may be running, stopped
or gone. The modules, from the bottom:

==============  ======================================================================================================
`storage`       files of this machine, or of any file system of pyarrow or fsspec
`directory`     finds partitions, their files and the checkpoints
`segments`      a segment and its indexes, which are hints: each entry is compared with the log before it is used
`view`          one partition: its start and end, offsets by time, the last stable offset, aborted transactions
`plan`          divides ranges of offsets into tasks, at record batches
`read`          reads a task as Arrow batches; damage, torn ends, missing files
==============  ======================================================================================================
"""
