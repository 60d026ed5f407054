"""`ottla health`: what is wrong with a cluster, what is healthy, and what is not visible."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import Seconds, Target, json_option, on_cluster, target_options
from ottla.cli.failure import EXIT_REFUSED, Failure
from ottla.cli.findings import (
    Rules,
    evaluator_of,
    fail_on_option,
    has_failed,
    print_change,
    print_state,
    print_state_json,
    rule_options,
)
from ottla.cli.observer_run import new_observer_id, observer_options, on_quiet_cluster, options_of, run_until_told
from ottla.cli.verbosity import note

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.health.evaluator import SampleEvaluator
    from ottla.health.samples import Sample
    from ottla.observe import Options

SECOND_MS = 1000
BRIEF = "a short look: problems that show only over minutes need --watch, or samples from 'ottla observe'"


@click.command()
@click.option("--from-topic", metavar="TOPIC", help="Read samples that an observer wrote to this topic.")
@click.option(
    "--from",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Read samples from the files below this directory.",
)
@click.option("--since", type=Seconds(), metavar="TIME", help="With --from-topic: only the last 1h, for example.")
@click.option(
    "--for", "for_s", type=Seconds(), default="10s", show_default=True, metavar="TIME", help="How long to observe."
)
@click.option(
    "--watch",
    "watch_s",
    type=Seconds(),
    is_flag=False,
    flag_value="2s",
    metavar="[TIME]",
    help="Observe until interrupted, and show the state every 2 s, or every TIME.",
)
@fail_on_option
@json_option
@observer_options
@rule_options
@target_options
def health(
    target: Target,
    rules: Rules,
    from_topic: str | None,
    directory: Path | None,
    since: float | None,
    for_s: float,
    watch_s: float | None,
    as_json: bool,
    fail_on: str | None,
    every: float | None,
    own_intervals: tuple[tuple[str, float], ...],
    metrics: tuple[str, ...],
) -> int:
    """Show problems of a cluster, the most severe first, healthy rules, and what is not visible.

    It observes the cluster for ten seconds. Problems that show only over a longer time need --watch, or samples from
    'ottla observe': --from-topic or --from.
    """
    if from_topic is not None and directory is not None:
        raise Failure("--from-topic and --from cannot both be given")
    if watch_s is not None and (from_topic is not None or directory is not None):
        raise Failure("--watch observes a cluster, it does not read samples", "leave out --from-topic or --from")
    if directory is not None:
        return _recorded(_files(directory), rules, fail_on, as_json=as_json)
    if from_topic is not None:
        samples = on_cluster(target, _reader(from_topic, since))
        return _recorded(samples, rules, fail_on, as_json=as_json, now_ms=time.time_ns() // 1_000_000)
    options = options_of(every, own_intervals, metrics)
    longest_hold_s = for_s / 2 if watch_s is None else None
    evaluator = evaluator_of(
        rules, longest_hold_s=longest_hold_s, intervals_s=options.intervals_s, connection=target.options
    )
    live = _Live(evaluator, rules, options, for_s=for_s, watch_s=watch_s, as_json=as_json)
    code: int = on_quiet_cluster(target, live.run)
    if watch_s is None:
        _print(evaluator, rules, as_json=as_json, note=BRIEF)
    return code or (EXIT_REFUSED if has_failed(evaluator, fail_on, ever=False) else 0)


def _print(evaluator: SampleEvaluator, rules: Rules, *, as_json: bool, note: str = "") -> None:
    if as_json:
        print_state_json(evaluator, rules)
    else:
        print_state(evaluator, rules, note)


# --- recorded ---------------------------------------------------------------------------------------------------------


def _files(directory: Path) -> Iterable[Sample]:
    from ottla.observe import read_files

    return read_files(directory)


def _reader(topic: str, since_s: float | None) -> Callable[[Client], Awaitable[list[Sample]]]:
    async def read(client: Client) -> list[Sample]:
        from ottla.observe import read_topic

        since_ms = None if since_s is None else time.time_ns() // 1_000_000 - round(since_s * SECOND_MS)
        return await read_topic(client, topic, since_ms)

    return read


def _recorded(
    samples: Iterable[Sample], rules: Rules, fail_on: str | None, *, as_json: bool, now_ms: int | None = None
) -> int:
    """Show one state for each cluster with samples."""
    evaluators: dict[str, SampleEvaluator] = {}
    for sample in samples:
        evaluators.setdefault(sample.cluster, evaluator_of(rules)).take(sample)
    if not evaluators:
        raise Failure("no samples found", "write some: ottla observe --to DIR, or --to-topic", code=EXIT_REFUSED)
    for number, evaluator in enumerate(evaluators.values()):
        if now_ms is not None:
            evaluator.advance(now_ms)
        if number and not as_json:
            click.echo()
        _print(evaluator, rules, as_json=as_json)
    return EXIT_REFUSED if any(has_failed(each, fail_on, ever=False) for each in evaluators.values()) else 0


# --- live -------------------------------------------------------------------------------------------------------------


class _Live:
    """Observes a cluster. With --watch, a terminal shows the newest state; elsewhere each change is a line."""

    def __init__(
        self,
        evaluator: SampleEvaluator,
        rules: Rules,
        options: Options,
        *,
        for_s: float,
        watch_s: float | None,
        as_json: bool,
    ) -> None:
        self._evaluator = evaluator
        self._rules = rules
        self._options = options
        self._for_s = for_s if watch_s is None else None
        self._drawn_every_ms = round((watch_s or 0) * SECOND_MS)
        self._as_json = as_json
        self._drawn_ms = 0

    async def run(self, client: Client) -> int:
        from ottla.observe import Observer

        if self._for_s is not None and sys.stderr.isatty():
            note(f"observing for {self._for_s:g} s ...")
        observer = Observer(client, new_observer_id(), self._options, on_sample=self._take)
        if self._for_s is None:
            return await run_until_told(observer, None, lambda: False)
        # If brokers are slow, wait until each kind was probed once.
        longest_s = self._for_s + client.settings.default_api_timeout_ms / SECOND_MS
        end_s = time.monotonic() + self._for_s
        return await run_until_told(observer, longest_s, lambda: time.monotonic() >= end_s and observer.probed_all)

    def _take(self, sample: Sample) -> None:
        changes = self._evaluator.take(sample)
        if self._for_s is not None:
            return
        if self._as_json or sys.stdout.isatty():
            self._redraw(sample.ts)
        else:
            for change in changes:
                print_change(change)

    def _redraw(self, now_ms: int) -> None:
        if now_ms - self._drawn_ms < self._drawn_every_ms:
            return
        self._drawn_ms = now_ms
        if self._as_json:
            print_state_json(self._evaluator, self._rules, in_a_line=True)
            return
        click.clear()
        print_state(self._evaluator, self._rules)
