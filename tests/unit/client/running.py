"""Coroutines of tests, run to their end or to a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

TIME_LIMIT_S = 30


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test's coroutine within a bound of time; it must leave no task behind."""

    async def bounded() -> None:
        async with asyncio.timeout(TIME_LIMIT_S):
            await body()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    asyncio.run(bounded(), debug=True)
