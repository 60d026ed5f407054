"""What brokers ask of the controller, on the listener of controllers."""

import pytest

from ottla.core.metadata import features
from ottla.wire.errors import ErrorCode
from ottla.wire.types.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.types.alter_partition import AlterPartitionRequest
from ottla.wire.types.api_versions import ApiVersionsRequest
from ottla.wire.types.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.broker_registration import BrokerRegistrationRequest
from ottla.wire.types.controller_registration import ControllerRegistrationRequest
from ottla.wire.types.unregister_broker import UnregisterBrokerRequest
from tests.component.broker.raw_client import RawClient, RunningNode

CONTROLLER_ONLY = {56: (2, 3), 62: (0, 4), 63: (0, 2), 67: (0, 0), 70: (0, 0), 73: (0, 0)}
OTHER = 2
SOME_ID = bytes(7) + b"\x01" + bytes(8)


def registration(cluster_id: str) -> BrokerRegistrationRequest:
    kind = BrokerRegistrationRequest
    return kind(
        OTHER,
        cluster_id,
        SOME_ID,
        (kind.Listener("PLAINTEXT", "127.0.0.1", 1),),
        tuple(kind.Feature(name, low, high) for name, (low, high) in features.SUPPORTED.items()),
        log_dirs=(SOME_ID,),
    )


def test_they_are_offered_to_brokers_only(client: RawClient, controller_client: RawClient):
    def shown(asked: RawClient) -> dict[int, tuple[int, int]]:
        keys = asked.ask(ApiVersionsRequest("test", "1"), 4).api_keys
        return {each.api_key: (each.min_version, each.max_version) for each in keys if each.api_key in CONTROLLER_ONLY}

    assert shown(controller_client) == CONTROLLER_ONLY
    assert shown(client) == {}


def test_a_broker_comes_and_goes(running: RunningNode, controller_client: RawClient):
    ask = controller_client.ask
    registered = ask(registration(running.node.cluster_id), 4)
    assert registered.error_code == 0
    assert running.node.image.brokers[OTHER].epoch == registered.broker_epoch
    beaten = ask(BrokerHeartbeatRequest(OTHER, registered.broker_epoch, registered.broker_epoch - 1), 2)
    assert (beaten.error_code, beaten.is_caught_up, beaten.is_fenced) == (0, False, True)
    stale = ask(BrokerHeartbeatRequest(OTHER, registered.broker_epoch + 1), 2)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert ask(UnregisterBrokerRequest(OTHER), 0).error_code == 0
    assert OTHER not in running.node.image.brokers


def test_a_broker_gets_producer_ids(running: RunningNode, controller_client: RawClient):
    epoch = running.node.image.brokers[1].epoch
    first = controller_client.ask(AllocateProducerIdsRequest(1, epoch), 0)
    second = controller_client.ask(AllocateProducerIdsRequest(1, epoch), 0)
    assert (first.error_code, first.producer_id_len) == (0, 1000)
    assert second.producer_id_start == first.producer_id_start + 1000


@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_hears_of_a_topic_that_is_gone(running: RunningNode, controller_client: RawClient, version: int):
    kind = AlterPartitionRequest
    topic = kind.TopicData(SOME_ID, (kind.PartitionData(3),))
    epoch = running.node.image.brokers[1].epoch
    answer = controller_client.ask(kind(1, epoch, (topic,)), version)
    assert answer.error_code == 0
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert controller_client.ask(kind(1, epoch + 1, (topic,)), version).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_replicas_in_directories(running: RunningNode, controller_client: RawClient):
    kind = AssignReplicasToDirsRequest
    topic = kind.TopicData(SOME_ID, (kind.PartitionData(0),))
    answer = controller_client.ask(
        kind(1, running.node.image.brokers[1].epoch, (kind.DirectoryData(SOME_ID, (topic,)),)), 0
    )
    assert answer.directories[0].topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_controller_registers(running: RunningNode, controller_client: RawClient):
    kind = ControllerRegistrationRequest
    answer = controller_client.ask(kind(7, SOME_ID, False, (kind.Listener("CONTROLLER", "127.0.0.1", 1),)), 0)
    assert (answer.error_code, answer.error_message) == (0, None)
    endpoint = running.node.image.controllers[7].endpoint("CONTROLLER")
    assert endpoint is not None
    assert endpoint.port == 1
