"""A console that has seen some facts and has no connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ottla.console.page import Content, Page, PageContext
from ottla.console.watcher import ClusterWatcher
from ottla.health.evaluator import SampleEvaluator
from ottla.health.facts import Fact
from ottla.health.samples import Sample

NOW_MS = 1_700_000_000_000


def watcher_of(*facts: Fact, every_ms: int = 1_000) -> ClusterWatcher:
    """The facts come one after the other, the last of them now."""
    watcher = ClusterWatcher("127.0.0.1:9092", {}, SampleEvaluator(), principal="User:ann")
    for number, fact in enumerate(facts):
        at_ms = NOW_MS - every_ms * (len(facts) - 1 - number)
        body = msgspec.to_builtins(fact)
        watcher.state.take(Sample(kind=fact.kind, ts=at_ms, cluster="c", observer="o", seq=number, body=body))
    return watcher


def context_of(watcher: ClusterWatcher, query: dict[str, str] | None = None, **names: str) -> PageContext:
    return PageContext(watcher, names, query or {}, NOW_MS)


def loaded(page: Page, context: PageContext) -> Content[Any]:
    load: Callable[[PageContext], Awaitable[Content[Any]]] = page.load

    async def run() -> Content[Any]:
        return await load(context)

    return asyncio.run(run())


def shown(page: Page, context: PageContext) -> str:
    """The HTML of a page, and a check that its data fit their schema."""
    content = loaded(page, context)
    msgspec.json.decode(msgspec.json.encode(content.data), type=page.data)
    return page.render(content, context)
