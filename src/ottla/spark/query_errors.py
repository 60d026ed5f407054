"""Errors of clients, records and files as errors of a query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.client.errors import ClientError
from ottla.spark.errors import OttlaSparkError
from ottla.wire.fault import WireError

__all__ = ["one_sentence"]


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
