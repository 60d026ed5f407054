"""Findings posted to a web hook: in order, again if it fails, and no more of them than fit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from http.client import BadStatusLine, InvalidURL

import pytest

from ottla.health import Change, ChangeType, Finding, Severity, State, Subject, Tier
from ottla.observe import notifier
from ottla.observe.notifier import Notifier, post


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "FIRST_PAUSE_MS", 0)
    monkeypatch.setattr(notifier, "LONGEST_PAUSE_MS", 0)


def change(number: int, what: ChangeType = ChangeType.OPENED) -> Change:
    finding = Finding(
        id=str(number),
        rule="lag-growing",
        severity=Severity.WARNING,
        tier=Tier.SAMPLES,
        state=State.OPEN,
        subject=Subject("group", "billing"),
        since_ms=number,
        times=1,
        sentence="billing is falling behind",
        evidence={},
        next=[],
    )
    return Change(number, what, finding)


class Hook:
    """Answers with these statuses in turn, then with 204; None stands for no answer."""

    def __init__(self, *statuses: int | None) -> None:
        self._statuses = list(statuses)
        self.bodies: list[dict[str, object]] = []

    def __call__(self, body: bytes) -> int:
        status = self._statuses.pop(0) if self._statuses else 204
        if status is None:
            raise OSError("refused")
        if status < 400:
            self.bodies.append(json.loads(body))
        return status

    @property
    def ids(self) -> list[str]:
        return [body["finding"]["id"] for body in self.bodies]  # type: ignore[index]


def posted(hook: Hook, tell: Callable[[Notifier], None], until: int, waiting_max: int = 10) -> list[str]:
    """What was said while so many changes were posted."""
    said: list[str] = []

    async def run() -> None:
        loop, is_enough = asyncio.get_running_loop(), asyncio.Event()

        def send(body: bytes) -> int:
            status = hook(body)
            if len(hook.bodies) == until:
                loop.call_soon_threadsafe(is_enough.set)
            return status

        made = Notifier(send, "c", said.append, waiting_max)
        tell(made)
        running = asyncio.create_task(made.run())
        await is_enough.wait()
        running.cancel()

    asyncio.run(run())
    return said


def test_changes_are_posted_in_their_order():
    hook = Hook()
    said = posted(hook, lambda made: [made.tell(change(number)) for number in range(3)] and None, 3)
    assert hook.ids == ["0", "1", "2"]
    assert hook.bodies[0]["cluster"] == "c"
    assert hook.bodies[0]["what"] == "opened"
    assert said == []


def test_new_figures_of_an_open_finding_are_not_posted():
    def tell(made: Notifier) -> None:
        made.tell(change(1, ChangeType.CHANGED))
        made.tell(change(2, ChangeType.RESOLVED))

    hook = Hook()
    posted(hook, tell, 1)
    assert hook.ids == ["2"]


@pytest.mark.parametrize("status", [None, 500, 503, 429])
def test_a_hook_that_fails_is_tried_again_and_complained_about_once(status: int | None):
    hook = Hook(status, status, status)
    said = posted(hook, lambda made: made.tell(change(1)), 1)
    assert hook.ids == ["1"]
    assert len(said) == 1
    assert said[0].startswith("findings wait: the hook")


def test_what_a_hook_refuses_is_not_posted_again():
    def tell(made: Notifier) -> None:
        made.tell(change(1))
        made.tell(change(2))

    hook = Hook(404)
    assert posted(hook, tell, 1) == ["a finding was not posted: the hook answers 404"]
    assert hook.ids == ["2"]


def test_the_oldest_are_dropped_and_counted():
    hook = Hook()
    posted(hook, lambda made: [made.tell(change(number)) for number in range(5)] and None, 2, waiting_max=2)
    assert hook.ids == ["3", "4"]
    assert [body.get("dropped") for body in hook.bodies] == [3, None]


@pytest.mark.parametrize("error", [BadStatusLine("\x15\x03\x01"), InvalidURL("nonnumeric port: 'port'")], ids=repr)
def test_a_hook_that_does_not_speak_http_does_not_answer(error: Exception, monkeypatch: pytest.MonkeyPatch):
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(notifier, "urlopen", failing)
    with pytest.raises(OSError, match=type(error).__name__):
        post("http://hook")(b"{}")
