"""The rules. Importing a module registers its rules, in the order in which they are described."""

from ottla.health.rules import (  # noqa: I001  the order of the rules
    partitions,
    nodes,
    quorum,
    features,
    lag,
    members,
    streams,
    share,
    access,
)

__all__ = ["access", "features", "lag", "members", "nodes", "partitions", "quorum", "share", "streams"]
