from ottla.core.metadata.context import Result
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.types.cluster_metadata import ProducerIdsRecord
from tests.unit.core.metadata.cluster import Cluster


def test_blocks_follow_each_other_whoever_asks(three: Cluster):
    starts = []
    for broker_id in (1, 2, 1, 3):
        reply = three.submit(AllocateProducerIdsRequest(broker_id, three.image.brokers[broker_id].epoch))
        assert (reply.error_code, reply.producer_id_len) == (0, 1000)
        starts.append(reply.producer_id_start)
    assert starts == [0, 1000, 2000, 3000]
    assert three.image.next_producer_id == 4000
    three.restart()
    three.activate()
    assert three.submit(AllocateProducerIdsRequest(1, three.image.brokers[1].epoch)).producer_id_start == 4000


def test_a_stale_broker_gets_none(cluster: Cluster):
    for request in (AllocateProducerIdsRequest(1, 0), AllocateProducerIdsRequest(7, 0)):
        result = cluster.ask(request)
        assert ErrorCode(result.reply.error_code) is ErrorCode.STALE_BROKER_EPOCH
        assert result.records == ()


def test_one_day_all_are_given_out(cluster: Cluster):
    cluster.append(Result((Versioned(ProducerIdsRecord(1, 1, 2**63 - 1000), 0),), None))
    request = AllocateProducerIdsRequest(1, cluster.image.brokers[1].epoch)
    assert ErrorCode(cluster.ask(request).reply.error_code) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_rights(cluster: Cluster):
    request = AllocateProducerIdsRequest(1, cluster.image.brokers[1].epoch)
    reply = cluster.ask(request, authorize=lambda *_: False).reply
    assert ErrorCode(reply.error_code) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
