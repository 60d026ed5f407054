"""Assignors of one's own for consumer groups, in Python.

The setting `group.consumer.assignors` names them beside Kafka's own, `uniform` and `range`, as `package.module:Name` or
`package.module.Name`. `Name` is a class that can be made without arguments and satisfies `Assignor`. Clients choose it
with `group.remote.assignor`, by its `name`; the first one of the setting is used where nobody names any.

The broker makes one instance when it starts, to read its name. `assign` is called in a child process, where another
instance is made: it may take as long as `ottla.group.assignor.timeout.ms` allows, and holds up no request. One that
raises, takes longer or gives what it must not leaves the group with the target that it has; the broker's log says why,
and it is called again after a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol, runtime_checkable

__all__ = ["Assignor", "AssignorError", "Member", "Topic", "load_assignor"]


class Member(NamedTuple):
    """One member of a group."""

    member_id: str
    instance_id: str | None
    """Of a static member."""
    rack_id: str | None
    topics: frozenset[str]
    """The names of the existing topics that it subscribes to, by name or by pattern."""
    assigned: Mapping[str, tuple[int, ...]]
    """What it was to own until now: name of a topic -> partitions, ascending. Topics that are gone are left out."""


class Topic(NamedTuple):
    """A topic that somebody subscribes to."""

    name: str
    partition_count: int
    racks: tuple[frozenset[str], ...]
    """For each partition the racks of the brokers that hold it."""


@runtime_checkable
class Assignor(Protocol):
    name: str
    """By which clients choose it."""

    def assign(
        self, members: Sequence[Member], topics: Mapping[str, Topic]
    ) -> Mapping[str, Mapping[str, Iterable[int]]]:
        """Who is to own what: member id -> name of a topic -> partitions. Who is left out owns nothing.

        `members` are in the order of their ids. A partition may go to one member at most, and only to one that
        subscribes to its topic; one that goes to nobody is read by nobody. Called again with the same values it must
        give the same, or partitions move for nothing.
        """
        ...


class AssignorError(Exception):
    """An assignor cannot be loaded, or gives what it must not."""


def load_assignor(name: str) -> Assignor:
    """An instance of the class of a dotted name. Raises AssignorError with a text for people."""
    module_name, _, class_name = name.rpartition(":" if ":" in name else ".")
    if not module_name or not class_name:
        raise AssignorError(f"{name} is neither uniform nor range nor a dotted name such as package.module:Name")
    try:
        found = getattr(import_module(module_name), class_name, None)
    except Exception as error:
        raise AssignorError(f"{module_name} cannot be imported: {_told(error)}") from error
    if not isinstance(found, type):
        raise AssignorError(f"{module_name} has no class {class_name}")
    try:
        assignor = found()
    except Exception as error:
        raise AssignorError(f"{name} cannot be made: {_told(error)}") from error
    if not isinstance(assignor, Assignor) or not callable(assignor.assign):
        raise AssignorError(f"{name} must have a name and a method assign(members, topics)")
    if not str(assignor.name).strip():
        raise AssignorError(f"the name of {name} must be a text that is not blank")
    return assignor


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
