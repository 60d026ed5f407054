"""Which answer belongs to which request, for type checkers: `await client.send(FetchRequest())` is a FetchResponse.

The list follows from the schemas: tools/generate_types.py writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, overload

if TYPE_CHECKING:
    from ottla.wire import types as wire

__all__ = ["Coordinated", "SendOptions", "TypedSend"]

Coordinated = tuple[Literal["group", "transaction", "share"], str]
"""A kind of coordinator and the key that it is found by."""


class SendOptions(TypedDict, total=False):
    """Where a request goes, and how; without any of the first three, to any broker."""

    broker: int | Literal["controller"] | None
    """A node id, or "controller" for the one that Metadata names so."""
    partition: tuple[str, int] | None
    """To the leader of this topic's partition."""
    coordinator: Coordinated | None
    """To the coordinator: `("group", group_id)`, `("transaction", transactional_id)` or `("share", key)`."""
    version: int | None
    """Speak this version and no other one."""
    max_version: int | None
    """Speak the highest version that both sides have, but none above this one."""
    retry: bool
    """False: send it once, whatever happens."""
    lane: str
    """A connection of its own for what may wait at the broker; usual ones have their lanes already."""
    timeout_ms: int | None
    """How long the call may take with all its attempts."""


class TypedSend:
    """The typed half of `Client`."""

    if TYPE_CHECKING:
        # --- one for each API: begin
        @overload
        async def send(self, message: wire.ProduceRequest, /, **to: Unpack[SendOptions]) -> wire.ProduceResponse: ...
        @overload
        async def send(self, message: wire.FetchRequest, /, **to: Unpack[SendOptions]) -> wire.FetchResponse: ...
        @overload
        async def send(
            self, message: wire.ListOffsetsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ListOffsetsResponse: ...
        @overload
        async def send(self, message: wire.MetadataRequest, /, **to: Unpack[SendOptions]) -> wire.MetadataResponse: ...
        @overload
        async def send(
            self, message: wire.OffsetCommitRequest, /, **to: Unpack[SendOptions]
        ) -> wire.OffsetCommitResponse: ...
        @overload
        async def send(
            self, message: wire.OffsetFetchRequest, /, **to: Unpack[SendOptions]
        ) -> wire.OffsetFetchResponse: ...
        @overload
        async def send(
            self, message: wire.FindCoordinatorRequest, /, **to: Unpack[SendOptions]
        ) -> wire.FindCoordinatorResponse: ...
        @overload
        async def send(
            self, message: wire.JoinGroupRequest, /, **to: Unpack[SendOptions]
        ) -> wire.JoinGroupResponse: ...
        @overload
        async def send(
            self, message: wire.HeartbeatRequest, /, **to: Unpack[SendOptions]
        ) -> wire.HeartbeatResponse: ...
        @overload
        async def send(
            self, message: wire.LeaveGroupRequest, /, **to: Unpack[SendOptions]
        ) -> wire.LeaveGroupResponse: ...
        @overload
        async def send(
            self, message: wire.SyncGroupRequest, /, **to: Unpack[SendOptions]
        ) -> wire.SyncGroupResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeGroupsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeGroupsResponse: ...
        @overload
        async def send(
            self, message: wire.ListGroupsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ListGroupsResponse: ...
        @overload
        async def send(
            self, message: wire.SaslHandshakeRequest, /, **to: Unpack[SendOptions]
        ) -> wire.SaslHandshakeResponse: ...
        @overload
        async def send(
            self, message: wire.ApiVersionsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ApiVersionsResponse: ...
        @overload
        async def send(
            self, message: wire.CreateTopicsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.CreateTopicsResponse: ...
        @overload
        async def send(
            self, message: wire.DeleteTopicsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DeleteTopicsResponse: ...
        @overload
        async def send(
            self, message: wire.DeleteRecordsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DeleteRecordsResponse: ...
        @overload
        async def send(
            self, message: wire.InitProducerIdRequest, /, **to: Unpack[SendOptions]
        ) -> wire.InitProducerIdResponse: ...
        @overload
        async def send(
            self, message: wire.OffsetForLeaderEpochRequest, /, **to: Unpack[SendOptions]
        ) -> wire.OffsetForLeaderEpochResponse: ...
        @overload
        async def send(
            self, message: wire.AddPartitionsToTxnRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AddPartitionsToTxnResponse: ...
        @overload
        async def send(
            self, message: wire.AddOffsetsToTxnRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AddOffsetsToTxnResponse: ...
        @overload
        async def send(self, message: wire.EndTxnRequest, /, **to: Unpack[SendOptions]) -> wire.EndTxnResponse: ...
        @overload
        async def send(
            self, message: wire.WriteTxnMarkersRequest, /, **to: Unpack[SendOptions]
        ) -> wire.WriteTxnMarkersResponse: ...
        @overload
        async def send(
            self, message: wire.TxnOffsetCommitRequest, /, **to: Unpack[SendOptions]
        ) -> wire.TxnOffsetCommitResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeAclsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeAclsResponse: ...
        @overload
        async def send(
            self, message: wire.CreateAclsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.CreateAclsResponse: ...
        @overload
        async def send(
            self, message: wire.DeleteAclsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DeleteAclsResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeConfigsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeConfigsResponse: ...
        @overload
        async def send(
            self, message: wire.AlterConfigsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AlterConfigsResponse: ...
        @overload
        async def send(
            self, message: wire.AlterReplicaLogDirsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AlterReplicaLogDirsResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeLogDirsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeLogDirsResponse: ...
        @overload
        async def send(
            self, message: wire.SaslAuthenticateRequest, /, **to: Unpack[SendOptions]
        ) -> wire.SaslAuthenticateResponse: ...
        @overload
        async def send(
            self, message: wire.CreatePartitionsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.CreatePartitionsResponse: ...
        @overload
        async def send(
            self, message: wire.CreateDelegationTokenRequest, /, **to: Unpack[SendOptions]
        ) -> wire.CreateDelegationTokenResponse: ...
        @overload
        async def send(
            self, message: wire.RenewDelegationTokenRequest, /, **to: Unpack[SendOptions]
        ) -> wire.RenewDelegationTokenResponse: ...
        @overload
        async def send(
            self, message: wire.ExpireDelegationTokenRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ExpireDelegationTokenResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeDelegationTokenRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeDelegationTokenResponse: ...
        @overload
        async def send(
            self, message: wire.DeleteGroupsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DeleteGroupsResponse: ...
        @overload
        async def send(
            self, message: wire.ElectLeadersRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ElectLeadersResponse: ...
        @overload
        async def send(
            self, message: wire.IncrementalAlterConfigsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.IncrementalAlterConfigsResponse: ...
        @overload
        async def send(
            self, message: wire.AlterPartitionReassignmentsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AlterPartitionReassignmentsResponse: ...
        @overload
        async def send(
            self, message: wire.ListPartitionReassignmentsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ListPartitionReassignmentsResponse: ...
        @overload
        async def send(
            self, message: wire.OffsetDeleteRequest, /, **to: Unpack[SendOptions]
        ) -> wire.OffsetDeleteResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeClientQuotasRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeClientQuotasResponse: ...
        @overload
        async def send(
            self, message: wire.AlterClientQuotasRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AlterClientQuotasResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeUserScramCredentialsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeUserScramCredentialsResponse: ...
        @overload
        async def send(
            self, message: wire.AlterUserScramCredentialsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AlterUserScramCredentialsResponse: ...
        @overload
        async def send(self, message: wire.VoteRequest, /, **to: Unpack[SendOptions]) -> wire.VoteResponse: ...
        @overload
        async def send(
            self, message: wire.BeginQuorumEpochRequest, /, **to: Unpack[SendOptions]
        ) -> wire.BeginQuorumEpochResponse: ...
        @overload
        async def send(
            self, message: wire.EndQuorumEpochRequest, /, **to: Unpack[SendOptions]
        ) -> wire.EndQuorumEpochResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeQuorumRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeQuorumResponse: ...
        @overload
        async def send(
            self, message: wire.AlterPartitionRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AlterPartitionResponse: ...
        @overload
        async def send(
            self, message: wire.UpdateFeaturesRequest, /, **to: Unpack[SendOptions]
        ) -> wire.UpdateFeaturesResponse: ...
        @overload
        async def send(self, message: wire.EnvelopeRequest, /, **to: Unpack[SendOptions]) -> wire.EnvelopeResponse: ...
        @overload
        async def send(
            self, message: wire.FetchSnapshotRequest, /, **to: Unpack[SendOptions]
        ) -> wire.FetchSnapshotResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeClusterRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeClusterResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeProducersRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeProducersResponse: ...
        @overload
        async def send(
            self, message: wire.BrokerRegistrationRequest, /, **to: Unpack[SendOptions]
        ) -> wire.BrokerRegistrationResponse: ...
        @overload
        async def send(
            self, message: wire.BrokerHeartbeatRequest, /, **to: Unpack[SendOptions]
        ) -> wire.BrokerHeartbeatResponse: ...
        @overload
        async def send(
            self, message: wire.UnregisterBrokerRequest, /, **to: Unpack[SendOptions]
        ) -> wire.UnregisterBrokerResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeTransactionsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeTransactionsResponse: ...
        @overload
        async def send(
            self, message: wire.ListTransactionsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ListTransactionsResponse: ...
        @overload
        async def send(
            self, message: wire.AllocateProducerIdsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AllocateProducerIdsResponse: ...
        @overload
        async def send(
            self, message: wire.ConsumerGroupHeartbeatRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ConsumerGroupHeartbeatResponse: ...
        @overload
        async def send(
            self, message: wire.ConsumerGroupDescribeRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ConsumerGroupDescribeResponse: ...
        @overload
        async def send(
            self, message: wire.ControllerRegistrationRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ControllerRegistrationResponse: ...
        @overload
        async def send(
            self, message: wire.GetTelemetrySubscriptionsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.GetTelemetrySubscriptionsResponse: ...
        @overload
        async def send(
            self, message: wire.PushTelemetryRequest, /, **to: Unpack[SendOptions]
        ) -> wire.PushTelemetryResponse: ...
        @overload
        async def send(
            self, message: wire.AssignReplicasToDirsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AssignReplicasToDirsResponse: ...
        @overload
        async def send(
            self, message: wire.ListConfigResourcesRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ListConfigResourcesResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeTopicPartitionsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeTopicPartitionsResponse: ...
        @overload
        async def send(
            self, message: wire.ShareGroupHeartbeatRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ShareGroupHeartbeatResponse: ...
        @overload
        async def send(
            self, message: wire.ShareGroupDescribeRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ShareGroupDescribeResponse: ...
        @overload
        async def send(
            self, message: wire.ShareFetchRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ShareFetchResponse: ...
        @overload
        async def send(
            self, message: wire.ShareAcknowledgeRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ShareAcknowledgeResponse: ...
        @overload
        async def send(
            self, message: wire.AddRaftVoterRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AddRaftVoterResponse: ...
        @overload
        async def send(
            self, message: wire.RemoveRaftVoterRequest, /, **to: Unpack[SendOptions]
        ) -> wire.RemoveRaftVoterResponse: ...
        @overload
        async def send(
            self, message: wire.UpdateRaftVoterRequest, /, **to: Unpack[SendOptions]
        ) -> wire.UpdateRaftVoterResponse: ...
        @overload
        async def send(
            self, message: wire.InitializeShareGroupStateRequest, /, **to: Unpack[SendOptions]
        ) -> wire.InitializeShareGroupStateResponse: ...
        @overload
        async def send(
            self, message: wire.ReadShareGroupStateRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ReadShareGroupStateResponse: ...
        @overload
        async def send(
            self, message: wire.WriteShareGroupStateRequest, /, **to: Unpack[SendOptions]
        ) -> wire.WriteShareGroupStateResponse: ...
        @overload
        async def send(
            self, message: wire.DeleteShareGroupStateRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DeleteShareGroupStateResponse: ...
        @overload
        async def send(
            self, message: wire.ReadShareGroupStateSummaryRequest, /, **to: Unpack[SendOptions]
        ) -> wire.ReadShareGroupStateSummaryResponse: ...
        @overload
        async def send(
            self, message: wire.StreamsGroupHeartbeatRequest, /, **to: Unpack[SendOptions]
        ) -> wire.StreamsGroupHeartbeatResponse: ...
        @overload
        async def send(
            self, message: wire.StreamsGroupDescribeRequest, /, **to: Unpack[SendOptions]
        ) -> wire.StreamsGroupDescribeResponse: ...
        @overload
        async def send(
            self, message: wire.DescribeShareGroupOffsetsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DescribeShareGroupOffsetsResponse: ...
        @overload
        async def send(
            self, message: wire.AlterShareGroupOffsetsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.AlterShareGroupOffsetsResponse: ...
        @overload
        async def send(
            self, message: wire.DeleteShareGroupOffsetsRequest, /, **to: Unpack[SendOptions]
        ) -> wire.DeleteShareGroupOffsetsResponse: ...
        @overload
        async def send(
            self, message: wire.StreamsGroupTopologyDescriptionUpdateRequest, /, **to: Unpack[SendOptions]
        ) -> wire.StreamsGroupTopologyDescriptionUpdateResponse: ...
        @overload
        async def send(
            self, message: wire.UnregisterControllerRequest, /, **to: Unpack[SendOptions]
        ) -> wire.UnregisterControllerResponse: ...
        # --- one for each API: end
        @overload
        async def send(self, message: object, /, **to: Unpack[SendOptions]) -> object: ...

    async def send(self, message: object, /, **to: Unpack[SendOptions]) -> object:
        """Ask the cluster: any request of `ottla.wire.types`, in the highest version that both sides have.

        Connections that fail, and errors that another attempt can cure, are tried again until the deadline; see
        `ottla.client.client`. Errors in the answer are left there. Raises ClientError when there is no answer.
        """
        return await self._send(message, to)

    async def _send(self, message: object, options: SendOptions) -> object:
        raise NotImplementedError
