"""Running observers, and looking at what they have seen."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple, TypeVar

from ottla.client import Client
from ottla.health import Engine
from ottla.health.facts import Fact
from ottla.health.samples import OBSERVATIONS, Sample, fact_in
from ottla.observe import QUIET, Observer, Options, TopicSink, prepare_topic, read_topic

F = TypeVar("F", bound=Fact)


class Watched(NamedTuple):
    samples: list[Sample]

    @classmethod
    def of(cls, servers: str, *, for_s: float, **settings: Any) -> Watched:
        """What an observer has written into the topic of observations in some seconds, or until it has seen all."""

        async def watch() -> list[Sample]:
            async with Client(servers, **{**QUIET, **settings}) as client:
                await prepare_topic(client, OBSERVATIONS)
                sink = TopicSink(client, OBSERVATIONS)
                observer = Observer(client, "run", Options(), sink=sink)
                end_s = time.monotonic() + for_s
                await observer.run(is_enough=lambda: observer.probed_all and time.monotonic() >= end_s)
                return await read_topic(client, OBSERVATIONS)

        return cls(asyncio.run(watch()))

    def facts(self, kind: type[F]) -> list[F]:
        return [fact for each in self.samples if isinstance(fact := fact_in(each), kind)]

    def errors(self) -> set[tuple[str, str]]:
        return {(each.kind, each.error) for each in self.samples if each.error is not None}

    def judged(self, *muted: str) -> Engine:
        engine = Engine(muted=muted)
        for each in self.samples:
            fact = fact_in(each)
            if fact is not None:
                engine.take(each.ts, fact)
        return engine
