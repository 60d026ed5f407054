"""The controller and the image: requests become metadata records, metadata records become the cluster's state.

Theory of operation. A cluster's state is what its metadata log says, no more. `MetadataImage.replay` reads the log's
records one by one and is the only thing that changes the state. `Controller.handle` reads the state and answers a
request with records and a reply, and changes nothing; whoever calls it appends the records as one batch, replays them
and lets the reply out once they are committed::

    result = controller.handle(request, context)              # reads
    data = build_batches(result, base_offset=end, ...)        # bytes for the log
    ...                                                       # append, wait for the high watermark
    image.replay(record, offset, epoch)                       # changes

A change that concerns many partitions, as when a broker is fenced, comes in slices: `result.rest` works out further
records when those before are replayed. Timers are data: `next_deadline_ms` says when `tick` has something to do.

So a node that starts replays its log, or a snapshot and the rest of the log, and has the state it had. Clocks, random
ids, files and peers come in as arguments.

===================  ==================================================================================
module               holds
===================  ==================================================================================
image                the state, and `replay`
topic_image          topics and partitions in it
cluster_image        brokers and controllers in it
records              records <-> batches of the log
snapshot             image <-> snapshot files
features             features, their levels, what depends on what, record versions by metadata.version
bootstrap            the first records of a new cluster; what a new active controller writes
format               the files of a formatted directory
controller           one door for all requests
topics, partitions   CreateTopics and DeleteTopics; CreatePartitions, ListPartitionReassignments
configs              AlterConfigs and IncrementalAlterConfigs
brokers, sessions    registration, heartbeats, fencing, shutdown; who was heard of when
directories          AssignReplicasToDirs
in_sync_replicas     AlterPartition
reassignments        AlterPartitionReassignments and ListPartitionReassignments
leaders              ElectLeaders
elections            what becomes of partitions when brokers come and go
placement            which brokers hold a new partition
feature_updates      UpdateFeatures
producer_ids         AllocateProducerIds
client_quotas        AlterClientQuotas, and what DescribeClientQuotas finds
delegation_tokens    CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken; tokens that expire
scram                AlterUserScramCredentials, and what DescribeUserScramCredentials finds
context, checks      what comes with a request and what a handler gives back; checks they share
===================  ==================================================================================
"""
