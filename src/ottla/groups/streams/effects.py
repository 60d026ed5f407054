"""What streams groups ask of the edge. By itself, so that a node that starts need not load the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["CreateInternalTopics", "InternalTopic"]


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
