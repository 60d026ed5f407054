"""The common parts of all workloads: orders, journal, and commands on standard input."""

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
    """`told` is the last command; `ended` is set when standard input is closed."""

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
        """A generator whose numbers depend on the seed and on the workload."""
        return Random(f"{self.name} {self.plan.seed}")

    def client(self) -> Client:
        return self.client_named(self.name)

    def client_named(self, name: str) -> Client:
        """A client with short backoffs, because a broker that is down comes back within a minute."""
        return Client(self.bootstrap, client_id=name, retry_backoff_max_ms=300, connect_timeout_ms=2_000)

    def _hear(self, line: str) -> None:
        if line:
            self.told = line.strip()
            self.journal.note("told", order=self.told)
        else:
            self.ended.set()


def ordered(orders: dict[str, Any]) -> Ordered:
    """Must be called on the workload's event loop."""
    given = Ordered(
        orders.pop("bootstrap"), Plan(**orders.pop("plan")), Journal(Path(orders.pop("journal"))), dict(orders)
    )
    threading.Thread(target=_listen, args=(asyncio.get_running_loop(), given), daemon=True).start()
    return given


def _listen(loop: asyncio.AbstractEventLoop, given: Ordered) -> None:
    for line in sys.stdin:
        loop.call_soon_threadsafe(given._hear, line)
    loop.call_soon_threadsafe(given._hear, "")
