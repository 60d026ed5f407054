"""`ottla load`: writes records to a topic of any cluster, and measures throughput and latency.

`pace`    when records are due
`run`     writes, reads and measures
`plot`    what was measured, as text
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.cluster import (
    Column,
    Seconds,
    Target,
    compression_option,
    json_option,
    numbers,
    on_cluster,
    print_json,
    print_table,
    target_options,
)
from ottla.cli.failure import EXIT_IN_PART, EXIT_REFUSED, Failure
from ottla.cli.load.plot import latency_bars, over_time
from ottla.cli.refusal import one_line
from ottla.cli.topics.find import no_topic
from ottla.cli.verbosity import note
from ottla.health.phrases import number

if TYPE_CHECKING:
    from ottla.cli.latencies import Latencies
    from ottla.cli.load.run import LoadOptions, Measured
    from ottla.client import Client

QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
COLUMNS: Final = (
    Column("WHAT"),
    *numbers("RECORDS", "RECORDS/s", "MB/s", "MEAN ms", "P50", "P95", "P99", "P99.9", "MAX"),
)
SAY_EVERY_S: Final = 5.0
MEGABYTE: Final = 1_000_000
MS_NS: Final = 1_000_000
DEFAULT_S: Final = 10.0


@click.command()
@click.argument("topic")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Records per second; by default, as many as possible.",
)
@click.option(
    "--size",
    "size_bytes",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="BYTES",
    help="The size of each value.",
)
@click.option(
    "--for", "seconds", type=Seconds(), metavar="TIME", help="Stop after this time.  [default: 10s without --records]"
)
@click.option("--records", type=click.IntRange(1), metavar="N", help="Stop after this many records.")
@click.option(
    "--keys",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="How many different keys; with 0, records have no key.",
)
@click.option("--acks", type=click.Choice(["all", "1"]), default="all", show_default=True)
@compression_option
@click.option(
    "--batch",
    "batch_bytes",
    type=click.IntRange(1),
    default=16_384,
    show_default=True,
    metavar="BYTES",
    help="The size of a batch, like a producer's batch.size.",
)
@click.option(
    "--linger",
    "linger_s",
    type=Seconds(),
    default="5ms",
    show_default=True,
    metavar="TIME",
    help="How long a record waits for others, like linger.ms.",
)
@click.option(
    "--in-flight", type=click.IntRange(1, 100), default=5, show_default=True, metavar="N", help="Concurrent requests."
)
@click.option("--read", "reads", is_flag=True, help="Also read the records, and measure how long they take to arrive.")
@click.option("--create", is_flag=True, help="Create the topic if it does not exist.")
@json_option
@target_options
def load(target: Target, topic: str, create: bool, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - the options of a run
    """Write records to TOPIC, and measure throughput and latency.

    With --rate, the latency of a record begins when it is due, even if it is sent later because the cluster stalls.
    """
    from ottla.cli.load.run import STAMP, Load, LoadOptions

    if given["seconds"] is None and given["records"] is None:
        given["seconds"] = DEFAULT_S
    options = LoadOptions(topic=topic, **{**given, "acks": "all" if given["acks"] == "all" else 1})
    if options.reads and options.size_bytes < STAMP.size:
        raise Failure(f"--read needs values of at least {STAMP.size} bytes", f"--size {STAMP.size}")
    report = _Report(options.size_bytes)

    async def work(client: Client) -> Measured:
        from ottla.client.topics import NewTopic
        from ottla.client.topics import create as create_topic

        known = await client.all_topics()
        if topic not in known and not create:
            absent = no_topic(topic, known)
            raise Failure(absent.problem, "--create creates it", code=absent.code)
        if topic not in known:
            await create_topic(client, NewTopic(topic))
        return await Load(client, options, report.say).run()

    measured = on_cluster(target, work)
    _print(options, measured, as_json)
    if measured.failure is not None:
        code = EXIT_IN_PART if measured.written else EXIT_REFUSED
        raise Failure(f"{number(measured.failed)} records were not written: {one_line(measured.failure)}", code=code)
    return 0


class _Report:
    """Prints the progress on standard error, once in a while."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._said_s = 0.0
        self._said_count = 0

    def say(self, measured: Measured, passed_s: float) -> None:
        since_s = passed_s - self._said_s
        if since_s < SAY_EVERY_S:
            return
        count = measured.written
        rate = (count - self._said_count) / since_s
        note(f"ottla load: {number(count)} records written, {number(round(rate))}/s")
        self._said_s, self._said_count = passed_s, count


def _print(options: LoadOptions, measured: Measured, as_json: bool) -> None:
    facts = [_facts("write", measured.writes, measured.written_s, options.size_bytes)]
    if options.reads:
        facts.append(_facts("read", measured.reads, measured.read_s, options.size_bytes))
    if as_json:
        seconds = [
            {"second": place, "written": each.writes.count, "p99_ms": _ms(each.writes.quantile_ns(0.99))}
            for place, each in enumerate(measured.seconds)
        ]
        print_json({"topic": options.topic, "failed": measured.failed, "rows": facts, "seconds": seconds})
        return
    print_table(COLUMNS, [_cells(each) for each in facts])
    for line in (*latency_bars(measured.writes), *over_time(measured)):
        click.echo(line)


def _facts(what: str, latencies: Latencies, seconds: float, size_bytes: int) -> dict[str, Any]:
    rate = latencies.count / seconds if seconds else 0.0
    return {
        "what": what,
        "records": latencies.count,
        "records_per_second": round(rate, 1),
        "megabytes_per_second": round(rate * size_bytes / MEGABYTE, 3),
        "mean_ms": _ms(latencies.mean_ns),
        **{f"{name}_ms": _ms(latencies.quantile_ns(share)) for name, share in QUANTILES.items()},
        "max_ms": _ms(latencies.max_ns if latencies.count else None),
    }


def _ms(duration_ns: float | None) -> float | None:
    return None if duration_ns is None else round(duration_ns / MS_NS, 3)


def _cells(facts: dict[str, Any]) -> tuple[object, ...]:
    what, records, rate, megabytes, *latencies = facts.values()
    shown = (None if each is None else f"{each:.2f}" for each in latencies)
    return what, number(records), number(round(rate)), f"{megabytes:.2f}", *shown
