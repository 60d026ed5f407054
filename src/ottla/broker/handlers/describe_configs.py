"""DescribeConfigs (32): settings of topics, brokers, groups and client metrics, and where each value comes from.

A topic or group has all its settings, and so has this broker; the broker without a name has the dynamic defaults of all
brokers. Secret values are never sent, nor are values of settings of an unknown type. Keys that do not exist are left
out; null or an empty list of keys means all keys.

Versions 1 to 4: from 3 on an entry has its type and, on request, its documentation. Synonyms are sent on request, in
order of precedence. Only the broker itself has its loggers, each with its effective level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Request
from ottla.core.metadata.checks import check_has_name
from ottla.core.metadata.config_defs import ConfigError, ConfigKey, ConfigType, broker_defs
from ottla.core.metadata.config_rules import (
    DEFAULT,
    DYNAMIC_BROKER_LOGGER,
    DYNAMIC_CLIENT_METRICS,
    DYNAMIC_DEFAULT_BROKER,
    DYNAMIC_GROUP,
    DYNAMIC_TOPIC,
    Rules,
    Setting,
    Synonym,
    broker_key,
)
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import BROKER, CLIENT_METRICS, CLUSTER_DEFAULT, GROUP, TOPIC
from ottla.core.metadata.topic_names import check_topic_name
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResponseDescribeConfigsResourceResult,
    DescribeConfigsResponseDescribeConfigsResult,
    DescribeConfigsResponseDescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Configs

API_KEY: Final = 32
VERSIONS: Final = (1, 4)

BROKER_LOGGER: Final = 8
UNKNOWN_TYPE: Final = 0
_OWN_SOURCES: Final = (DYNAMIC_TOPIC, DYNAMIC_GROUP, DYNAMIC_CLIENT_METRICS)
_OF_AUTHORIZERS: Final = frozenset(("allow.everyone.if.no.acl.found", "super.users"))
"""Settings of authorizers. Apache Kafka's broker does not define them, so it shows them only if they are set."""

_Resource = DescribeConfigsRequestDescribeConfigsResource
_Result = DescribeConfigsResponseDescribeConfigsResult
_Entry = DescribeConfigsResponseDescribeConfigsResourceResult
_Synonym = DescribeConfigsResponseDescribeConfigsSynonym


def handle(node: Configs, request: Request) -> DescribeConfigsResponse:
    body: DescribeConfigsRequest = request.body
    for resource in body.resources:
        if resource.resource_type not in _ACCESS:
            message = f"Resources of type {resource.resource_type} have no settings."
            return refuse(request, ErrorCode.INVALID_REQUEST, message)
    described: list[_Result] = []
    denied: list[_Result] = []
    for resource in body.resources:
        if _may_see(node, request, resource):
            described.append(_describe(node, body, resource))
        else:
            denied.append(_refusal(resource, *_denial(resource)))
    return DescribeConfigsResponse(results=(*described, *denied))


def refuse(request: Request, code: int, message: str | None) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=tuple(_refusal(each, code, message) for each in request.body.resources))


def _refusal(resource: _Resource, code: int, message: str | None) -> _Result:
    return _Result(code, message, resource.resource_type, resource.resource_name)


# --- access


_CLUSTER_ACCESS: Final = (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_ACCESS: Final = {
    TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    BROKER: _CLUSTER_ACCESS,
    BROKER_LOGGER: _CLUSTER_ACCESS,
    CLIENT_METRICS: _CLUSTER_ACCESS,
}
"""Type of resource -> the resource type whose permission is checked, and the error without it."""


def _may_see(node: Configs, request: Request, resource: _Resource) -> bool:
    kind, _ = _ACCESS[resource.resource_type]
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else resource.resource_name
    return node.authorize(request, Operation.DESCRIBE_CONFIGS, kind, name)


def _denial(resource: _Resource) -> tuple[int, str]:
    _, code = _ACCESS[resource.resource_type]
    return code, code.meaning


# --- settings of each kind of resource


def _describe(node: Configs, body: DescribeConfigsRequest, resource: _Resource) -> _Result:
    try:
        settings = list(_SETTINGS[resource.resource_type](node, resource.resource_name))
    except Reject as reject:
        return _refusal(resource, reject.code, reject.message)
    wanted = frozenset(resource.configuration_keys or ())
    entries = (_entry(each, body) for each in settings if not wanted or each.name in wanted)
    return _Result(0, "", resource.resource_type, resource.resource_name, tuple(entries))


def _topic_settings(node: Configs, name: str) -> Iterable[Setting]:
    check_topic_name(name)
    if name not in node.image.topics_by_name:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    settings = node.settings
    return settings.rules.topic_configs(
        node.image.configs(TOPIC, name), settings.broker_dynamic, settings.cluster_dynamic
    )


def _broker_settings(node: Configs, name: str) -> Iterable[Setting]:
    settings = node.settings
    if name == CLUSTER_DEFAULT:
        return _cluster_settings(settings.as_given(CLUSTER_DEFAULT))
    if name != str(node.node_id):
        raise Reject(ErrorCode.INVALID_REQUEST, f"This is broker {node.node_id}; send the request to broker {name!r}.")
    # As in Apache Kafka, a node's id is also its broker's id.
    static = {"broker.id": str(node.node_id), **settings.config.static}
    places = settings.as_given(name), settings.as_given(CLUSTER_DEFAULT), static
    unlisted = {name for place in places for name in place if name not in broker_defs()}
    listed = Rules(static).broker_configs(*places[:2])
    found = [
        *(each for each in listed if each.name not in _OF_AUTHORIZERS or each.source != DEFAULT),
        *_unlisted_settings(sorted(unlisted), places),
    ]
    return [_with_placeholders_filled(node, each, places) for each in found]


def _with_placeholders_filled(node: Configs, setting: Setting, places: Sequence[Mapping[str, str]]) -> Setting:
    """A setting with the placeholders in its value filled; its synonyms keep the given text."""
    if setting.value is None or "${" not in setting.value:
        return setting
    try:
        return setting._replace(value=node.settings.resolve(setting.name, setting.value, places[0]))
    except ConfigError:
        return setting


def _cluster_settings(cluster: Mapping[str, str]) -> Iterator[Setting]:
    """The dynamic defaults of all brokers. Settings with less precedence are not shown: they may differ by broker."""
    for name, value in cluster.items():
        key = _broker_key(name)
        synonyms = (Synonym(name, value, DYNAMIC_DEFAULT_BROKER),)
        yield Setting(key, value, DYNAMIC_DEFAULT_BROKER, not key.is_dynamic, synonyms)


def _unlisted_settings(names: Iterable[str], places: tuple[Mapping[str, str], ...]) -> Iterator[Setting]:
    """Settings that are in no table: of listeners, of plugins, throttles. `places` are in order of precedence."""
    for name in names:
        found = [Synonym(name, place[name], 2 + level) for level, place in enumerate(places) if name in place]
        key = _broker_key(name)
        yield Setting(key, found[0].value, found[0].source, not key.is_dynamic, tuple(found))


def _broker_key(name: str) -> ConfigKey:
    """The definition of a broker setting. An unknown one could be anything, so it is treated as a password."""
    return broker_key(name) or ConfigKey(name, ConfigType.PASSWORD, None)


def _group_settings(node: Configs, name: str) -> Iterable[Setting]:
    check_has_name(GROUP, name)
    settings = node.settings
    return settings.rules.group_configs(
        node.image.configs(GROUP, name), settings.broker_dynamic, settings.cluster_dynamic
    )


def _client_metrics_settings(node: Configs, name: str) -> Iterable[Setting]:
    check_has_name(CLIENT_METRICS, name)
    return node.settings.rules.client_metrics_configs(node.image.configs(CLIENT_METRICS, name))


def _logger_settings(node: Configs, name: str) -> Iterator[Setting]:
    check_own_loggers(node, name)
    for logger, level in node.loggers.levels().items():
        yield Setting(ConfigKey(logger, ConfigType.STRING, None), level, DYNAMIC_BROKER_LOGGER, False, ())


def check_own_loggers(node: Configs, name: str) -> None:
    """Reject a request for the loggers of another node."""
    if name != str(node.node_id):
        raise Reject(ErrorCode.INVALID_REQUEST, f"This is node {node.node_id}; send the request to node {name!r}.")


_SETTINGS: Final[dict[int, Callable[[Configs, str], Iterable[Setting]]]] = {
    TOPIC: _topic_settings,
    BROKER: _broker_settings,
    GROUP: _group_settings,
    CLIENT_METRICS: _client_metrics_settings,
    BROKER_LOGGER: _logger_settings,
}


# --- entries


def _entry(setting: Setting, body: DescribeConfigsRequest) -> _Entry:
    key = setting.key
    is_logger = setting.source == DYNAMIC_BROKER_LOGGER
    is_known = not is_logger and (not key.is_sensitive or broker_key(key.name) is not None)
    return _Entry(
        name=key.name,
        value=None if key.is_sensitive else _shown(setting),
        read_only=setting.is_read_only,
        config_source=setting.source,
        is_sensitive=key.is_sensitive,
        synonyms=_synonyms(setting) if body.include_synonyms else (),
        config_type=key.type if is_known else UNKNOWN_TYPE,
        documentation=_documentation(setting) if body.include_documentation or is_logger else None,
    )


def _documentation(setting: Setting) -> str | None:
    """The documentation of a setting. Loggers always have an empty text, as in Apache Kafka."""
    return "" if setting.source == DYNAMIC_BROKER_LOGGER else setting.key.documentation or None


def _shown(setting: Setting) -> str | None:
    """A value in the normal form of its type: a boolean is true or false, and a list has no blanks."""
    if setting.value is None or setting.source == DEFAULT:
        return setting.value
    try:
        value = setting.key.parse(setting.value)
    except ConfigError:
        return setting.value  # it was set before the rule existed
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _synonyms(setting: Setting) -> tuple[_Synonym, ...]:
    """The synonyms of a setting. The resource's own value is in normal form, a broker's as it was given."""
    if setting.key.is_sensitive:
        return tuple(_Synonym(each.name, None, each.source) for each in setting.synonyms)
    return tuple(
        _Synonym(each.name, _shown(setting) if each.source in _OWN_SOURCES else each.value, each.source)
        for each in setting.synonyms
    )
