"""`ottla observe`: watches a cluster and writes samples."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import Column, Seconds, Target, numbers, print_json, print_table, target_options
from ottla.cli.failure import EXIT_REFUSED, Failure
from ottla.cli.findings import Rules, change_json, evaluator_of, fail_on_option, has_failed, print_change, rule_options
from ottla.cli.observer_run import (
    Progress,
    new_observer_id,
    observer_options,
    on_quiet_cluster,
    options_of,
    run_until_told,
)

if TYPE_CHECKING:
    from ottla.broker.network.web_server import WebServer
    from ottla.client import Client
    from ottla.health.evaluator import SampleEvaluator
    from ottla.health.samples import Sample
    from ottla.observe import Observer, Options, Sink
    from ottla.observe.cluster_state import ClusterState
    from ottla.observe.notifier import Notifier

FLUSH_S = 5.0
"""How long posting the last findings may take at the end."""


@click.command()
@click.option("--to-topic", metavar="TOPIC", help="Write samples to this topic, which is created if it does not exist.")
@click.option(
    "--to",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write samples to files below this directory.",
)
@click.option(
    "--export-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve Prometheus metrics at http://HOST:PORT/metrics; 0 picks a free port.",
)
@click.option(
    "--export-host", default="127.0.0.1", show_default=True, metavar="HOST", help="The address for --export-port."
)
@click.option(
    "--notify", "hook", metavar="URL", help="POST findings to this URL as JSON when they open and when they close."
)
@click.option("--rules", "apply_rules", is_flag=True, help="Print findings as they open and close.")
@click.option("--once", is_flag=True, help="Probe everything once, show what was seen, and stop.")
@click.option("--for", "for_s", type=Seconds(), metavar="TIME", help="Stop after this time.")
@click.option(
    "--backoff-max",
    type=Seconds(),
    default="60s",
    show_default=True,
    metavar="TIME",
    help="The longest pause before retrying an unreachable broker or a failed write.",
)
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON, one per line.")
@fail_on_option
@observer_options
@rule_options
@target_options
def observe(
    target: Target,
    rules: Rules,
    to_topic: str | None,
    directory: Path | None,
    export_port: int | None,
    export_host: str,
    hook: str | None,
    apply_rules: bool,
    once: bool,
    for_s: float | None,
    backoff_max: float,
    as_json: bool,
    fail_on: str | None,
    every: float | None,
    own_intervals: tuple[tuple[str, float], ...],
    metrics: tuple[str, ...],
) -> int:
    """Watch any cluster: groups, lag, nodes, quorum. Samples are written to the topic ottla.observations by default.

    With only --once, --rules, --export-port or --notify, no samples are written.
    """
    if hook is not None and not hook.startswith(("http://", "https://")):
        raise Failure(f"--notify {hook!r} is not a URL", "for example http://127.0.0.1:8000/findings")
    options = options_of(every, own_intervals, metrics)._replace(longest_pause_ms=round(backoff_max * 1000))
    if to_topic is not None and directory is not None:
        raise Failure("--to-topic and --to cannot both be given")
    evaluator = evaluator_of(
        rules, longest_hold_s=0.0 if once else None, intervals_s=options.intervals_s, connection=target.options
    )
    watch = _Watch(evaluator, shows=apply_rules or fail_on is not None, as_json=as_json)
    has_other_use = once or apply_rules or export_port is not None or hook is not None

    async def work(client: Client) -> int:
        where, sink = await _sink(client, to_topic, directory, is_needed=not has_other_use)
        watch.begin(client, where, for_s=for_s, once=once)
        async with contextlib.AsyncExitStack() as stack:
            if hook is not None:
                await stack.enter_async_context(watch.notifying(client, hook))
            if export_port is not None:
                stack.enter_context(await watch.export(options, export_host, export_port))
            return await watch.run(client, options, sink, for_s=for_s, once=once)

    code: int = on_quiet_cluster(target, work, backoff_max)
    return code or (EXIT_REFUSED if has_failed(evaluator, fail_on, ever=True) else 0)


async def _sink(
    client: Client, topic: str | None, directory: Path | None, *, is_needed: bool
) -> tuple[str, Sink | None]:
    """The destination of the samples, in words, and its sink."""
    from ottla.health.samples import OBSERVATIONS
    from ottla.observe import FileSink, TopicSink, prepare_topic

    if directory is not None:
        return f"writing samples to {directory}", FileSink(directory)
    if topic is None and not is_needed:
        return "no samples are written", None
    name = topic or OBSERVATIONS
    is_new = await prepare_topic(client, name)
    return f"writing samples to topic {name}{' (created)' if is_new else ''}", TopicSink(client, name)


class _Watch:
    """An observer with the rules, and their output."""

    def __init__(self, evaluator: SampleEvaluator, *, shows: bool, as_json: bool) -> None:
        self._evaluator = evaluator
        self._shows = shows
        self._as_json = as_json
        self._progress = Progress()
        self._observer: Observer | None = None
        self._state: ClusterState | None = None
        self._notifier: Notifier | None = None
        self._seen: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()

    def begin(self, client: Client, where: str, *, for_s: float | None, once: bool) -> None:
        """Say what is being done."""
        if once:
            return
        ends = "press Ctrl-C to stop" if for_s is None else f"for {for_s:g} s"
        nodes = len(client.metadata.brokers)
        cluster = f"cluster {client.metadata.cluster_id or 'without id'}, {nodes} node{'' if nodes == 1 else 's'}"
        self._progress.say(f"{cluster}; {where}; {ends}")

    async def export(self, options: Options, host: str, port: int) -> contextlib.closing[WebServer]:
        """Serve the metrics of what is observed, until it is closed."""
        from ottla.broker.network.web_server import WebServer, is_loopback
        from ottla.broker.telemetry.metrics_page import metrics_page
        from ottla.observe.cluster_state import ClusterState
        from ottla.observe.exporter import Exporter

        self._state = ClusterState(self._evaluator)
        exporter = Exporter(self._state, self._probed_ms, options.intervals_s)
        server = WebServer(metrics_page(lambda: exporter.page(time.time_ns() // 1_000_000)), is_local=is_loopback(host))
        try:
            bound = await server.start(host, port)
        except OSError as error:
            advice = "another program has the port; choose one with --export-port"
            raise Failure(f"cannot listen on {host}:{port}: {error.strerror}", advice, code=EXIT_REFUSED) from None
        self._progress.say(f"metrics at http://{host}:{bound}/metrics")
        return contextlib.closing(server)

    def _probed_ms(self) -> Mapping[str, int]:
        return {} if self._observer is None else self._observer.probed_ms

    @contextlib.asynccontextmanager
    async def notifying(self, client: Client, url: str) -> AsyncIterator[None]:
        """Post findings to a hook while this lasts."""
        from ottla.observe.notifier import Notifier, post

        self._notifier = Notifier(post(url), client.metadata.cluster_id or "", self._progress.say)
        posting = asyncio.create_task(self._notifier.run())
        try:
            yield
            await self._notifier.drain(FLUSH_S)
        finally:
            posting.cancel()

    async def run(self, client: Client, options: Options, sink: Sink | None, *, for_s: float | None, once: bool) -> int:
        from ottla.observe import Observer

        observer = Observer(client, new_observer_id(), options, sink=sink, on_sample=self._take)
        self._observer = observer
        code = await run_until_told(observer, for_s, lambda: once and observer.probed_all)
        if once:
            self._show_seen()
        left = f"; {observer.waiting:,} could not be written: {observer.problem}" if observer.waiting else ""
        self._progress.say(f"{self._progress.samples:,} samples{left}")
        return code or (EXIT_REFUSED if observer.waiting else 0)

    def _show_seen(self) -> None:
        """How many samples of each kind there were, and of how many nothing could be learned."""
        rows = [(kind, self._seen[kind], self._failed[kind]) for kind in sorted(self._seen)]
        if self._as_json:
            print_json({"rows": [{"kind": kind, "samples": seen, "errors": failed} for kind, seen, failed in rows]})
        else:
            print_table((Column("KIND"), *numbers("SAMPLES", "ERRORS")), rows)

    def _take(self, sample: Sample) -> None:
        self._seen[sample.kind] += 1
        self._failed[sample.kind] += bool(sample.error)
        self._progress.take(sample, self._observer.problem if self._observer is not None else None)
        changes = self._evaluator.take(sample)
        if self._state is not None:
            self._state.keep(sample)
        for change in changes:
            if self._notifier is not None:
                self._notifier.tell(change)
            if not self._shows:
                continue
            if self._as_json:
                click.echo(change_json(change))
            else:
                print_change(change)
