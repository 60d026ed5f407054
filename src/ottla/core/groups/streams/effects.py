"""What streams groups ask of the edge. By itself, so that a node that starts need not load the rest.

SetDescription and DeleteDescription of one group are performed one after the other, in the order in which they are
asked for, and end in that order. That holds beyond the life of a coordinator, as long as its broker lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from ottla.topology_descriptions.description import TopologyDescription

__all__ = [
    "PERMANENT",
    "CreateInternalTopics",
    "DeleteDescription",
    "GetDescription",
    "InternalTopic",
    "SetDescription",
]

PERMANENT: Final = "permanent"
"""What an effect brings if it failed and would fail again."""


class InternalTopic(NamedTuple):
    """A topic to be created for the application."""

    name: str
    partition_count: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...] = ()


class CreateInternalTopics(NamedTuple):
    """Create these topics in the name of whoever sent the heartbeat with this token. What it brings is a mapping of
    topics that could not be created to the reason; one that exists by then counts as created."""

    family: str
    number: int
    token: Any
    topics: tuple[InternalTopic, ...]


class SetDescription(NamedTuple):
    """Give a description to the plugin. `PERMANENT` is what it brings if it will never be taken; any other failure is
    one for now. A message is for the client."""

    family: str
    number: int
    group_id: str
    topology_epoch: int
    description: TopologyDescription


class GetDescription(NamedTuple):
    """Ask the plugin for a description: a TopologyDescription, or None if it does not hold it."""

    family: str
    number: int
    group_id: str
    topology_epoch: int


class DeleteDescription(NamedTuple):
    """Let the plugin forget what it holds of a group. A failure is GROUP_DELETION_FAILED, with a message for the
    client."""

    family: str
    group_id: str
    last_push: int
    """The group's last push when this was decided on, for `Calls.is_delete_last`."""
