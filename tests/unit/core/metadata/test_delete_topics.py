from collections.abc import Callable

import pytest

from ottla.core.metadata.image import TOPIC
from ottla.core.metadata.uuids import NO_ID
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.unit.core.metadata.cluster import Cluster, uuid

Asked = DeleteTopicsRequest.DeleteTopicState


def by_name(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(tuple(Asked(name) for name in names))


def by_id(*topic_ids: bytes) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(tuple(Asked(None, topic_id) for topic_id in topic_ids))


def answers(reply: DeleteTopicsResponse) -> list[tuple[str | None, bytes, ErrorCode]]:
    return [(each.name, each.topic_id, ErrorCode(each.error_code)) for each in reply.responses]


def test_by_name_and_by_id(cluster: Cluster):
    first, second = cluster.create("a", retention_ms="5"), cluster.create("b", 3)
    assert answers(cluster.submit(by_name("a"))) == [("a", first, ErrorCode.NONE)]
    assert answers(cluster.submit(by_id(second))) == [("b", second, ErrorCode.NONE)]
    assert cluster.image.topics_by_name == cluster.image.topics_by_id == {}
    assert cluster.image.configs(TOPIC, "a") == {}


def test_names_of_old_versions(cluster: Cluster):
    topic_id = cluster.create("a")
    reply = cluster.submit(DeleteTopicsRequest(topic_names=("a", "b")), api_version=5)
    assert answers(reply) == [("a", topic_id, ErrorCode.NONE), ("b", NO_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_what_is_not_there(cluster: Cluster):
    assert answers(cluster.submit(by_name("a"))) == [("a", NO_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert answers(cluster.submit(by_id(uuid(9)))) == [(None, uuid(9), ErrorCode.UNKNOWN_TOPIC_ID)]


def test_a_deleted_id_stays_unknown_when_the_name_returns(cluster: Cluster):
    old = cluster.create("a")
    cluster.submit(by_name("a"))
    assert cluster.create("a") != old
    assert answers(cluster.submit(by_id(old))) == [(None, old, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_neither_or_both_of_name_and_id(cluster: Cluster):
    topic_id = cluster.create("a")
    reply = cluster.submit(DeleteTopicsRequest((Asked(None), Asked("a", topic_id))))
    assert answers(reply) == [
        (None, NO_ID, ErrorCode.INVALID_REQUEST),
        ("a", topic_id, ErrorCode.INVALID_REQUEST),
    ]
    assert "a" in cluster.image.topics_by_name


def test_twice_the_same_is_refused_once(cluster: Cluster):
    first, second = cluster.create("a"), cluster.create("b")
    request = DeleteTopicsRequest((Asked("a"), Asked(None, second), Asked("a"), Asked(None, second)))
    assert answers(cluster.submit(request)) == [
        ("a", NO_ID, ErrorCode.INVALID_REQUEST),
        (None, second, ErrorCode.INVALID_REQUEST),
    ]
    assert first in cluster.image.topics_by_id


def test_once_by_name_and_once_by_id_is_twice(cluster: Cluster):
    topic_id = cluster.create("a")
    reply = cluster.submit(DeleteTopicsRequest((Asked("a"), Asked(None, topic_id))))
    assert {code for *_, code in answers(reply)} == {ErrorCode.INVALID_REQUEST}
    assert "a" in cluster.image.topics_by_name


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deleting_switched_off(version: int, code: ErrorCode):
    cluster = Cluster(settings={"delete_topic_enable": False}).with_brokers(1)
    cluster.create("a")
    result = cluster.ask(DeleteTopicsRequest(topic_names=("a", "b")), api_version=version)
    assert [answer[2] for answer in answers(result.reply)] == [code, code]
    assert result.records == ()


def only(*allowed: tuple[Operation, str]) -> Callable[[Operation, ResourceType, str], bool]:
    return lambda operation, kind, name: kind is ResourceType.TOPIC and (operation, name) in allowed


def test_who_may_not_see_a_topic_does_not_learn_whether_it_exists(cluster: Cluster):
    topic_id = cluster.create("a")
    reply = cluster.submit(by_name("a", "b"), authorize=only())
    assert [code for *_, code in answers(reply)] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
    assert answers(reply)[0][1] == NO_ID
    by_known_id = cluster.submit(by_id(topic_id), authorize=only())
    assert answers(by_known_id) == [(None, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]


def test_who_may_see_but_not_delete(cluster: Cluster):
    cluster.create("a")
    reply = cluster.submit(by_name("a", "b"), authorize=only((Operation.DESCRIBE, "a"), (Operation.DESCRIBE, "b")))
    assert [code for *_, code in answers(reply)] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_who_may_delete_this_one(cluster: Cluster):
    cluster.create("a")
    reply = cluster.submit(by_name("a"), authorize=only((Operation.DELETE, "a")))
    assert [code for *_, code in answers(reply)] == [ErrorCode.NONE]


def test_a_quota_counts_partitions(cluster: Cluster):
    cluster.create("a", 3)
    charged: list[int] = []

    def charge(partition_count: int) -> bool:
        charged.append(partition_count)
        return False

    reply = cluster.submit(by_name("a"), charge=charge)
    assert [code for *_, code in answers(reply)] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert charged == [3]
