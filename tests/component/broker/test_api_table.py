"""The ApiVersions table of a listener for clients is that of Apache Kafka 4.4, key by key."""

from pathlib import Path

import pytest

from ottla.wire.types.api_versions import ApiVersionsRequest
from tests.component.broker.raw_client import Closed, RawClient, running_node

BROKER_TABLE = {
    0: (0, 13),  # Produce; 0 to 2 are shown and not served
    1: (4, 18),  # Fetch
    2: (1, 11),  # ListOffsets
    3: (0, 13),  # Metadata
    8: (2, 10),  # OffsetCommit
    9: (1, 10),  # OffsetFetch
    10: (0, 6),  # FindCoordinator
    11: (0, 9),  # JoinGroup
    12: (0, 4),  # Heartbeat
    13: (0, 5),  # LeaveGroup
    14: (0, 5),  # SyncGroup
    15: (0, 6),  # DescribeGroups
    16: (0, 5),  # ListGroups
    17: (0, 1),  # SaslHandshake
    18: (0, 5),  # ApiVersions
    19: (2, 7),  # CreateTopics
    20: (1, 6),  # DeleteTopics
    21: (0, 2),  # DeleteRecords
    22: (0, 5),  # InitProducerId
    23: (2, 4),  # OffsetForLeaderEpoch
    24: (0, 5),  # AddPartitionsToTxn
    25: (0, 4),  # AddOffsetsToTxn
    26: (0, 5),  # EndTxn
    27: (1, 2),  # WriteTxnMarkers
    28: (0, 6),  # TxnOffsetCommit
    29: (1, 3),  # DescribeAcls
    30: (1, 3),  # CreateAcls
    31: (1, 3),  # DeleteAcls
    32: (1, 4),  # DescribeConfigs
    33: (0, 2),  # AlterConfigs
    34: (1, 2),  # AlterReplicaLogDirs
    35: (1, 5),  # DescribeLogDirs
    36: (0, 2),  # SaslAuthenticate
    37: (0, 3),  # CreatePartitions
    38: (1, 3),  # CreateDelegationToken
    39: (1, 2),  # RenewDelegationToken
    40: (1, 2),  # ExpireDelegationToken
    41: (1, 3),  # DescribeDelegationToken
    42: (0, 3),  # DeleteGroups
    43: (0, 2),  # ElectLeaders
    44: (0, 1),  # IncrementalAlterConfigs
    45: (0, 1),  # AlterPartitionReassignments
    46: (0, 0),  # ListPartitionReassignments
    47: (0, 0),  # OffsetDelete
    48: (0, 1),  # DescribeClientQuotas
    49: (0, 1),  # AlterClientQuotas
    50: (0, 0),  # DescribeUserScramCredentials
    51: (0, 0),  # AlterUserScramCredentials
    55: (0, 2),  # DescribeQuorum
    57: (0, 2),  # UpdateFeatures
    60: (0, 2),  # DescribeCluster
    61: (0, 0),  # DescribeProducers
    64: (0, 0),  # UnregisterBroker
    65: (0, 0),  # DescribeTransactions
    66: (0, 2),  # ListTransactions
    68: (0, 1),  # ConsumerGroupHeartbeat
    69: (0, 1),  # ConsumerGroupDescribe
    74: (0, 1),  # ListConfigResources
    75: (0, 0),  # DescribeTopicPartitions
    76: (1, 1),  # ShareGroupHeartbeat
    77: (1, 1),  # ShareGroupDescribe
    78: (1, 2),  # ShareFetch
    79: (1, 2),  # ShareAcknowledge
    80: (0, 1),  # AddRaftVoter
    81: (0, 0),  # RemoveRaftVoter
    83: (0, 0),  # InitializeShareGroupState
    84: (0, 0),  # ReadShareGroupState
    85: (0, 1),  # WriteShareGroupState
    86: (0, 0),  # DeleteShareGroupState
    87: (0, 1),  # ReadShareGroupStateSummary
    88: (0, 1),  # StreamsGroupHeartbeat
    89: (0, 1),  # StreamsGroupDescribe
    90: (0, 1),  # DescribeShareGroupOffsets
    91: (0, 0),  # AlterShareGroupOffsets
    92: (0, 0),  # DeleteShareGroupOffsets
    93: (0, 0),  # StreamsGroupTopologyDescriptionUpdate
    94: (0, 0),  # UnregisterController
}
TELEMETRY = {71: (0, 0), 72: (0, 0)}  # GetTelemetrySubscriptions, PushTelemetry


def table(client: RawClient, version: int = 4) -> dict[int, tuple[int, int]]:
    answer = client.ask(ApiVersionsRequest("test", "1"), version)
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_key_has_the_range_of_apache_kafka(client: RawClient, version: int):
    assert table(client, version) == BROKER_TABLE


def test_with_telemetry_two_more_are_shown(tmp_path: Path):
    with running_node(tmp_path, ottla_client_telemetry_enable="true") as node:
        shown = table(node.client)
        assert shown == BROKER_TABLE | TELEMETRY
        assert len(shown) == 79


def test_unstable_versions_are_shown_when_they_are_asked_for(tmp_path: Path):
    with running_node(tmp_path, unstable_api_versions_enable="true") as node:
        assert table(node.client) == BROKER_TABLE | {22: (0, 6)}


@pytest.mark.parametrize("key", [4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82])
def test_what_belongs_to_controllers_or_to_the_past_is_closed(client: RawClient, key: int):
    connection = client.connect()
    header = key.to_bytes(2, "big") + b"\0\0" + b"\0\0\0\1" + b"\0\1x"
    connection.send_bytes(len(header).to_bytes(4, "big") + header)
    with pytest.raises(Closed):
        connection.receive(key, 0, 1)
