"""What a page asks the cluster for: each part has an answer, or the reason why there is none, and the rest still shows.

configs = await ask(context, "configs", describe, topic)
Content(..., sources=sources(context, configs), degraded=degraded(configs))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from ottla.client import Client, ClientError, ResponseError
from ottla.console.page import Degraded, PageContext, Source, is_refused, why_not
from ottla.console.watcher import NotConnectedError

__all__ = ["Asked", "ask", "ask_to_read", "degraded", "sources"]

T = TypeVar("T")


class Asked(NamedTuple, Generic[T]):
    what: str
    answer: T | None = None
    at_ms: int | None = None
    why: str | None = None
    """Why there is no answer."""


async def ask(
    context: PageContext, what: str, work: Callable[[Client], Awaitable[T]], *key: object, needs: str = ""
) -> Asked[T]:
    """Do some work once for all who ask for it; `what` and `key` say what it is, `needs` which right it takes.

    While no broker answers nobody is asked: the reader would wait for every part in turn.
    """
    if context.watcher.outage is not None:
        return Asked(what, why="the cluster does not answer")
    try:
        answer, at_ms = await context.watcher.ask((what, *key), work)
    except NotConnectedError:
        return Asked(what, why="there is no connection to the cluster")
    except ClientError as error:
        return Asked(what, why=why_not(error, context.watcher.principal, needs))
    return Asked(what, answer, at_ms)


async def ask_to_read(
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


def sources(context: PageContext, *asked: Asked[T]) -> list[Source]:
    return [
        Source(each.what, None, each.why) if each.at_ms is None else context.asked(each.what, each.at_ms)
        for each in asked
    ]


def degraded(*asked: Asked[T]) -> list[Degraded]:
    return [Degraded(each.what, each.why) for each in asked if each.why is not None]
