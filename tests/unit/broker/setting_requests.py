"""A node as far as handlers of settings look, and the requests that are sent to it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ottla import wire
from ottla.broker.config.node_config import NodeConfig
from ottla.broker.config.settings import Settings
from ottla.broker.handlers import load_api
from ottla.broker.network.dispatch import Api
from ottla.broker.network.request import DelayedResponse
from ottla.broker.telemetry.loggers import REQUESTS, Loggers
from ottla.core.metadata.config_rules import Rules
from ottla.core.metadata.controller import Controller
from ottla.wire.reject import Reject
from ottla.wire.types.alter_configs import AlterConfigsRequest
from ottla.wire.types.describe_configs import DescribeConfigsRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.types.list_config_resources import ListConfigResourcesRequest
from tests.unit.core.metadata.cluster import Cluster

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def served(key: int) -> Api:
    api = load_api(key)
    assert api is not None
    return api


DESCRIBE_CONFIGS = served(32)
ALTER_CONFIGS = served(33)
INCREMENTAL_ALTER_CONFIGS = served(44)
LIST_CONFIG_RESOURCES = served(74)


class SettingsNode:
    """A node as far as these handlers look: metadata through a real controller, no disk, no sockets."""

    node_id = 1
    controller_listeners: frozenset[str] = frozenset()

    def __init__(self, **static: str) -> None:
        self.cluster = Cluster()
        self.image = self.cluster.image
        config = NodeConfig({name.replace("_", "."): value for name, value in static.items()})
        self.settings = Settings(config, Rules(config.static), self.image)
        self.cluster.controller = Controller(self.image, self.settings.rules, self.cluster.settings)
        self.cluster.with_brokers(1)
        self.cluster.create("orders")
        self.denied: set[tuple[int, str]] = set()
        self.request_logging: list[bool] = []
        self.loggers = Loggers({REQUESTS: self.request_logging.append})
        self.security = SimpleNamespace(check_tls=lambda changes: None)

    def authorize(self, request: Any, operation: int, resource_type: int, name: str) -> bool:
        return (resource_type, name) not in self.denied

    def submit(self, request: Any, body: Any = None) -> DelayedResponse:
        later = DelayedResponse()
        reply = self.cluster.submit(
            request.body if body is None else body, authorize=lambda *what: self.authorize(request, *what)
        )
        self.settings.forget()
        later.complete(reply)
        return later

    # --- requests

    def call(self, api: Api, body: Any, version: int | None = None) -> Any:
        """A handler's answer, through bytes in both directions."""
        version = api.high if version is None else version
        name = type(body).__name__
        connection = SimpleNamespace(peer=SimpleNamespace(listener="PLAINTEXT"))
        seen = wire.decode(name, version, wire.encode(body, version))
        asked: Any = SimpleNamespace(api_key=api.key, body=seen, version=version, connection=connection)
        try:
            answer = api.handle(self, asked)
        except Reject as reject:
            answer = api.refuse(asked, reject.code, reject.message)
        if isinstance(answer, DelayedResponse):
            replies: list[Any] = []
            answer.deliver_to(replies.append)
            (answer,) = replies
        reply = name.replace("Request", "Response")
        return wire.decode(reply, version, wire.encode(answer, version))

    def describe(self, resource_type: int, name: str, *keys: str, **options: Any) -> Any:
        """The result for one resource."""
        version = options.pop("version", None)
        kind = DescribeConfigsRequest
        resource = kind.DescribeConfigsResource(resource_type, name, keys or None)
        (result,) = self.call(DESCRIBE_CONFIGS, kind((resource,), **options), version).results
        return result

    def entry(self, resource_type: int, name: str, key: str, **options: Any) -> Any:
        options = {"include_synonyms": True, **options}
        (entry,) = self.describe(resource_type, name, key, **options).configs
        return entry

    def alter(self, resource_type: int, name: str, *steps: tuple[Any, ...], validate_only: bool = False) -> int:
        """IncrementalAlterConfigs of one resource; steps are (key, operation, value)."""
        kind = IncrementalAlterConfigsRequest
        configs = tuple(kind.AlterableConfig(*step) for step in steps)
        body = kind((kind.AlterConfigsResource(resource_type, name, configs),), validate_only)
        (answer,) = self.call(INCREMENTAL_ALTER_CONFIGS, body).responses
        assert (answer.resource_type, answer.resource_name) == (resource_type, name)
        return int(answer.error_code)

    def replace(self, resource_type: int, name: str, *settings: tuple[Any, ...], validate_only: bool = False) -> int:
        """AlterConfigs of one resource; settings are (key, value)."""
        kind = AlterConfigsRequest
        configs = tuple(kind.AlterableConfig(*setting) for setting in settings)
        body = kind((kind.AlterConfigsResource(resource_type, name, configs),), validate_only)
        (answer,) = self.call(ALTER_CONFIGS, body).responses
        return int(answer.error_code)

    def listed(self, *types: int, version: int = 1) -> set[tuple[int, str]]:
        answer = self.call(LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(types), version)
        assert answer.error_code == 0
        return {(each.resource_type, each.resource_name) for each in answer.config_resources}
