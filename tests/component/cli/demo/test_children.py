import asyncio
import os
import sys
from pathlib import Path

import pytest

from ottla.cli.demo.children import ChildDied, Children

LISTENS = [sys.executable, "-c", "import sys\nfor line in sys.stdin: print('heard', line.strip(), flush=True)"]
DEAF = [
    sys.executable, "-u", "-c",
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf')\ntime.sleep(600)",
]  # fmt: skip


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def said(path: Path, text: str) -> None:
    """Wait until a child has said something."""
    async with asyncio.timeout(20):
        while True:
            if text in await asyncio.to_thread(path.read_text):
                return
            await asyncio.sleep(0.01)


async def hear(path: Path) -> None:
    async with Children(path) as children:
        child = await children.start("listener", LISTENS, listens=True)
        await child.tell("storm")
        await said(child.said, "heard storm")
        child.check()
    assert not child.is_running


def test_a_child_is_told_and_ends_when_its_input_is_closed(tmp_path: Path):
    asyncio.run(hear(tmp_path))


async def crash(path: Path) -> int:
    async with Children(path) as children:
        child = await children.start("deaf", DEAF)
        await said(child.said, "deaf")
        await child.kill()
        assert not child.is_running
        with pytest.raises(ChildDied, match=r"deaf exited \(code -9\)"):
            child.check()
        return child.pid


def test_a_killed_child_is_gone_at_once(tmp_path: Path):
    assert not is_alive(asyncio.run(crash(tmp_path)))


async def fail(path: Path, pids: list[int]) -> None:
    async with Children(path) as children:
        child = await children.start("deaf", DEAF)
        pids.append(child.pid)
        await said(child.said, "deaf")
        raise RuntimeError("the story broke")


def test_children_that_do_not_obey_are_killed_with_the_story(tmp_path: Path):
    pids: list[int] = []
    with pytest.raises(RuntimeError, match="the story broke"):
        asyncio.run(fail(tmp_path, pids))
    assert not is_alive(pids[0])


def test_settings_of_ottla_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTTLA_BOOTSTRAP", "elsewhere:1")

    async def work() -> str:
        async with Children(tmp_path) as children:
            child = await children.start("env", [sys.executable, "-c", "import os; print(sorted(os.environ))"])
            await child.wait()
        return child.said.read_text()

    assert "OTTLA_BOOTSTRAP" not in asyncio.run(work())
