"""Loads one part of a page. What cannot be loaded says why, and the rest of the page stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from ottla.client import Client, ClientError, ResponseError
from ottla.console.page import Degraded, PageContext, Source, is_refused, why_not
from ottla.console.watcher import NotConnectedError
from ottla.wire.errors import ErrorCode

__all__ = ["Part", "load_part", "load_records"]

T = TypeVar("T")


class Part(NamedTuple, Generic[T]):
    """What was loaded, or why there is none."""

    value: T | None
    sources: list[Source]
    degraded: list[Degraded]

    @property
    def why(self) -> str | None:
        return self.degraded[0].why if self.degraded else None


async def load_part(
    context: PageContext,
    what: str,
    key: tuple[object, ...],
    work: Callable[[Client], Awaitable[T]],
    *,
    needs: str = "",
    reasons: Mapping[ErrorCode, str] | None = None,
) -> Part[T]:
    """Do some work for all who open the page. `needs` is the right that it takes; `reasons` explain single errors.

    While no broker answers nobody is asked: the reader would wait for every part in turn.
    """
    if context.watcher.outage is not None:
        return Part(None, [], [Degraded(what, "the cluster does not respond")])
    try:
        value, at_ms = await context.watcher.ask(key, work)
    except ClientError as error:
        code = error.error if isinstance(error, ResponseError) else None
        why = (reasons or {}).get(code) if code is not None else None
        return Part(None, [], [Degraded(what, why or why_not(error, context.watcher.principal, needs))])
    except NotConnectedError:
        return Part(None, [], [Degraded(what, "no connection to the cluster")])
    return Part(value, [context.asked(what, at_ms)], [])


async def load_records(
    context: PageContext, what: str, work: Callable[[Client], Awaitable[T]], topic: str, *key: object
) -> tuple[T, int]:
    """Do work without which there is no page; who may not read the topic is told so."""
    if context.watcher.outage is not None:
        raise NotConnectedError
    try:
        return await context.watcher.ask((what, topic, *key), work)
    except ResponseError as error:
        if not is_refused(error):
            raise
        raise ResponseError(None, "Fetch", error.code, f"topic {topic}", f'needs READ on Topic "{topic}"') from None
