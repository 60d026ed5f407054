from typing import Any

import pytest

from ottla.core.metadata.controller import REQUESTS, refuse
from ottla.core.metadata.fault import Reject
from ottla.wire import decode, encode, versions
from ottla.wire.errors import ErrorCode
from ottla.wire.types.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.types.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.types.alter_configs import AlterConfigsRequest
from ottla.wire.types.alter_partition import AlterPartitionRequest
from ottla.wire.types.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.types.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from ottla.wire.types.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.controller_registration import ControllerRegistrationRequest
from ottla.wire.types.create_acls import CreateAclsRequest
from ottla.wire.types.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.types.create_partitions import CreatePartitionsRequest
from ottla.wire.types.create_topics import CreateTopicsRequest
from ottla.wire.types.delete_acls import DeleteAclsRequest
from ottla.wire.types.delete_topics import DeleteTopicsRequest
from ottla.wire.types.elect_leaders import ElectLeadersRequest
from ottla.wire.types.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.types.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.types.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.types.unregister_broker import UnregisterBrokerRequest
from ottla.wire.types.unregister_controller import UnregisterControllerRequest
from ottla.wire.types.update_features import UpdateFeaturesRequest
from tests.unit.core.metadata.cluster import Cluster, registration, uuid

QUOTA = AlterClientQuotasRequest.EntryData(
    (AlterClientQuotasRequest.EntityData("user", "ann"),),
    (AlterClientQuotasRequest.OpData("producer_byte_rate", 1.0),),
)
CREDENTIAL = AlterUserScramCredentialsRequest.ScramCredentialUpsertion("ann", 1, 4096, b"salt", b"salted")

SAMPLES: list[tuple[Any, Any]] = [
    (
        CreateTopicsRequest((CreateTopicsRequest.CreatableTopic("new", 2, 1),)),
        CreateTopicsRequest((CreateTopicsRequest.CreatableTopic("there", 2, 1),)),
    ),
    (
        CreateAclsRequest((CreateAclsRequest.AclCreation(2, "there", 3, "User:ann", "*", 3, 3),)),
        CreateAclsRequest((CreateAclsRequest.AclCreation(1, "there", 3, "User:ann", "*", 3, 3),)),
    ),
    (DeleteAclsRequest((DeleteAclsRequest.DeleteAclsFilter(1, None, 1, None, None, 1, 1),)), None),
    (
        DeleteTopicsRequest(topic_names=("there",)),
        DeleteTopicsRequest(topic_names=("missing",)),
    ),
    (
        CreatePartitionsRequest((CreatePartitionsRequest.CreatePartitionsTopic("there", 2, None),)),
        CreatePartitionsRequest((CreatePartitionsRequest.CreatePartitionsTopic("there", 1, None),)),
    ),
    (
        AlterConfigsRequest((AlterConfigsRequest.AlterConfigsResource(2, "there"),)),
        AlterConfigsRequest((AlterConfigsRequest.AlterConfigsResource(2, "missing"),)),
    ),
    (
        IncrementalAlterConfigsRequest((IncrementalAlterConfigsRequest.AlterConfigsResource(2, "there"),)),
        IncrementalAlterConfigsRequest((IncrementalAlterConfigsRequest.AlterConfigsResource(2, "missing"),)),
    ),
    (
        UpdateFeaturesRequest(feature_updates=(UpdateFeaturesRequest.FeatureUpdateKey("group.version", 1),)),
        UpdateFeaturesRequest(feature_updates=(UpdateFeaturesRequest.FeatureUpdateKey("group.version", 7),)),
    ),
    (ListPartitionReassignmentsRequest(), None),
    (AllocateProducerIdsRequest(1, 13), AllocateProducerIdsRequest(1, 0)),
    (registration(2), registration(2, cluster_id="")),
    (BrokerHeartbeatRequest(1, 13), BrokerHeartbeatRequest(1, 0)),
    (ControllerRegistrationRequest(1, uuid(1)), None),
    (AlterPartitionRequest(1, 13), AlterPartitionRequest(1, 0)),
    (AssignReplicasToDirsRequest(1, 13), AssignReplicasToDirsRequest(1, 0)),
    (UnregisterBrokerRequest(1), UnregisterBrokerRequest(7)),
    (UnregisterControllerRequest(7), UnregisterControllerRequest(1)),
    (ElectLeadersRequest(0, None), ElectLeadersRequest(9, None)),
    (
        AlterPartitionReassignmentsRequest(
            topics=(
                AlterPartitionReassignmentsRequest.ReassignableTopic(
                    "there", (AlterPartitionReassignmentsRequest.ReassignablePartition(0, (1,)),)
                ),
            )
        ),
        AlterPartitionReassignmentsRequest(
            topics=(
                AlterPartitionReassignmentsRequest.ReassignableTopic(
                    "there", (AlterPartitionReassignmentsRequest.ReassignablePartition(0, None),)
                ),
            )
        ),
    ),
    (CreateDelegationTokenRequest(), None),
    (RenewDelegationTokenRequest(b"x"), None),
    (ExpireDelegationTokenRequest(b"x"), None),
    (AlterClientQuotasRequest((QUOTA,)), AlterClientQuotasRequest((AlterClientQuotasRequest.EntryData(),))),
    (
        AlterUserScramCredentialsRequest(upsertions=(CREDENTIAL,)),
        AlterUserScramCredentialsRequest((AlterUserScramCredentialsRequest.ScramCredentialDeletion("nobody", 1),)),
    ),
]


@pytest.fixture
def there(cluster: Cluster) -> Cluster:
    cluster.create("there")
    return cluster


@pytest.mark.parametrize(("fine", "refused"), SAMPLES, ids=lambda sample: type(sample).__name__)
def test_replies_can_be_sent_in_every_version(there: Cluster, fine: Any, refused: Any):
    epoch = there.image.brokers[1].epoch
    for request in (fine, refused):
        if request is None:
            continue
        if getattr(request, "broker_epoch", -1) > 0:
            request = type(request)(1, epoch)
        name = type(request).__name__.removesuffix("Request") + "Response"
        for version in versions(name):
            if isinstance(request, ElectLeadersRequest) and request.election_type and not version:
                continue  # version 0 has no field for the type, nor for an error of the whole
            reply = there.ask(request, api_version=version).reply
            assert type(reply).__name__ == name
            decode(name, version, encode(reply, version))


@pytest.mark.parametrize("request_", [fine for fine, _ in SAMPLES], ids=lambda sample: type(sample).__name__)
def test_every_request_can_be_refused_as_a_whole(request_: Any):
    reply = refuse(request_, Reject(ErrorCode.NOT_CONTROLLER, "elsewhere"))
    for version in versions(type(reply).__name__):
        if isinstance(request_, ElectLeadersRequest) and not version:
            continue  # has no place for it; the broker leaves it out
        decode(type(reply).__name__, version, encode(reply, version))
    entries = [reply, *getattr(reply, "topics", ()), *getattr(reply, "results", ()), *getattr(reply, "responses", ())]
    entries += [*getattr(reply, "entries", ()), *getattr(reply, "filter_results", ())]
    codes = [entry.error_code for entry in entries if hasattr(entry, "error_code")]
    assert codes == [ErrorCode.NOT_CONTROLLER]


def test_there_is_a_sample_of_every_request():
    assert {type(fine) for fine, _ in SAMPLES} == REQUESTS


def test_a_reject_reads_as_a_sentence():
    assert str(Reject(ErrorCode.NOT_CONTROLLER, "elsewhere")) == "NOT_CONTROLLER: elsewhere"
    assert str(Reject(ErrorCode.NOT_CONTROLLER)).startswith("NOT_CONTROLLER: ")
