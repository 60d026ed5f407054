import asyncio
from io import BytesIO, StringIO, TextIOWrapper

import pytest
from rich.console import Console

from ottla.cli.demo import narrator as module
from ottla.cli.demo.narrator import Narrator


def test_steps_and_what_is_said_between_them():
    out = StringIO()
    narrator = Narrator(Console(file=out, width=100))
    narrator.step(1, "cluster", "1 node")
    narrator.begin(3, "killed billing-2")
    narrator.say("taken over")
    assert out.getvalue().splitlines() == [
        " 0:00  1/6 cluster ✓ 1 node",
        " 0:00  3/6 killed billing-2",
        " 0:00      taken over",
    ]


def test_a_plain_terminal_can_show_it():
    out = TextIOWrapper(BytesIO(), encoding="ascii")
    Narrator(Console(file=out)).step(1, "cluster", "1 node")
    out.seek(0)
    assert "cluster ok 1 node" in out.read()


@pytest.mark.parametrize("fails", [True, False])
def test_signs_of_life_while_something_lasts(monkeypatch: pytest.MonkeyPatch, fails: bool):
    monkeypatch.setattr(module, "SIGN_OF_LIFE_S", 0.0)
    out = StringIO()

    async def work() -> None:
        async with Narrator(Console(file=out, width=100)).doing("waiting", 10):
            for _ in range(10):  # turns of the loop
                await asyncio.sleep(0)
            if fails:
                raise KeyError("broken off")

    if fails:
        with pytest.raises(KeyError):
            asyncio.run(work())
    else:
        asyncio.run(work())
    assert "… waiting, 10 s left" in out.getvalue()
