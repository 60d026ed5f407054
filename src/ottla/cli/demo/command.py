"""The demo from its first line to its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

from rich.console import Console

from ottla.cli.demo import evaluation, truth
from ottla.cli.demo.children import ChildDied, Children
from ottla.cli.demo.cluster_state import DemoTimeoutError
from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.expected import expectations
from ottla.cli.demo.ledger import accounts
from ottla.cli.demo.narrator import Narrator
from ottla.cli.demo.nodes import OttlaNodes
from ottla.cli.demo.plan import Plan
from ottla.cli.demo.story import Story
from ottla.cli.demo.summary import show_accounts, show_expectations, show_findings, show_next
from ottla.cli.demo.watcher import Watcher, start_console
from ottla.cli.demo.word_totals import Application, Missing, kafka_streams
from ottla.cli.demo.workload_processes import WorkloadProcesses
from ottla.cli.doctor import check_all
from ottla.cli.failure import EXIT_REFUSED, Failure
from ottla.client import ClientError

__all__ = ["DemoOptions", "run"]

EXIT_TERMINATED: Final = 143
WIDTH_OF_FILES: Final = 100
TOLD: Final = ("Python", "Spark", "Java", "Maven", "ports", "disk")
"""The checks of the doctor that the demo shows."""


class DemoOptions(NamedTuple):
    """The options of the command line."""

    seed: int = 1
    out: Path = Path("demo")
    spark: bool = True
    java: bool = True
    stay: bool = False
    speed: float = 1.0


def run(options: DemoOptions, console: Console | None = None) -> int:
    """Run the demo and return the exit code. Raises Failure if something prevents it."""
    directory = DemoDirectory(options.out)
    directory.prepare()
    narrator = Narrator(console or _console())
    try:
        return asyncio.run(_terminable(_Demo(options, directory, narrator).run()))
    except (ChildDied, DemoTimeoutError, evaluation.PipelineFailed, ClientError) as error:
        advice = f"the output of all processes is in {directory.said}"
        raise Failure(f"the demo failed: {error}", advice, code=EXIT_REFUSED) from error


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_OF_FILES
    return console


async def _terminable(work: Coroutine[object, object, int]) -> int:
    """SIGTERM ends the demo like Ctrl-C: all processes are ended first."""
    task = asyncio.create_task(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel, "SIGTERM")
    try:
        return await task
    except asyncio.CancelledError as cancelled:
        if cancelled.args == ("SIGTERM",):
            return EXIT_TERMINATED
        raise


class _Demo:
    def __init__(self, options: DemoOptions, directory: DemoDirectory, narrator: Narrator) -> None:
        self._options = options
        self._directory = directory
        self._narrator = narrator
        self._plan = Plan(options.seed, options.speed)

    async def run(self) -> int:
        await self._doctor()
        application = await self._application()
        async with Children(self._directory.said) as children:
            nodes = OttlaNodes(children, self._directory.data, self._plan)
            workloads = WorkloadProcesses(children, self._directory, self._plan, nodes, application)
            watcher = Watcher(children, self._plan)
            await Story(self._plan, self._directory, nodes, workloads, watcher, self._narrator).tell()
            settled = accounts(self._directory)
            told = truth.collect(self._directory, self._plan) | {"ledger": [each.facts() for each in settled]}
            truth.write(told, self._directory.truth)
            is_well = show_accounts(self._narrator.console, settled)
            facts = await self._judge(children, nodes)
            is_well = self._sum_up(facts, told) and is_well
            if self._options.stay:
                await self._stay(children, nodes)
        return 0 if is_well else EXIT_REFUSED

    async def _doctor(self) -> None:
        async with self._narrator.doing("checking this machine"):
            found = await asyncio.to_thread(check_all)
        for each in found:
            if each.state == "bad":
                raise Failure(f"{each.name}: {each.found}", each.advice, code=EXIT_REFUSED)
        shown = [f"{each.name} {each.found.partition(' in ')[0]}" for each in found if each.name in TOLD]
        self._narrator.say(f"doctor: {' · '.join(shown)}")

    async def _application(self) -> Application | None:
        if not self._options.java:
            self._narrator.say("--no-java: a Python client replaces Kafka Streams")
            return None
        try:
            return await kafka_streams(self._narrator)
        except Missing as missing:
            self._narrator.warn(f"{missing}: a Python client replaces Kafka Streams")
            return None

    async def _judge(self, children: Children, nodes: OttlaNodes) -> dict[str, Any]:
        began = monotonic()
        reason = evaluation.why_no_spark() if self._options.spark else "--no-spark"
        if reason is None:
            facts = await evaluation.with_spark(children, nodes.data_dir, self._directory, self._narrator)
            how = f"{facts['tables']['outputs']['total']} tables"
        else:
            self._narrator.warn(f"no Spark ({reason}): the rules are evaluated without it, and no tables are written")
            facts = await evaluation.without_spark(nodes, self._directory)
            how = "no tables"
        found = len(facts["findings"])
        self._narrator.step(6, "pipeline", f"{found} findings, {how}, in {monotonic() - began:.1f} s")
        return facts

    def _sum_up(self, facts: dict[str, Any], told: truth.Truth) -> bool:
        console = self._narrator.console
        console.print()
        show_findings(console, facts["findings"])
        console.print()
        is_well = True
        if self._options.speed == 1:
            is_well = show_expectations(console, expectations(facts, told))
        else:
            console.print("expectations are not checked with --speed: the thresholds of rules are for real time")
        show_next(console, self._directory)
        return is_well

    async def _stay(self, children: Children, nodes: OttlaNodes) -> None:
        """Keep the nodes running until Ctrl-C, which then counts as a normal end."""
        console = await start_console(children, nodes, self._directory.path)
        told = f"Open {console} in a browser" if console else f"Try: ottla groups list --bootstrap {nodes.bootstrap}"
        self._narrator.console.print(f"\nThe nodes run until Ctrl-C. {told}", soft_wrap=True)
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                nodes.check()
                await asyncio.sleep(1)
