"""The APIs in groups, by subject."""

from __future__ import annotations

from functools import cache

GROUPS = {
    "Records": "Produce Fetch ListOffsets DeleteRecords OffsetForLeaderEpoch DescribeProducers",
    "Cluster": "Metadata ApiVersions DescribeCluster DescribeTopicPartitions UpdateFeatures "
    "GetTelemetrySubscriptions PushTelemetry",
    "Topics": "CreateTopics DeleteTopics CreatePartitions ElectLeaders AlterPartitionReassignments "
    "ListPartitionReassignments",
    "Groups and offsets": "FindCoordinator OffsetCommit OffsetFetch OffsetDelete ListGroups DeleteGroups",
    "Classic groups": "JoinGroup SyncGroup Heartbeat LeaveGroup DescribeGroups",
    "Consumer groups": "ConsumerGroupHeartbeat ConsumerGroupDescribe",
    "Share groups": "ShareGroupHeartbeat ShareGroupDescribe ShareFetch ShareAcknowledge DescribeShareGroupOffsets "
    "AlterShareGroupOffsets DeleteShareGroupOffsets InitializeShareGroupState ReadShareGroupState "
    "WriteShareGroupState DeleteShareGroupState ReadShareGroupStateSummary",
    "Streams groups": "StreamsGroupHeartbeat StreamsGroupDescribe StreamsGroupTopologyDescriptionUpdate",
    "Transactions": "InitProducerId AddPartitionsToTxn AddOffsetsToTxn TxnOffsetCommit EndTxn WriteTxnMarkers "
    "DescribeTransactions ListTransactions AllocateProducerIds",
    "Settings and quotas": "DescribeConfigs AlterConfigs IncrementalAlterConfigs ListConfigResources "
    "DescribeClientQuotas AlterClientQuotas",
    "Security": "SaslHandshake SaslAuthenticate DescribeAcls CreateAcls DeleteAcls CreateDelegationToken "
    "RenewDelegationToken ExpireDelegationToken DescribeDelegationToken DescribeUserScramCredentials "
    "AlterUserScramCredentials",
    "Quorum": "Vote BeginQuorumEpoch EndQuorumEpoch DescribeQuorum FetchSnapshot AddRaftVoter RemoveRaftVoter "
    "UpdateRaftVoter ControllerRegistration UnregisterController",
    "Brokers and disks": "BrokerRegistration BrokerHeartbeat UnregisterBroker AlterPartition Envelope "
    "AssignReplicasToDirs AlterReplicaLogDirs DescribeLogDirs",
}


@cache
def group_of() -> dict[str, str]:
    """API -> its group."""
    return {api: group for group, apis in GROUPS.items() for api in apis.split()}
