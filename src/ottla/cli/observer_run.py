"""Runs an observer until its time is over or a signal comes, for `ottla observe` and `ottla health`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import click

from ottla.cli.cluster import Seconds, Target, on_cluster, with_options
from ottla.cli.failure import EXIT_INTERRUPTED, Failure, nearest
from ottla.cli.verbosity import note

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.health.samples import Sample
    from ottla.observe import Observer, Options

TERMINATED: Final = 143  # 128 + SIGTERM
SECOND_MS: Final = 1000
CODES: Final = {signal.SIGINT: EXIT_INTERRUPTED, signal.SIGTERM: TERMINATED}


class Interval(click.ParamType[tuple[str, float]]):
    """A kind of sample and how often it is taken: `group=1s`."""

    name = "interval"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        kind, equals, text = str(value).partition("=")
        if not equals:
            self.fail(f"{value!r} is not KIND=TIME, such as group=1s", param, ctx)
        return kind, Seconds().convert(text, param, ctx)


def observer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options for the intervals of samples, and for the metrics of ottla brokers."""
    return with_options(command, *_OBSERVER_OPTIONS)


_OBSERVER_OPTIONS = (
    click.option("--every", type=Seconds(), metavar="TIME", help="Take samples of every kind this often."),
    click.option(
        "--interval",
        "own_intervals",
        type=Interval(),
        multiple=True,
        metavar="KIND=TIME",
        help="Take samples of one kind this often, such as group=500ms; repeatable.",
    ),
    click.option(
        "--metrics",
        multiple=True,
        metavar="URL",
        help="The metrics page of an ottla broker (--metrics-port), for more about share groups; repeatable.",
    ),
)


def options_of(every: float | None, own: tuple[tuple[str, float], ...], metrics: tuple[str, ...]) -> Options:
    from ottla.observe import Options
    from ottla.observe.kinds import INTERVALS_S, KindError, intervals

    for url in metrics:
        if not url.startswith(("http://", "https://")):
            raise Failure(f"--metrics {url!r} is not a URL", "for example http://127.0.0.1:9404/metrics")
    try:
        return Options(intervals(every, dict(own)), metrics=tuple(metrics))
    except KindError as error:
        advice = nearest(error.kind, INTERVALS_S) or f"known: {', '.join(INTERVALS_S)}"
        raise Failure(f"--interval: {error}", advice) from None


def new_observer_id() -> str:
    return str(uuid4())


def on_quiet_cluster(target: Target, work: Callable[[Client], Any], longest_pause_s: float | None = None) -> Any:  # noqa: ANN401
    """Like `on_cluster`, with a client that backs off from brokers that do not answer."""
    from ottla.observe import QUIET

    changes = QUIET.copy()
    if longest_pause_s is not None:
        changes["reconnect_backoff_max_ms"] = max(1, round(longest_pause_s * SECOND_MS))
        changes["reconnect_backoff_ms"] = min(changes["reconnect_backoff_ms"], changes["reconnect_backoff_max_ms"])
    return on_cluster(target, work, changes)


async def run_until_told(observer: Observer, for_s: float | None, is_enough: Callable[[], bool]) -> int:
    """Observe until the time is over, it is enough, or a signal comes. Returns 0, or the exit code of the signal."""
    loop = asyncio.get_running_loop()
    code = 0

    def told(number: signal.Signals) -> None:
        nonlocal code
        code = CODES[number]
        observer.stop()

    for number in CODES:
        loop.add_signal_handler(number, told, number)
    try:
        await observer.run(None if for_s is None else round(for_s * SECOND_MS), is_enough=is_enough)
    finally:
        for number in CODES:
            loop.remove_signal_handler(number)
    return code


class Progress:
    """Prints the progress on standard error, once in a while and when something changes."""

    EVERY_MS: Final = 60_000
    PATIENCE_MS: Final = 30_000

    def __init__(self) -> None:
        self._said_ms: int | None = None
        self._failing_ms: int | None = None
        self._is_told = False
        self._is_down = False
        self.samples = 0

    def take(self, sample: Sample, problem: str | None) -> None:
        from ottla.health.samples import UNREACHABLE

        self.samples += 1
        if sample.kind == "cluster":
            self._reachable(sample.error != UNREACHABLE)
        self._writable(sample.ts, problem)
        self._said_ms = sample.ts if self._said_ms is None else self._said_ms
        if sample.ts - self._said_ms >= self.EVERY_MS:
            self._said_ms = sample.ts
            self.say(f"{self.samples:,} samples so far")

    def _writable(self, now_ms: int, problem: str | None) -> None:
        """A short problem, as after a restart of the cluster, is not reported."""
        if problem is None and self._is_told:
            self.say("writing samples again")
        self._failing_ms = None if problem is None else self._failing_ms or now_ms
        if self._failing_ms is None:
            self._is_told = False
        elif not self._is_told and not self._is_down and now_ms - self._failing_ms >= self.PATIENCE_MS:
            self._is_told = True
            self.say(f"samples cannot be written yet: {problem}")

    def _reachable(self, is_up: bool) -> None:
        if self._is_down == is_up:
            self._is_down = not is_up
            self.say("the cluster is reachable again" if is_up else "no node of the cluster is reachable; retrying")

    def say(self, text: str) -> None:
        note(f"ottla observe: {text}")
