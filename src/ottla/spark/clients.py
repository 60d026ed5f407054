"""Clients for planners, runners and tasks, and their errors as errors of a query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.client.blocking import BlockingClient, cached_client
from ottla.client.blocking.cache import forget
from ottla.client.errors import ClientError
from ottla.spark.cluster_options import ClusterOptions
from ottla.spark.errors import OttlaSparkError
from ottla.wire.fault import WireError

__all__ = ["client_for", "forget_client", "one_sentence"]


def client_for(options: ClusterOptions) -> BlockingClient:
    """The client of this process for a cluster, which all tasks share."""
    return cached_client(_key(options), lambda: BlockingClient(options.bootstrap_servers, **options.client_settings()))


def forget_client(options: ClusterOptions) -> None:
    """Drop the client; the next call makes a new one."""
    forget(_key(options))


def _key(options: ClusterOptions) -> tuple[object, ...]:
    return (options.bootstrap_servers, *sorted(options.kafka.items()))


@contextmanager
def one_sentence() -> Iterator[None]:
    """Errors reach Spark as one sentence, without a traceback.

    Our own errors are created again, because an exception keeps its traceback.
    """
    try:
        yield
    except (ClientError, WireError, OttlaSparkError) as error:
        raise OttlaSparkError(str(error)) from None
    except OSError as error:
        raise OttlaSparkError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None
