"""Pauses between attempts, which really wait."""

import asyncio

from ottla.client.backoff import Backoff, Deadline


def test_no_pause_is_begun_that_would_end_too_late():
    async def body() -> None:
        assert await Backoff(1, 1, random=lambda: 0.5).pause(Deadline(1000))
        assert not await Backoff(1000, 1000, random=lambda: 0.5).pause(Deadline(500))

    asyncio.run(body())
