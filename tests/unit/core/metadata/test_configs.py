from typing import Any

import pytest

from ottla.core.metadata import features
from ottla.core.metadata.configs import APPEND, DELETE, SET, SUBTRACT
from ottla.core.metadata.image import BROKER, CLIENT_METRICS, GROUP, TOPIC
from ottla.wire.access import ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_configs import AlterConfigsRequest
from ottla.wire.types.cluster_metadata import ClearElrRecord, ConfigRecord
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.unit.core.metadata.cluster import Cluster

LOGGER = 8


def incremental(kind: int, name: str, *steps: tuple[str, int, str | None]) -> IncrementalAlterConfigsRequest:
    return several((kind, name, steps))


def several(*resources: tuple[int, str, Any], validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    request = IncrementalAlterConfigsRequest
    return request(
        tuple(
            request.AlterConfigsResource(kind, name, tuple(request.AlterableConfig(*step) for step in steps))
            for kind, name, steps in resources
        ),
        validate_only,
    )


def replacing(kind: int, name: str, *values: tuple[str, str | None]) -> AlterConfigsRequest:
    request = AlterConfigsRequest
    configs = tuple(request.AlterableConfig(*value) for value in values)
    return request((request.AlterConfigsResource(kind, name, configs),))


def codes(reply: Any) -> list[ErrorCode]:
    return [ErrorCode(each.error_code) for each in reply.responses]


@pytest.fixture
def orders(cluster: Cluster) -> Cluster:
    cluster.create("orders", retention_ms="5")
    return cluster


def test_set_and_delete(orders: Cluster):
    reply = orders.submit(
        incremental(TOPIC, "orders", ("cleanup.policy", SET, "compact"), ("retention.ms", DELETE, None))
    )
    (response,) = reply.responses
    assert (response.error_code, response.error_message) == (0, None)
    assert (response.resource_type, response.resource_name) == (TOPIC, "orders")
    assert orders.image.configs(TOPIC, "orders") == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("start", "operation", "value", "end"),
    [
        (None, APPEND, "compact", "delete,compact"),  # from the default
        ("compact", APPEND, "delete", "compact,delete"),
        ("compact", APPEND, "compact", "compact"),
        ("compact,delete", SUBTRACT, "delete", "compact"),
        ("compact,delete", SUBTRACT, "compact,delete", ""),
        ("compact", SUBTRACT, "delete", "compact"),
    ],
)
def test_lists_grow_and_shrink(orders: Cluster, start: str | None, operation: int, value: str, end: str):
    if start is not None:
        orders.submit(incremental(TOPIC, "orders", ("cleanup.policy", SET, start)))
    assert codes(orders.submit(incremental(TOPIC, "orders", ("cleanup.policy", operation, value)))) == [ErrorCode.NONE]
    assert orders.image.configs(TOPIC, "orders")["cleanup.policy"] == end


def test_what_stays_as_it_is_needs_no_record(orders: Cluster):
    unchanged = incremental(TOPIC, "orders", ("retention.ms", SET, "5"), ("cleanup.policy", DELETE, None))
    result = orders.ask(unchanged)
    assert (codes(result.reply), result.records) == ([ErrorCode.NONE], ())


def test_brokers_are_told_even_if_the_value_stays(orders: Cluster):
    change = incremental(BROKER, "1", ("log.cleaner.threads", SET, "2"))
    orders.submit(change)
    assert len(orders.ask(change).records) == 1


def test_replacing_removes_what_is_not_named(orders: Cluster):
    reply = orders.submit(replacing(TOPIC, "orders", ("cleanup.policy", "compact")))
    assert codes(reply) == [ErrorCode.NONE]
    assert orders.image.configs(TOPIC, "orders") == {"cleanup.policy": "compact"}


def test_all_or_nothing_for_each_resource(orders: Cluster):
    orders.create("other")
    reply = orders.submit(
        several(
            (TOPIC, "orders", (("cleanup.policy", SET, "compact"), ("nonsense", SET, "1"))),
            (TOPIC, "other", (("retention.ms", SET, "1"),)),
        )
    )
    assert codes(reply) == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert orders.image.configs(TOPIC, "orders") == {"retention.ms": "5"}
    assert orders.image.configs(TOPIC, "other") == {"retention.ms": "1"}


def test_only_validating_changes_nothing(orders: Cluster):
    result = orders.ask(several((TOPIC, "orders", (("retention.ms", SET, "1"),)), validate_only=True))
    assert (codes(result.reply), result.records) == ([ErrorCode.NONE], ())


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (incremental(TOPIC, "orders", ("retention.ms", SET, None)), ErrorCode.INVALID_REQUEST),
        (incremental(TOPIC, "orders", ("retention.ms", APPEND, None)), ErrorCode.INVALID_REQUEST),
        (
            incremental(TOPIC, "orders", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None)),
            ErrorCode.INVALID_REQUEST,
        ),
        (incremental(TOPIC, "orders", ("retention.ms", 7, "1")), ErrorCode.INVALID_REQUEST),
        (incremental(TOPIC, "orders", ("retention.ms", APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (incremental(TOPIC, "orders", ("retention.ms", SUBTRACT, "1")), ErrorCode.INVALID_CONFIG),
        (incremental(TOPIC, "orders", ("nonsense", SET, "1")), ErrorCode.INVALID_CONFIG),
        (incremental(TOPIC, "orders", ("retention.ms", SET, "soon")), ErrorCode.INVALID_CONFIG),
        (incremental(TOPIC, "orders", ("retention.ms", SET, "1" * 32_768)), ErrorCode.INVALID_CONFIG),
        (incremental(TOPIC, "orders", ("retention.ms", SET, "é" * 16_384)), ErrorCode.INVALID_CONFIG),
        (incremental(TOPIC, "missing", ("retention.ms", SET, "1")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (incremental(TOPIC, "missing", ("retention.ms", SET, "soon")), ErrorCode.INVALID_CONFIG),
        (incremental(TOPIC, "a b", ("retention.ms", SET, "1")), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (incremental(TOPIC, "", ("retention.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (incremental(GROUP, "", ("consumer.session.timeout.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (incremental(GROUP, "g", ("nonsense", SET, "1")), ErrorCode.INVALID_CONFIG),
        (incremental(BROKER, "2", ("log.cleaner.threads", SET, "1")), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (incremental(BROKER, "one", ("log.cleaner.threads", SET, "1")), ErrorCode.INVALID_REQUEST),
        (incremental(BROKER, "9" * 5000, ("log.cleaner.threads", SET, "1")), ErrorCode.INVALID_REQUEST),
        (incremental(TOPIC, "orders", ("x" * 32_767, SET, None)), ErrorCode.INVALID_REQUEST),
        (incremental(BROKER, "1", ("node.id", SET, "2")), ErrorCode.INVALID_REQUEST),
        (incremental(LOGGER, "1", ("root", SET, "INFO")), ErrorCode.INVALID_REQUEST),
        (incremental(99, "x", ("a", SET, "1")), ErrorCode.INVALID_REQUEST),
        (replacing(TOPIC, "orders", ("retention.ms", None)), ErrorCode.INVALID_REQUEST),
        (replacing(TOPIC, "orders", ("retention.ms", "1"), ("retention.ms", "2")), ErrorCode.INVALID_REQUEST),
        (replacing(TOPIC, "orders", ("nonsense", "1")), ErrorCode.INVALID_CONFIG),
        (replacing(TOPIC, "missing", ("retention.ms", "1")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (replacing(BROKER, "2", ("log.cleaner.threads", "1")), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (replacing(LOGGER, "1", ("root", "INFO")), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_is_refused(orders: Cluster, request_: Any, code: ErrorCode):
    result = orders.ask(request_)
    assert codes(result.reply) == [code]
    assert result.reply.responses[0].error_message
    assert result.records == ()


def test_a_resource_given_twice_fails_twice(orders: Cluster):
    twice = (TOPIC, "orders", (("retention.ms", SET, "1"),))
    assert codes(orders.submit(several(twice, twice))) == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]


def test_defaults_for_all_brokers_take_any_key(orders: Cluster):
    assert codes(orders.submit(incremental(BROKER, "", ("some.plugin.key", SET, "1")))) == [ErrorCode.NONE]
    assert orders.image.configs(BROKER, "")["some.plugin.key"] == "1"


def test_groups_need_not_exist(orders: Cluster):
    reply = orders.submit(incremental(GROUP, "nobody", ("consumer.session.timeout.ms", SET, "46000")))
    assert codes(reply) == [ErrorCode.NONE]
    assert orders.image.config_resources(GROUP) == ["nobody"]


def test_the_controller_alters_settings_of_every_broker(three: Cluster):
    for broker_id in ("1", "2", "3"):
        assert codes(three.submit(incremental(BROKER, broker_id, ("log.cleaner.threads", SET, "2")))) == [0]
    assert three.image.config_resources(BROKER) == ["", "1", "2", "3"]


def test_a_node_that_is_not_registered_has_no_settings(empty_cluster: Cluster):
    reply = empty_cluster.submit(incremental(BROKER, "1", ("log.cleaner.threads", SET, "1")))
    assert codes(reply) == [ErrorCode.BROKER_ID_NOT_REGISTERED]


@pytest.mark.parametrize(
    ("kind", "denied", "code"),
    [
        (TOPIC, ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (GROUP, ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (CLIENT_METRICS, ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (BROKER, ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_rights_by_resource(orders: Cluster, kind: int, denied: ResourceType, code: ErrorCode):
    request = incremental(kind, "" if kind == BROKER else "orders", ("retention.ms", SET, "1"))
    assert codes(orders.submit(request, authorize=lambda _, asked, __: asked is not denied)) == [code]


# --- eligible leader replicas


def test_a_new_minimum_clears_who_was_eligible(orders: Cluster):
    of_topic = orders.ask(incremental(TOPIC, "orders", ("min.insync.replicas", SET, "2")))
    assert [type(record.message) for record in of_topic.records] == [ConfigRecord, ClearElrRecord]
    assert of_topic.records[1].message.topic_name == "orders"
    of_all = orders.ask(incremental(BROKER, "", ("min.insync.replicas", SET, "2")))
    assert of_all.records[1].message.topic_name == ""


def test_the_minimum_is_the_clusters_affair(orders: Cluster):
    for_one = incremental(BROKER, "1", ("min.insync.replicas", SET, "2"))
    removed = incremental(BROKER, "", ("min.insync.replicas", DELETE, None))
    replaced = replacing(BROKER, "", ("log.cleaner.threads", "2"))
    for request in (for_one, removed, replaced):
        assert codes(orders.submit(request)) == [ErrorCode.INVALID_CONFIG]


def test_without_elr_brokers_may_differ():
    cluster = Cluster(levels=features.levels_for_format({features.ELR_VERSION: 0})).with_brokers(1)
    result = cluster.ask(incremental(BROKER, "1", ("min.insync.replicas", SET, "2")))
    assert codes(result.reply) == [ErrorCode.NONE]
    assert [type(record.message) for record in result.records] == [ConfigRecord]


def test_cordoning_needs_its_metadata_version():
    cluster = Cluster(levels=features.levels_for_format({features.METADATA_VERSION: 29})).with_brokers(1)
    assert codes(cluster.submit(incremental(BROKER, "1", ("cordoned.log.dirs", SET, "*")))) == [
        ErrorCode.INVALID_CONFIG
    ]


def test_a_change_of_too_many_records(orders: Cluster):
    steps = tuple((f"key.{number}", SET, "1") for number in range(10_001))
    assert codes(orders.ask(incremental(BROKER, "", *steps)).reply) == [ErrorCode.POLICY_VIOLATION]
