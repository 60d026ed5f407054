"""What every workload has: its orders, its journal, and the lines that it is sent while it runs."""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from ottla.cli.demo.journal import Journal
from ottla.cli.demo.plan import Plan
from ottla.client import Client

__all__ = ["Ordered", "ordered"]


@dataclass(slots=True)
class Ordered:
    """`told` holds the last line that came; `ended` is set when no more will come."""

    bootstrap: str
    plan: Plan
    journal: Journal
    more: dict[str, Any]
    told: str = ""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        return self.journal.name

    def random(self) -> Random:
        """The same numbers for the same seed, others for another workload."""
        return Random(f"{self.name} {self.plan.seed}")

    def client(self) -> Client:
        return self.client_named(self.name)

    def client_named(self, name: str) -> Client:
        """A broker that is down comes back within the minute, and is to be noticed soon."""
        return Client(self.bootstrap, client_id=name, retry_backoff_max_ms=300, connect_timeout_ms=2_000)

    def _hear(self, line: str) -> None:
        if line:
            self.told = line.strip()
            self.journal.note("told", order=self.told)
        else:
            self.ended.set()


def ordered(orders: dict[str, Any]) -> Ordered:
    """To be called on the loop that the workload runs on."""
    given = Ordered(
        orders.pop("bootstrap"), Plan(**orders.pop("plan")), Journal(Path(orders.pop("journal"))), dict(orders)
    )
    threading.Thread(target=_listen, args=(asyncio.get_running_loop(), given), daemon=True).start()
    return given


def _listen(loop: asyncio.AbstractEventLoop, given: Ordered) -> None:
    for line in sys.stdin:
        loop.call_soon_threadsafe(given._hear, line)
    loop.call_soon_threadsafe(given._hear, "")
