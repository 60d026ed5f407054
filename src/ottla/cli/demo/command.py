"""The demo from its first line to its exit code."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from ottla.cli.demo import truth
from ottla.cli.demo.cast import Cast
from ottla.cli.demo.children import Children
from ottla.cli.demo.ground import Ground
from ottla.cli.demo.ledger import accounts
from ottla.cli.demo.narrator import Narrator
from ottla.cli.demo.node import OttlaNode
from ottla.cli.demo.plan import Plan
from ottla.cli.demo.story import Story
from ottla.cli.demo.watcher import Watcher
from ottla.cli.demo.word_totals import Application, Missing, kafka_streams

__all__ = ["Wishes", "run"]


class Wishes(NamedTuple):
    """What was asked for on the command line."""

    seed: int = 1
    out: Path = Path("demo")
    spark: bool = True
    java: bool = True
    stay: bool = False
    speed: float = 1.0


def run(wishes: Wishes) -> int:
    ground = Ground(wishes.out)
    ground.prepare()
    return asyncio.run(_run(wishes, ground, Narrator(Console(highlight=False))))


async def _run(wishes: Wishes, ground: Ground, narrator: Narrator) -> int:
    plan = Plan(wishes.seed, wishes.speed)
    application = await _application(wishes, narrator)
    async with Children(ground.said) as children:
        node = OttlaNode(children, ground.data, plan)
        cast = Cast(children, ground, plan, node, application)
        await Story(plan, ground, node, cast, Watcher(children, ground), narrator).tell()
        told = truth.told(ground, plan)
        told["ledger"] = [account.facts() for account in accounts(ground)]
        truth.write(told, ground.truth)
    for account in told["ledger"]:
        narrator.say(str(account))
    return 0


async def _application(wishes: Wishes, narrator: Narrator) -> Application | None:
    if not wishes.java:
        return None
    try:
        return await kafka_streams(narrator)
    except Missing as missing:
        narrator.warn(f"{missing}: the streams group is played by a member in Python")
        return None
