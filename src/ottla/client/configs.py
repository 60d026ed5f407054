"""Configurations: of topics, brokers, groups and what else has them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.client.client import Answer, Client, always
from ottla.client.errors import ConfigurationError, ResponseError, check
from ottla.wire.types.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResponseDescribeConfigsResourceResult,
)
from ottla.wire.types.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.types.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

__all__ = [
    "Change",
    "ConfigEntry",
    "ConfigSource",
    "ConfigType",
    "Operation",
    "Resource",
    "ResourceType",
    "Synonym",
    "alter",
    "describe",
    "list_resources",
    "try_describe",
]

Resources = tuple[DescribeConfigsRequestDescribeConfigsResource, ...]

_DOCUMENTED_VERSION: Final = 3
_SOURCES: Final = {
    "TOPIC": "topic",
    "DYNAMIC_BROKER": "broker",
    "DYNAMIC_DEFAULT_BROKER": "all brokers",
    "STATIC_BROKER": "broker's file",
    "DEFAULT": "default",
    "DYNAMIC_BROKER_LOGGER": "logger",
    "CLIENT_METRICS": "client metrics",
    "GROUP": "group",
}


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from, the strongest first."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8

    @classmethod
    def _missing_(cls, value: object) -> ConfigSource:
        return cls.UNKNOWN  # a broker that is newer than this table

    @property
    def words(self) -> str:
        return _SOURCES.get(self.name, "unknown")


class ConfigType(IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9

    @classmethod
    def _missing_(cls, value: object) -> ConfigType:
        return cls.UNKNOWN


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    """Back to the default."""
    APPEND = 2
    """To a list."""
    SUBTRACT = 3
    """From a list."""


class Resource(NamedTuple):
    """What has configurations. The name of a broker is its node id; "" stands for the default of all brokers."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", " ")
        return f"{kind} {self.name}" if self.name else f"the default of every {kind}"


class Synonym(NamedTuple):
    """A value that would hold if there were no stronger one, under the name that it has there."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    """None if it is not set, or sensitive."""
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: ConfigType
    documentation: str | None
    synonyms: tuple[Synonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT

    @property
    def default(self) -> str | None:
        """The default, if a synonym says it in the same unit."""
        defaults = (each for each in self.synonyms if each.source is ConfigSource.DEFAULT and self.has_unit(each.name))
        return next((each.value for each in defaults), None)

    def has_unit(self, name: str) -> bool:
        """Whether a synonym has the same unit: log.retention.hours is a synonym of retention.ms."""
        return name.rpartition(".")[2] == self.name.rpartition(".")[2]


class Change(NamedTuple):
    operation: Operation
    name: str
    value: str | None = None


Entries = dict[str, ConfigEntry]


async def describe(
    client: Client,
    resource: Resource,
    *,
    keys: Iterable[str] | None = None,
    synonyms: bool = False,
    documentation: bool = False,
) -> Entries:
    """The configurations of a resource by name: all of them, or these keys. Brokers leave out keys they do not know."""
    outcomes = await try_describe(client, resource, keys=keys, synonyms=synonyms, documentation=documentation)
    outcome = outcomes[resource]
    if isinstance(outcome, ResponseError):
        raise outcome
    return outcome


async def try_describe(
    client: Client,
    *resources: Resource,
    keys: Iterable[str] | None = None,
    synonyms: bool = False,
    documentation: bool = False,
) -> dict[Resource, Entries | ResponseError]:
    """The configurations of many resources, or why those of one cannot be had."""
    wanted_keys = None if keys is None else tuple(keys)
    by_broker: dict[int | None, list[Resource]] = {}
    for resource in resources:
        by_broker.setdefault(_broker_of(resource), []).append(resource)
    outcomes: dict[Resource, Entries | ResponseError] = {}
    for broker, group in by_broker.items():
        wanted = tuple(DescribeConfigsRequestDescribeConfigsResource(*each, wanted_keys) for each in group)

        def build(version: int, wanted: Resources = wanted) -> DescribeConfigsRequest:
            return DescribeConfigsRequest(wanted, synonyms, documentation and version >= _DOCUMENTED_VERSION)

        outcomes |= _described(await client.ask("DescribeConfigs", build, broker=broker))
    return outcomes


def _described(answer: Answer) -> dict[Resource, Entries | ResponseError]:
    outcomes: dict[Resource, Entries | ResponseError] = {}
    for result in answer.of(DescribeConfigsResponse).results:
        resource = Resource(ResourceType(result.resource_type), result.resource_name)
        outcomes[resource] = {each.name: _entry(each) for each in result.configs}
        if result.error_code:
            outcomes[resource] = ResponseError(
                answer.peer, "DescribeConfigs", result.error_code, str(resource), result.error_message
            )
    return outcomes


async def alter(client: Client, resource: Resource, changes: Iterable[Change], *, validate_only: bool = False) -> None:
    """Change configurations of a resource, all or none; others stay as they are."""
    request = IncrementalAlterConfigsRequest(
        resources=(
            IncrementalAlterConfigsRequestAlterConfigsResource(
                resource.type,
                resource.name,
                tuple(
                    IncrementalAlterConfigsRequestAlterableConfig(each.name, each.operation, each.value)
                    for each in changes
                ),
            ),
        ),
        validate_only=validate_only,
    )
    broker = _broker_of(resource)
    answer = await client.ask(
        "IncrementalAlterConfigs", always(request), broker="controller" if broker is None else broker
    )
    for each in answer.of(IncrementalAlterConfigsResponse).responses:
        check(answer.peer, "IncrementalAlterConfigs", each.error_code, str(resource), each.error_message)


async def list_resources(client: Client, *types: ResourceType) -> list[Resource]:
    """What has configurations, of these types; of all of them if none is given."""
    answer = await client.ask("ListConfigResources", always(ListConfigResourcesRequest(tuple(types))))
    body = answer.of(ListConfigResourcesResponse)
    check(answer.peer, "ListConfigResources", body.error_code)
    known = set(ResourceType)
    return [
        Resource(ResourceType(each.resource_type), each.resource_name)
        for each in body.config_resources
        if each.resource_type in known
    ]


def _broker_of(resource: Resource) -> int | None:
    """A broker's own configurations are asked of that broker."""
    if resource.type not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not resource.name:
        return None
    if not (resource.name.isascii() and resource.name.isdigit()):
        raise ConfigurationError(f"{resource.name!r} is not a node id; brokers are named by their number")
    return int(resource.name)


def _entry(each: DescribeConfigsResponseDescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        each.name,
        each.value,
        ConfigSource(each.config_source),
        each.read_only,
        each.is_sensitive,
        ConfigType(each.config_type),
        each.documentation or None,
        tuple(Synonym(synonym.name, synonym.value, ConfigSource(synonym.source)) for synonym in each.synonyms),
    )
