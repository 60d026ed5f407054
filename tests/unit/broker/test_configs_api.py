"""Settings over the wire: what DescribeConfigs shows, what may be changed, and what each mistake is answered with.

Codes and synonyms are those that Apache Kafka 4.3.1 gave to the same requests.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from ottla.broker.network.dispatch import Api
from ottla.broker.network.request import DelayedResponse
from ottla.core.metadata.config_defs import broker_defs, group_defs, topic_defs
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_configs import AlterConfigsRequest
from ottla.wire.types.describe_configs import DescribeConfigsRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.types.list_config_resources import ListConfigResourcesRequest
from tests.unit.broker.setting_requests import (
    ALTER_CONFIGS,
    APPEND,
    BROKER,
    CLIENT_METRICS,
    DELETE,
    DESCRIBE_CONFIGS,
    GROUP,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    SettingsNode,
)

INVALID_REQUEST, INVALID_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
UNKNOWN_TOPIC, INVALID_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
DEFAULT, STATIC, CLUSTER_WIDE, BROKER_ONLY, OWN_TOPIC, OWN_METRICS, OWN_GROUP = 5, 4, 3, 2, 1, 7, 8


@pytest.fixture
def node() -> SettingsNode:
    return SettingsNode()


def synonyms(entry: Any) -> list[tuple[str, str | None, int]]:
    return [(each.name, each.value, each.source) for each in entry.synonyms]


# --- DescribeConfigs


def test_a_topic_shows_all_settings_with_defaults(node: SettingsNode) -> None:
    result = node.describe(TOPIC, "orders")
    shown = {each.name: each for each in result.configs}
    assert (result.error_code, result.error_message) == (0, "")
    assert len(shown) == 33
    assert set(shown) == {name for name in topic_defs() if not topic_defs()[name].is_internal}
    assert shown["retention.ms"].value == "604800000"
    assert not any(each.read_only or each.is_sensitive or each.synonyms for each in shown.values())
    # Formatting set min.insync.replicas for the whole cluster; everything else is a default.
    assert {name: each.config_source for name, each in shown.items() if each.config_source != DEFAULT} == {
        "min.insync.replicas": CLUSTER_WIDE
    }


@pytest.mark.parametrize(
    ("resource", "code", "has_message"),
    [
        ((TOPIC, "missing"), UNKNOWN_TOPIC, False),
        ((TOPIC, "not a name"), INVALID_TOPIC, True),
        ((TOPIC, ""), INVALID_TOPIC, True),
        ((BROKER, "2"), INVALID_REQUEST, True),
        ((BROKER, "one"), INVALID_REQUEST, True),
        ((BROKER, "x" * 32_767), INVALID_REQUEST, True),
        ((GROUP, ""), INVALID_REQUEST, True),
        ((CLIENT_METRICS, ""), INVALID_REQUEST, True),
        ((LOGGER, "2"), INVALID_REQUEST, True),
        ((LOGGER, "one"), INVALID_REQUEST, True),
        ((LOGGER, "9" * 5000), INVALID_REQUEST, True),
        ((LOGGER, ""), INVALID_REQUEST, True),
        ((3, "x"), INVALID_REQUEST, True),
        ((0, "x"), INVALID_REQUEST, True),
    ],
)
def test_what_cannot_be_described(node: SettingsNode, resource: tuple[int, str], code: int, has_message: bool) -> None:
    result = node.describe(*resource)
    assert (result.error_code, result.configs) == (code, ())
    assert (result.resource_type, result.resource_name) == resource
    assert bool(result.error_message) is has_message


def test_a_type_that_is_unknown_refuses_the_whole_request(node: SettingsNode) -> None:
    kind = DescribeConfigsRequest
    body = kind((kind.DescribeConfigsResource(TOPIC, "orders", None), kind.DescribeConfigsResource(64, "x", None)))
    assert [each.error_code for each in node.call(DESCRIBE_CONFIGS, body).results] == [INVALID_REQUEST] * 2


def test_each_resource_has_its_own_error(node: SettingsNode) -> None:
    kind = DescribeConfigsRequest
    names = ("missing", "orders")
    body = kind(tuple(kind.DescribeConfigsResource(TOPIC, name, None) for name in names))
    assert [each.error_code for each in node.call(DESCRIBE_CONFIGS, body).results] == [UNKNOWN_TOPIC, 0]


@pytest.mark.parametrize(
    ("resource", "permission", "code"),
    [
        ((TOPIC, "orders"), (2, "orders"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ((GROUP, "g"), (3, "g"), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ((BROKER, "1"), (4, "kafka-cluster"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ((CLIENT_METRICS, "m"), (4, "kafka-cluster"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ((LOGGER, "1"), (4, "kafka-cluster"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_who_may_not_see_or_change(
    node: SettingsNode, resource: tuple[int, str], permission: tuple[int, str], code: int
) -> None:
    node.denied.add(permission)
    result = node.describe(*resource)
    assert (result.error_code, result.configs) == (code, ())
    assert node.alter(*resource, ("x", DELETE, None)) == code


@pytest.mark.parametrize("keys", [("retention.ms", "no.such.key"), ("retention.ms",)])
def test_unknown_keys_are_left_out(node: SettingsNode, keys: tuple[str, ...]) -> None:
    assert [each.name for each in node.describe(TOPIC, "orders", *keys).configs] == ["retention.ms"]


def test_an_empty_list_of_keys_stands_for_all(node: SettingsNode) -> None:
    kind = DescribeConfigsRequest
    (result,) = node.call(DESCRIBE_CONFIGS, kind((kind.DescribeConfigsResource(TOPIC, "orders", ()),))).results
    assert len(result.configs) == 33


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version(node: SettingsNode, version: int) -> None:
    entry = node.entry(TOPIC, "orders", "cleanup.policy", version=version)
    assert (entry.value, entry.config_source) == ("delete", DEFAULT)
    assert synonyms(entry) == [("log.cleanup.policy", "delete", DEFAULT)]
    assert entry.config_type == (7 if version >= 3 else 0)


def test_documentation_only_if_asked_for(node: SettingsNode) -> None:
    assert node.entry(BROKER, "1", "ottla.fsync").documentation is None
    shown = node.entry(BROKER, "1", "ottla.fsync", include_documentation=True).documentation
    assert shown == broker_defs()["ottla.fsync"].documentation


def test_the_broker_shows_all_of_its_own() -> None:
    node = SettingsNode(num_partitions="7")
    shown = {each.name: each for each in node.describe(BROKER, "1").configs}
    assert (shown["num.partitions"].value, shown["num.partitions"].config_source) == ("7", STATIC)
    assert shown["num.partitions"].read_only
    assert not shown["message.max.bytes"].read_only
    assert (shown["broker.id"].value, shown["broker.id"].config_source) == ("1", STATIC)
    assert shown["ssl.keystore.password"].is_sensitive
    assert shown["ssl.keystore.password"].config_type == 9
    # An authorizer's settings are none of the broker's, as long as nobody made them.
    assert "super.users" not in shown
    hidden = {name for name in broker_defs() if broker_defs()[name].is_internal}
    assert set(shown) == set(broker_defs()) - hidden - {"super.users", "allow.everyone.if.no.acl.found"}


def test_secrets_are_never_sent() -> None:
    node = SettingsNode(ssl_key_password="hush")
    entry = node.entry(BROKER, "1", "ssl.key.password")
    assert (entry.value, entry.is_sensitive, entry.config_source) == (None, True, STATIC)
    assert synonyms(entry) == [("ssl.key.password", None, STATIC)]


def test_the_broker_without_a_name_shows_what_was_set_for_all(node: SettingsNode) -> None:
    assert [each.name for each in node.describe(BROKER, "").configs] == ["min.insync.replicas"]
    node.alter(BROKER, "", ("message.max.bytes", SET, "2000000"))
    entry = node.entry(BROKER, "", "message.max.bytes")
    assert (entry.value, entry.config_source, entry.read_only) == ("2000000", CLUSTER_WIDE, False)
    assert synonyms(entry) == [("message.max.bytes", "2000000", CLUSTER_WIDE)]


def test_synonyms_are_listed_strongest_first() -> None:
    node = SettingsNode(log_retention_ms="4000")
    node.alter(TOPIC, "orders", ("retention.ms", SET, "1000"))
    node.alter(BROKER, "1", ("log.retention.ms", SET, "2000"))
    node.alter(BROKER, "", ("log.retention.ms", SET, "3000"))
    entry = node.entry(TOPIC, "orders", "retention.ms")
    assert (entry.value, entry.config_source) == ("1000", OWN_TOPIC)
    assert synonyms(entry) == [
        ("retention.ms", "1000", OWN_TOPIC),
        ("log.retention.ms", "2000", BROKER_ONLY),
        ("log.retention.ms", "3000", CLUSTER_WIDE),
        ("log.retention.ms", "4000", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    ]


@pytest.mark.parametrize("name", ["retention.ms", "segment.ms", "flush.ms", "segment.jitter.ms"])
def test_a_default_under_another_name_is_no_synonym(node: SettingsNode, name: str) -> None:
    entry = node.entry(TOPIC, "orders", name)
    assert (entry.config_source, synonyms(entry)) == (DEFAULT, [])


def test_brokers_settings_have_synonyms_too(node: SettingsNode) -> None:
    assert synonyms(node.entry(BROKER, "1", "log.retention.ms")) == []
    assert node.entry(BROKER, "1", "log.retention.ms").value is None
    node.alter(BROKER, "1", ("log.retention.ms", SET, "5000"))
    assert synonyms(node.entry(BROKER, "1", "log.retention.ms")) == [
        ("log.retention.ms", "5000", BROKER_ONLY),
        ("log.retention.hours", "168", DEFAULT),
    ]


def test_values_are_written_as_their_type_does(node: SettingsNode) -> None:
    steps = (("preallocate", SET, " TRUE "), ("min.cleanable.dirty.ratio", SET, ".25"))
    assert node.alter(TOPIC, "orders", *steps, ("cleanup.policy", SET, " compact , delete")) == 0
    assert node.entry(TOPIC, "orders", "preallocate").value == "true"
    assert synonyms(node.entry(TOPIC, "orders", "preallocate"))[0] == ("preallocate", "true", OWN_TOPIC)
    assert node.entry(TOPIC, "orders", "min.cleanable.dirty.ratio").value == "0.25"
    assert node.entry(TOPIC, "orders", "cleanup.policy").value == "compact,delete"


def test_groups_have_the_brokers_defaults() -> None:
    node = SettingsNode(group_consumer_session_timeout_ms="46000")
    shown = {each.name: each for each in node.describe(GROUP, "readers", include_synonyms=True).configs}
    assert set(shown) == {name for name in group_defs() if not group_defs()[name].is_internal}
    assert shown["consumer.session.timeout.ms"].value == "46000"
    assert synonyms(shown["consumer.session.timeout.ms"]) == [
        ("group.consumer.session.timeout.ms", "46000", STATIC),
        ("group.consumer.session.timeout.ms", "45000", DEFAULT),
    ]
    assert synonyms(shown["share.auto.offset.reset"]) == [("share.auto.offset.reset", "latest", DEFAULT)]


def test_client_metrics_have_no_synonyms_by_default(node: SettingsNode) -> None:
    entry = node.entry(CLIENT_METRICS, "m", "interval.ms")
    assert (entry.value, entry.config_source, synonyms(entry)) == ("300000", DEFAULT, [])
    node.alter(CLIENT_METRICS, "m", ("interval.ms", SET, "1000"))
    assert synonyms(node.entry(CLIENT_METRICS, "m", "interval.ms")) == [("interval.ms", "1000", OWN_METRICS)]


# --- IncrementalAlterConfigs and AlterConfigs


@pytest.mark.parametrize(
    ("resource", "steps", "code"),
    [
        ((TOPIC, "orders"), [("retention.ms", APPEND, "5")], INVALID_CONFIG),
        ((TOPIC, "orders"), [("retention.ms", SUBTRACT, "5")], INVALID_CONFIG),
        ((TOPIC, "orders"), [("retention.ms", SET, None)], INVALID_REQUEST),
        ((TOPIC, "orders"), [("cleanup.policy", APPEND, None)], INVALID_REQUEST),
        ((TOPIC, "orders"), [("retention.ms", SET, "1"), ("retention.ms", SET, "2")], INVALID_REQUEST),
        ((TOPIC, "orders"), [("retention.ms", 9, "1")], INVALID_REQUEST),
        ((TOPIC, "orders"), [("no.such.key", SET, "1")], INVALID_CONFIG),
        ((TOPIC, "orders"), [("retention.ms", SET, "soon")], INVALID_CONFIG),
        ((TOPIC, "orders"), [("retention.ms", SET, "-5")], INVALID_CONFIG),
        ((TOPIC, "orders"), [("segment.bytes", SET, "100")], INVALID_CONFIG),
        ((TOPIC, "orders"), [("cleanup.policy", APPEND, "shred")], INVALID_CONFIG),
        ((TOPIC, "orders"), [("remote.storage.enable", SET, "true")], INVALID_CONFIG),
        (
            (TOPIC, "orders"),
            [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "5")],
            INVALID_CONFIG,
        ),
        ((TOPIC, "missing"), [("retention.ms", SET, "1")], UNKNOWN_TOPIC),
        ((TOPIC, "not a name"), [("retention.ms", SET, "1")], INVALID_TOPIC),
        ((TOPIC, ""), [("retention.ms", SET, "1")], INVALID_REQUEST),
        ((BROKER, "1"), [("num.partitions", SET, "3")], INVALID_REQUEST),
        ((BROKER, ""), [("num.partitions", SET, "3")], INVALID_REQUEST),
        ((BROKER, "2"), [("log.retention.ms", SET, "3")], INVALID_REQUEST),
        ((BROKER, "one"), [("log.retention.ms", SET, "3")], INVALID_REQUEST),
        ((BROKER, "1"), [("log.retention.ms", SET, "soon")], INVALID_REQUEST),
        ((BROKER, ""), [("log.retention.ms", SET, "soon")], INVALID_REQUEST),
        ((BROKER, "1"), [("num.io.threads", SET, "0")], INVALID_REQUEST),
        ((BROKER, "1"), [("num.io.threads", APPEND, "1")], INVALID_CONFIG),
        ((BROKER, "1"), [("leader.replication.throttled.rate", SET, "fast")], INVALID_REQUEST),
        ((BROKER, "1"), [("ssl.keystore.password", SET, "x")], INVALID_REQUEST),
        ((BROKER, ""), [("ssl.keystore.password", SET, "x")], INVALID_REQUEST),
        ((BROKER, ""), [("listeners", SET, "PLAINTEXT://127.0.0.1:1")], INVALID_REQUEST),
        ((BROKER, "1"), [("min.insync.replicas", SET, "1")], INVALID_CONFIG),
        ((BROKER, ""), [("min.insync.replicas", DELETE, None)], INVALID_CONFIG),
        ((GROUP, "g"), [("no.such.key", SET, "1")], INVALID_CONFIG),
        ((GROUP, "g"), [("consumer.session.timeout.ms", SET, "1")], INVALID_CONFIG),
        ((GROUP, "g"), [("consumer.session.timeout.ms", SET, "99999999")], INVALID_CONFIG),
        ((GROUP, "g"), [("consumer.session.timeout.ms", SET, "soon")], INVALID_CONFIG),
        ((GROUP, "g"), [("streams.num.standby.replicas", SET, "3")], INVALID_CONFIG),
        ((GROUP, "g"), [("share.record.lock.duration.ms", SET, "60001")], INVALID_CONFIG),
        ((GROUP, "g"), [("share.isolation.level", SET, "some")], INVALID_CONFIG),
        ((GROUP, "g"), [("share.auto.offset.reset", SET, "none")], INVALID_CONFIG),
        ((GROUP, ""), [("consumer.session.timeout.ms", SET, "50000")], INVALID_REQUEST),
        ((CLIENT_METRICS, "m"), [("interval.ms", SET, "99")], INVALID_REQUEST),
        ((CLIENT_METRICS, "m"), [("interval.ms", SET, "3600001")], INVALID_REQUEST),
        ((CLIENT_METRICS, "m"), [("no.such.key", SET, "1")], INVALID_REQUEST),
        ((CLIENT_METRICS, ""), [("interval.ms", SET, "1000")], INVALID_REQUEST),
        ((CLIENT_METRICS, "m"), [("match", SET, "colour=red")], INVALID_CONFIG),
        ((CLIENT_METRICS, "m"), [("match", SET, "client_id=(")], INVALID_CONFIG),
        ((0, "x"), [("root", SET, "DEBUG")], INVALID_REQUEST),
    ],
)
def test_what_is_refused(node: SettingsNode, resource: tuple[int, str], steps: list[Any], code: int) -> None:
    before = dict(node.image.all_configs())
    assert node.alter(*resource, *steps) == code
    assert dict(node.image.all_configs()) == before


@pytest.mark.parametrize(
    ("resource", "key", "value", "source"),
    [
        ((TOPIC, "orders"), "retention.ms", "1000", OWN_TOPIC),
        ((BROKER, "1"), "log.retention.ms", "1000", BROKER_ONLY),
        ((BROKER, ""), "log.retention.ms", "1000", CLUSTER_WIDE),
        ((BROKER, "1"), "leader.replication.throttled.rate", "1000", BROKER_ONLY),
        ((GROUP, "g"), "consumer.session.timeout.ms", "50000", OWN_GROUP),
        ((GROUP, "g"), "share.auto.offset.reset", "by_duration:PT1H", OWN_GROUP),
        ((CLIENT_METRICS, "m"), "match", "client_id=ab*", OWN_METRICS),
    ],
)
def test_a_setting_is_made_and_taken_away(
    node: SettingsNode, resource: tuple[int, str], key: str, value: str, source: int
) -> None:
    assert node.alter(*resource, (key, SET, value)) == 0
    entry = node.entry(*resource, key)
    assert (entry.value, entry.config_source) == (value, source)
    assert node.alter(*resource, (key, DELETE, None)) == 0
    assert all(each.config_source != source for each in node.describe(*resource, key).configs)


@pytest.mark.parametrize("name", ["1", ""])
def test_a_setting_that_nobody_knows_is_accepted_for_brokers_and_hidden(node: SettingsNode, name: str) -> None:
    assert node.alter(BROKER, name, ("my.plugin.secret", SET, "x")) == 0
    entry = node.entry(BROKER, name, "my.plugin.secret")
    assert (entry.value, entry.is_sensitive, entry.config_type, entry.read_only) == (None, True, 0, True)


def test_settings_of_single_listeners_have_their_types(node: SettingsNode) -> None:
    key = "listener.name.plaintext.ssl.keystore.password"
    assert node.alter(BROKER, "1", (key, SET, "hush")) == 0
    entry = node.entry(BROKER, "1", key)
    assert (entry.value, entry.config_type, entry.read_only) == (None, 9, True)


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize(
    ("key", "value"),
    [("max.connection.creation.rate", "soon"), ("ssl.client.auth", "often"), ("ssl.client.auth", "NONE")],
)
def test_values_of_single_listeners_are_checked(node: SettingsNode, name: str, key: str, value: str) -> None:
    key = f"listener.name.plaintext.{key}"
    assert node.alter(BROKER, name, (key, SET, value)) == INVALID_REQUEST
    assert node.alter(BROKER, name, (key, DELETE, None)) == 0


def test_entries_of_lists_are_added_and_taken_away(node: SettingsNode) -> None:
    assert node.alter(TOPIC, "orders", ("cleanup.policy", APPEND, "compact")) == 0
    assert node.entry(TOPIC, "orders", "cleanup.policy").value == "delete,compact"
    assert node.alter(TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert node.entry(TOPIC, "orders", "cleanup.policy").value == "compact"


def test_all_or_nothing_for_each_resource(node: SettingsNode) -> None:
    assert node.alter(TOPIC, "orders", ("retention.ms", SET, "5"), ("segment.ms", SET, "soon")) == INVALID_CONFIG
    assert node.entry(TOPIC, "orders", "retention.ms").config_source == DEFAULT


def test_one_resource_fails_and_the_other_is_changed(node: SettingsNode) -> None:
    kind = IncrementalAlterConfigsRequest
    configs = (kind.AlterableConfig("retention.ms", SET, "5"),)
    body = kind(tuple(kind.AlterConfigsResource(TOPIC, name, configs) for name in ("missing", "orders")))
    answer = node.call(INCREMENTAL_ALTER_CONFIGS, body)
    assert [each.error_code for each in answer.responses] == [UNKNOWN_TOPIC, 0]
    assert node.entry(TOPIC, "orders", "retention.ms").value == "5"


@pytest.mark.parametrize(
    ("api", "kind", "config"),
    [
        (INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest, ("retention.ms", SET, "5")),
        (ALTER_CONFIGS, AlterConfigsRequest, ("retention.ms", "5")),
    ],
)
def test_the_same_resource_twice(node: SettingsNode, api: Api, kind: Any, config: tuple[Any, ...]) -> None:
    resource = kind.AlterConfigsResource(TOPIC, "orders", (kind.AlterableConfig(*config),))
    answer = node.call(api, kind((resource, resource)))
    assert {each.error_code for each in answer.responses} == {INVALID_REQUEST}
    assert node.entry(TOPIC, "orders", "retention.ms").config_source == DEFAULT


def test_nothing_changes_if_it_is_only_to_be_checked(node: SettingsNode) -> None:
    assert node.alter(TOPIC, "orders", ("retention.ms", SET, "5"), validate_only=True) == 0
    assert node.replace(TOPIC, "orders", ("retention.ms", "5"), validate_only=True) == 0
    assert node.alter(TOPIC, "orders", ("retention.ms", SET, "soon"), validate_only=True) == INVALID_CONFIG
    assert node.entry(TOPIC, "orders", "retention.ms").config_source == DEFAULT


def test_alter_configs_replaces_all(node: SettingsNode) -> None:
    node.alter(TOPIC, "orders", ("segment.ms", SET, "5"))
    assert node.replace(TOPIC, "orders", ("retention.ms", "7")) == 0
    assert node.entry(TOPIC, "orders", "retention.ms").value == "7"
    assert node.entry(TOPIC, "orders", "segment.ms").config_source == DEFAULT
    assert node.replace(TOPIC, "orders") == 0
    assert node.entry(TOPIC, "orders", "retention.ms").config_source == DEFAULT


@pytest.mark.parametrize(
    ("resource", "settings", "code"),
    [
        ((TOPIC, "orders"), [("retention.ms", None)], INVALID_REQUEST),
        ((TOPIC, "orders"), [("retention.ms", "1"), ("retention.ms", "2")], INVALID_REQUEST),
        ((TOPIC, "orders"), [("no.such.key", "1")], INVALID_CONFIG),
        ((TOPIC, "orders"), [("retention.ms", "soon")], INVALID_CONFIG),
        ((TOPIC, "missing"), [("retention.ms", "1")], UNKNOWN_TOPIC),
        ((BROKER, ""), [("message.max.bytes", "3000000")], INVALID_CONFIG),  # would drop min.insync.replicas
        ((BROKER, "2"), [("message.max.bytes", "3000000")], INVALID_REQUEST),
        ((LOGGER, "1"), [("root", "DEBUG")], INVALID_REQUEST),
    ],
)
def test_what_alter_configs_refuses(
    node: SettingsNode, resource: tuple[int, str], settings: list[Any], code: int
) -> None:
    assert node.replace(*resource, *settings) == code


def test_dynamic_settings_are_acted_on_at_once(node: SettingsNode) -> None:
    assert node.settings["message.max.bytes"] == 1048588
    node.alter(BROKER, "", ("message.max.bytes", SET, "2000000"))
    assert node.settings["message.max.bytes"] == 2000000
    assert node.settings.log_config("orders").max_message_bytes == 2000000
    node.alter(TOPIC, "orders", ("max.message.bytes", SET, "1000"))
    assert node.settings.log_config("orders").max_message_bytes == 1000


@pytest.mark.parametrize("api", [ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS])
@pytest.mark.parametrize("is_low", [True, False])
def test_every_version_of_changes(node: SettingsNode, api: Api, is_low: bool) -> None:
    is_incremental = api is INCREMENTAL_ALTER_CONFIGS
    kind: Any = IncrementalAlterConfigsRequest if is_incremental else AlterConfigsRequest
    config = kind.AlterableConfig("retention.ms", *((SET, "5") if is_incremental else ("5",)))
    body = kind((kind.AlterConfigsResource(TOPIC, "orders", (config,)),))
    (answer,) = node.call(api, body, api.low if is_low else api.high).responses
    assert (answer.error_code, answer.error_message) == (0, None)
    assert node.entry(TOPIC, "orders", "retention.ms").value == "5"


@pytest.mark.parametrize("api", [DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS])
def test_one_error_for_everything(api: Api) -> None:
    kind: Any = {
        DESCRIBE_CONFIGS: DescribeConfigsRequest,
        ALTER_CONFIGS: AlterConfigsRequest,
        INCREMENTAL_ALTER_CONFIGS: IncrementalAlterConfigsRequest,
    }[api]
    resource = kind.DescribeConfigsResource if api is DESCRIBE_CONFIGS else kind.AlterConfigsResource
    request: Any = SimpleNamespace(api_key=api.key, body=kind(resources=(resource(TOPIC, "a"), resource(GROUP, "b"))))
    answer = api.refuse(request, -1, "why")
    entries = answer.results if api is DESCRIBE_CONFIGS else answer.responses
    assert [(each.error_code, each.error_message, each.resource_name) for each in entries] == [
        (-1, "why", "a"),
        (-1, "why", "b"),
    ]


# --- ListConfigResources


def test_all_resources_are_listed(node: SettingsNode) -> None:
    node.alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    node.alter(CLIENT_METRICS, "m", ("interval.ms", SET, "1000"))
    everything = {(TOPIC, "orders"), (BROKER, "1"), (LOGGER, "1"), (GROUP, "g"), (CLIENT_METRICS, "m")}
    assert node.listed() == everything
    assert node.listed(TOPIC, GROUP) == {(TOPIC, "orders"), (GROUP, "g")}
    assert node.listed(version=0) == {(CLIENT_METRICS, "m")}


def test_what_has_no_setting_left_is_not_listed(node: SettingsNode) -> None:
    node.alter(CLIENT_METRICS, "m", ("interval.ms", SET, "1000"))
    node.alter(CLIENT_METRICS, "m", ("interval.ms", DELETE, None))
    assert node.listed(CLIENT_METRICS) == set()


@pytest.mark.parametrize("types", [(99,), (TOPIC, 0)])
def test_types_that_cannot_be_listed(node: SettingsNode, types: tuple[int, ...]) -> None:
    answer = node.call(LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(types))
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())


def test_who_may_not_list(node: SettingsNode) -> None:
    node.denied.add((4, "kafka-cluster"))
    answer = node.call(LIST_CONFIG_RESOURCES, ListConfigResourcesRequest())
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_only_own_directories_can_be_cordoned() -> None:
    node = SettingsNode(log_dirs="/one,/two")
    key = "cordoned.log.dirs"
    assert node.alter(BROKER, "1", (key, SET, "/three")) == INVALID_REQUEST
    assert node.replace(BROKER, "1", (key, "/one,/three")) == INVALID_REQUEST
    assert node.alter(BROKER, "1", (key, SET, "/one/")) == 0, "it is the same directory"
    assert node.alter(BROKER, "1", (key, APPEND, "/three")) == INVALID_REQUEST
    assert node.alter(BROKER, "1", (key, APPEND, "*")) == INVALID_REQUEST
    assert node.alter(BROKER, "1", (key, APPEND, "/two")) == 0
    assert node.entry(BROKER, "1", key).value == "/one/,/two"
    assert node.alter(BROKER, "1", (key, SUBTRACT, "/three")) == 0
    assert node.alter(BROKER, "1", (key, DELETE, None)) == 0
    assert node.replace(BROKER, "1", (key, "*")) == 0


@pytest.mark.parametrize("own", [(), ((BROKER, "2"),)], ids=["the controller's alone", "and the broker's own"])
def test_answers_stand_in_the_order_of_the_request(own: tuple[tuple[int, str], ...]) -> None:
    """Apache Kafka's controllers answer in any order, and once for what is named twice."""

    class Unordered(SettingsNode):
        def submit(self, request: Any, body: Any = None) -> DelayedResponse:
            later = DelayedResponse()

            def reorder(reply: Any) -> None:
                by_name = {(each.resource_type, each.resource_name): each for each in reversed(reply.responses)}
                later.complete(msgspec.structs.replace(reply, responses=tuple(by_name.values())))

            super().submit(request, body).deliver_to(reorder)
            return later

    resources = (*own, (TOPIC, "missing"), (TOPIC, "orders"), (TOPIC, "twice"), (TOPIC, "twice"))
    kind = IncrementalAlterConfigsRequest
    change = (kind.AlterableConfig("retention.ms", SET, "1"),)
    body = kind(tuple(kind.AlterConfigsResource(*each, change) for each in resources))
    answers = Unordered().call(INCREMENTAL_ALTER_CONFIGS, body).responses
    assert [(each.resource_type, each.resource_name) for each in answers] == list(resources)
    expected = [UNKNOWN_TOPIC, 0, INVALID_REQUEST, INVALID_REQUEST]
    assert [each.error_code for each in answers] == [INVALID_REQUEST] * len(own) + expected
