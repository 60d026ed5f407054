"""Kafka's on-disk format: partitions as segments, indexes, producer state and checkpoints, written and read by us.

    storage = LogStorage(OsDisk())
    create_partition_directory(storage.disk, path, topic_id)
    partition, report = load(storage, LoadRequest(path, TopicPartition("orders", 0), config, is_clean=True), now_ms)
    partition.append_as_leader(batch, leader_epoch, now_ms)
    partition.read(0, 1 << 20, Isolation.LOG_END)

How it fits together, from below:

============================================  ========================================================================
`disk`, `files`                               access to the disk; files that are opened when needed
`names`, `checkpoint`, `config`, `errors`     names, small text files, settings, what is refused
`index_file`, `offset_index`, `time_index`,   the indexes of a segment
`txn_index`
`scan`, `segment`                             the batches in a file; a segment with its indexes
`leader_epochs`                               which leader epoch wrote what
`producer_entry`, `producer_state`,           idempotence and transactions
`producer_snapshot`, `rebuild`
`partition`, `append`, `read`, `flush`        the log of a partition
`recovery`, `cuts`                            loads a partition after a stop or a crash; what recovery cut off
`retention`, `compaction`, `cleaner`          which segments and records are deleted, and when
`directory`, `lock`, `dump`                   a log directory; any of its files as lines
============================================  ========================================================================

Nothing here uses sockets, clocks or the event loop: the broker passes the time in, and decides when to write, to flush
and to go on with long work.
"""
