"""Clients for planners, runners and tasks."""

from __future__ import annotations

from ottla.client.blocking import BlockingClient, cached_client
from ottla.client.blocking.cache import forget
from ottla.spark.cluster_options import ClusterOptions

__all__ = ["client_for", "forget_client"]


def client_for(options: ClusterOptions) -> BlockingClient:
    """The client of this process for a cluster, which all tasks share."""
    return cached_client(_key(options), lambda: BlockingClient(options.bootstrap_servers, **options.client_settings()))


def forget_client(options: ClusterOptions) -> None:
    """Drop the client; the next call makes a new one."""
    forget(_key(options))


def _key(options: ClusterOptions) -> tuple[object, ...]:
    return (options.bootstrap_servers, *sorted(options.kafka.items()))
