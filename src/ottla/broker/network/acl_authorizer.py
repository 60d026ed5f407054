"""Decides by the access control lists in the metadata log, as Kafka's StandardAuthorizer does."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.broker.config.node_config import ConfigError, NodeConfig
from ottla.core.access.acls import Acls
from ottla.core.metadata.acls import acl_of

if TYPE_CHECKING:
    from ottla.broker.network.request import Request
    from ottla.wire.access import Operation, ResourceType
    from ottla.wire.types.cluster_metadata import AccessControlEntryRecord

__all__ = ["AclAuthorizer", "acl_authorizer"]

log = logging.getLogger(__name__)

STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def acl_authorizer(config: NodeConfig) -> AclAuthorizer | None:
    """What `authorizer.class.name` asks for; None if it asks for nothing. Raises ConfigError."""
    name = config["authorizer.class.name"]
    if not name:
        return None
    if name != STANDARD:
        raise ConfigError(f"authorizer.class.name is {name}, which cannot run here; there is {STANDARD}")
    super_users = [each.strip() for each in config["super.users"].split(";") if each.strip()]
    for each in super_users:
        if ":" not in each:
            raise ConfigError(f"super.users has {each!r}; write User:name, and ; between several")
    return AclAuthorizer(Acls(super_users=super_users, allows_without_rules=config["allow.everyone.if.no.acl.found"]))


class AclAuthorizer:
    def __init__(self, acls: Acls) -> None:
        self._acls = acls

    def __call__(self, request: Request, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        host = request.connection.peer.host
        decision = self._acls.decide(request.principal, host, operation, resource_type, name)
        if not decision.is_allowed:
            log.debug(
                "%s from %s may not %s %s:%r (API %d): %s",
                request.principal,
                host,
                operation.name,
                resource_type.name,
                name,
                request.api_key,
                decision.acl or "no rule allows it",
            )
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
                self._acls.add(acl_id, acl_of(record))
