"""Who may do what, decided by a class of one's own: `authorizer.class.name=package.module.Class`.

    from ottla.security.authorizer import Action, Authorizer

    class OfficeHours(Authorizer):
        def authorize(self, action: Action) -> bool:
            return action.operation is not Operation.DELETE or is_office_hour()

It is asked in the middle of a request, so it must not wait for anything. An exception is a refusal, and is logged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from ottla.wire.access import Operation, ResourceType

__all__ = ["Action", "Authorizer", "Operation", "ResourceType"]


class Action(NamedTuple):
    """What somebody wants to do."""

    principal: str
    """Such as User:ann; User:ANONYMOUS without a login."""
    host: str
    listener: str
    operation: Operation
    resource_type: ResourceType
    resource_name: str


class Authorizer(ABC):
    """Decides for a node."""

    def __init__(self, settings: Mapping[str, str]) -> None:  # noqa: B027 - many need no settings
        """`settings` are the node's own, as its properties have them."""

    @abstractmethod
    def authorize(self, action: Action) -> bool:
        """Whether it may be done."""
