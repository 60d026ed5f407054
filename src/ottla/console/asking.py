"""Asks for one part of a page. What cannot be had says why, and the rest of the page stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from ottla.client import Client, ClientError
from ottla.client.errors import ResponseError
from ottla.console.page import Degraded, PageContext, Source, why_not
from ottla.console.watcher import NotConnectedError
from ottla.wire.errors import ErrorCode

__all__ = ["Part", "ask_part"]

T = TypeVar("T")


class Part(NamedTuple, Generic[T]):
    """What was asked for, or why there is none."""

    value: T | None
    sources: list[Source]
    degraded: list[Degraded]


async def ask_part(
    context: PageContext,
    what: str,
    key: tuple[object, ...],
    work: Callable[[Client], Awaitable[T]],
    *,
    needs: str = "",
    reasons: Mapping[ErrorCode, str] | None = None,
) -> Part[T]:
    """Do some work for all who open the page. `needs` is the right that it takes; `reasons` explain single errors."""
    try:
        value, at_ms = await context.watcher.ask(key, work)
    except ClientError as error:
        why = _why(error, needs, reasons or {}, context.watcher.principal)
    except NotConnectedError:
        why = "there is no connection to the cluster"
    else:
        return Part(value, [context.asked(what, at_ms)], [])
    return Part(None, [], [Degraded(what, why)])


def _why(error: ClientError, needs: str, reasons: Mapping[ErrorCode, str], principal: str) -> str:
    code = error.error if isinstance(error, ResponseError) else None
    why = why_not(error, principal)
    if code is None:
        return why
    is_refused = code.name.endswith("_AUTHORIZATION_FAILED")
    return reasons.get(code) or (f"needs {needs}; {why}" if is_refused and needs else why)
