"""Deadlines on the event loop that nodes run on."""

from __future__ import annotations

import asyncio

from ottla.broker.loop.clock import ManualClock
from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.loop.purgatory import Purgatory
from ottla.cli.node_process import new_loop


def test_operations_whose_deadlines_have_passed_already():
    """uvloop's handle for something to be done at once does not say when that is."""
    clock = ManualClock()

    async def scenario() -> list[str]:
        purgatory = Purgatory(asyncio.get_running_loop(), clock)
        purgatory.is_open = True
        answered: list[str] = []
        is_over = asyncio.Event()

        def due(name: str, *then: DelayedOperation) -> DelayedOperation:
            def answer(expired: bool) -> bool:
                answered.append(name)
                if len(answered) == 3:
                    is_over.set()
                return all(purgatory.park(each) for each in then)

            return DelayedOperation(answer, (), clock.monotonic_ms())

        assert purgatory.park(due("first", due("third")))
        assert purgatory.park(due("second"))
        await is_over.wait()
        return answered

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(asyncio.wait_for(scenario(), 60)) == ["first", "second", "third"]
