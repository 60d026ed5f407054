"""Who decides what a principal may do: access control lists in the metadata log, or a class that the settings name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.broker.config.node_config import ConfigError, NodeConfig
from ottla.broker.network.request import Denial
from ottla.core.access.acls import Acl, Acls

if TYPE_CHECKING:
    from ottla.broker.network.plugin_authorizer import PluginAuthorizer
    from ottla.broker.network.request import Request
    from ottla.wire.access import Operation, ResourceType
    from ottla.wire.types.cluster_metadata import AccessControlEntryRecord

__all__ = ["AclAuthorizer", "make_authorizer"]

_SETTING: Final = "authorizer.class.name"
STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def make_authorizer(config: NodeConfig) -> AclAuthorizer | PluginAuthorizer | None:
    """What `authorizer.class.name` asks for; None if it asks for nothing. Raises ConfigError and PluginError."""
    name = config[_SETTING]
    if not name:
        return None
    if name.startswith("org.apache.kafka.") and name != STANDARD:
        raise ConfigError(f"{_SETTING} is {name}, which cannot run here; use {STANDARD}, or a Python class")
    if name != STANDARD:
        from ottla.broker.network.plugin_authorizer import PluginAuthorizer

        return PluginAuthorizer(_SETTING, name, config)
    super_users = [each.strip() for each in config["super.users"].split(";") if each.strip()]
    for each in super_users:
        if ":" not in each:
            raise ConfigError(f"super.users has {each!r}; write User:name, and ; between several")
    return AclAuthorizer(Acls(super_users=super_users, allows_without_rules=config["allow.everyone.if.no.acl.found"]))


class AclAuthorizer:
    """Decides as Kafka's StandardAuthorizer does."""

    def __init__(self, acls: Acls) -> None:
        self._acls = acls

    def __call__(self, request: Request, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        host = request.connection.peer.host
        decision = self._acls.decide(request.principal, host, operation, resource_type, name)
        if not decision.is_allowed:
            rule = "no ACL allows it" if decision.acl is None else str(decision.acl)
            request.deny(Denial(operation, resource_type, name, rule))
        return decision.is_allowed

    def allows_any(self, request: Request, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there is a resource of a type to which the principal may do something."""
        host = request.connection.peer.host
        return self._acls.decide_by_type(request.principal, host, operation, resource_type)

    def follow(self, acls: Mapping[bytes, AccessControlEntryRecord], changed: Iterable[bytes]) -> None:
        """Take over rules that have changed."""
        for acl_id in changed:
            record = acls.get(acl_id)
            if record is None:
                self._acls.remove(acl_id)
            else:
                self._acls.add(acl_id, Acl.of(record))
