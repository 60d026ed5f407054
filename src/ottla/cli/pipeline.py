"""`ottla pipeline`: turns the records and observations of a cluster into tables and a report, with Spark."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import click

from ottla.cli.cluster import (
    DEFAULT_SERVER,
    SERVER_VARIABLE,
    ClusterGroup,
    Seconds,
    chosen_target,
    help_alone,
    is_given,
    key_and_value,
    print_json,
    profile_option,
    properties_in,
    with_options,
)
from ottla.cli.failure import EXIT_NOT_ALLOWED, EXIT_REFUSED, Failure
from ottla.cli.refusal import failure_of
from ottla.cli.verbosity import is_quiet, note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.pipeline.options import RunOptions
    from ottla.spark.pipeline.origins import Origin

T = TypeVar("T")
Given = Any
"""The value of an option."""
NOT_ALLOWED = ("AUTHORIZATION_FAILED", "AUTHENTICATION_FAILED")
ADVICE = re.compile(r": (?=set JAVA_HOME|pip install)")
"""Precedes the advice in the error about a missing program or package."""
SPARK_LOG = "spark.log"
BREATH_S = 10.0
"""How often a line is printed during a long step."""
REPORT, REPORT_JSON = "report.html", "report.json"


class Source(NamedTuple):
    """The options for the source of the data."""

    bootstrap: str | None
    command_config: Path | None
    from_log: tuple[str, ...]
    observations: tuple[str, ...]
    topic: str
    connection: str = ""
    """The options with which other commands reach the cluster."""


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def pipeline(context: click.Context) -> None:
    """Turn the internal topics of a cluster into tables and a report.

    It also reads samples of `ottla observe`. Both are read from a cluster or from files.
    """
    help_alone(context)


# --- options ----------------------------------------------------------------------------------------------------------

_OPTIONS = (
    click.option(
        "--bootstrap",
        "--bootstrap-server",
        "bootstrap_server",
        metavar="HOST:PORT",
        envvar=SERVER_VARIABLE,
        show_envvar=True,
        help=f"A broker of the cluster to read.  [default: {DEFAULT_SERVER}, unless files are given]",
    ),
    click.option(
        "--command-config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Properties file of a Kafka client: security.protocol, sasl.*, ssl.* and so on.",
    ),
    profile_option,
    click.option(
        "--from-log",
        multiple=True,
        metavar="DIR",
        help="Read a broker's log directory instead; repeatable, for the nodes of one cluster.",
    ),
    click.option(
        "--observations",
        multiple=True,
        metavar="DIR",
        help="The files of `ottla observe --to DIR`; repeatable.",
    ),
    click.option(
        "--observations-topic",
        "topic",
        default="ottla.observations",
        show_default=True,
        help="The topic that `ottla observe --to-topic` writes to.",
    ),
    click.option("--out", default="out", show_default=True, metavar="DIR", help="The directory for tables and report."),
    click.option("--master", default="local[2]", show_default=True, help="Spark's master."),
    click.option("--delta", is_flag=True, help="Write Delta tables instead of Parquet (needs ottla[delta])."),
    click.option("--since", metavar="TIME", help="Only days since then: 1h, 7d, or 2026-11-15[T02:30]."),
    click.option(
        "--isolation",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="Count lag to the high watermark, or to the last stable offset.",
    ),
    click.option(
        "--share-window",
        metavar="TIME",
        help="The length of the windows of share_delivery.  [default: 1m; 10s if the data cover less than an hour]",
    ),
    click.option("--rule", "rules", multiple=True, metavar="RULE.KEY=VALUE", help="A threshold of a health rule."),
    click.option("--conf", "confs", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; repeatable."),
)


def _with_options(command: Callable[..., T]) -> Callable[..., T]:
    return with_options(command, *_OPTIONS)


# --- commands ---------------------------------------------------------------------------------------------------------


@pipeline.command()
@_with_options
@click.option("--open", "is_opened", is_flag=True, help="Show the report in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
def run(
    is_opened: bool, as_json: bool, out: str, master: str, delta: bool, confs: tuple[str, ...], **given: Given
) -> None:
    """Compute the tables and the report once, over all data or since a time."""
    from ottla.spark.pipeline.batch import run as run_batch

    source = _source(given)
    options = _run_options(Path(out), delta, source, given)
    with Steps() as steps, _one_line():
        origin = _origin(source)
        start = _session(master, Path(out), delta, confs, is_small=origin is not None and origin.is_small)
        spark, found = run_batch(start, origin, options, steps.say)
        try:
            written = _report(Path(out), spark if delta else None)
        finally:
            spark.stop()
    _end(steps, found, written, is_opened, as_json)


@pipeline.command()
@_with_options
@click.option(
    "--lateness", default="10m", show_default=True, metavar="TIME", help="How long windows wait for late rows."
)
@click.option("--every", type=Seconds(), default="30s", show_default=True, metavar="TIME", help="How often to read.")
@click.option("--once", is_flag=True, help="Stop after reading all existing data.")
def follow(
    lateness: str, every: float, once: bool, out: str, master: str, delta: bool, confs: tuple[str, ...], **given: Given
) -> None:
    """Keep the tables and the report up to date, until interrupted.

    All input is kept below --out, because brokers compact and delete records. After a crash it continues where it
    stopped.
    """
    from ottla.spark.pipeline.follow import follow as follow_on

    source = _source(given)
    options = replace(_run_options(Path(out), delta, source, given), lateness_ms=_duration_ms("--lateness", lateness))
    with _one_line():
        start = _session(master, Path(out), delta, confs)
        follow_on(start, partial(_origin, source), options, None if once else every, note)


@pipeline.command()
@click.option("--out", default="out", show_default=True, metavar="DIR", help="The directory of the tables.")
@click.option("--open", "is_opened", is_flag=True, help="Show the report in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def report(out: str, is_opened: bool, as_json: bool) -> None:
    """Rewrite the report from existing tables."""
    with _one_line():
        written = _report(Path(out), None)
    if as_json:
        click.echo((Path(out) / REPORT_JSON).read_text())
    else:
        click.echo(f"report {written.path}  {written.summary}")
    if is_opened:
        _open(written.path)


# --- the parts --------------------------------------------------------------------------------------------------------


def _source(given: Mapping[str, Given]) -> Source:
    files, topic = (given["from_log"], given["observations"]), given["topic"]
    is_cluster_given = is_given("bootstrap_server") or is_given("profile")
    if given["from_log"] and is_cluster_given:
        raise Failure("--bootstrap and --from-log exclude each other", "read the cluster, or its files")
    has_cluster = given["bootstrap_server"] or given["profile"] or not given["observations"]
    if given["from_log"] or not has_cluster:
        return Source(None, None, *files, topic)
    server = given["bootstrap_server"] or DEFAULT_SERVER
    target = chosen_target(server, given["command_config"], given["profile"], 0.0)
    return Source(target.bootstrap_server, target.command_config, *files, topic, target.options)


def _origin(source: Source) -> Origin | None:
    from ottla.spark.pipeline.origins import cluster_origin, directory_origin

    if source.from_log:
        return directory_origin(source.from_log, source.topic)
    if source.bootstrap:
        return cluster_origin(source.bootstrap, _properties(source.command_config), source.topic)
    return None


def _properties(path: Path | None) -> dict[str, str]:
    return {} if path is None else dict(properties_in(path))


def _run_options(out: Path, delta: bool, source: Source, given: Mapping[str, Given]) -> RunOptions:
    from ottla.health import ThresholdError, parse_thresholds
    from ottla.spark.pipeline.options import RunOptions

    try:
        thresholds = parse_thresholds(given["rules"])
    except ThresholdError as error:
        raise Failure(f"--rule: {error}") from None
    return RunOptions(
        out=out,
        format="delta" if delta else "parquet",
        since_ms=_since_ms(given["since"], time.time_ns() // 1_000_000),
        isolation=given["isolation"],
        share_window_ms=_duration_ms("--share-window", given["share_window"]) if given["share_window"] else None,
        thresholds=thresholds,
        observations=given["observations"],
        topic=given["topic"],
        command=_command(),
        connection=source.connection,
    )


def _duration_ms(option: str, text: str) -> int:
    from ottla.spark.options import duration_ms

    try:
        return duration_ms(text)
    except ValueError as error:
        raise Failure(f"{option}: {error}") from None


def _since_ms(text: str | None, now_ms: int) -> int | None:
    from datetime import UTC, datetime

    from ottla.spark.options import duration_ms

    if text is None:
        return None
    try:
        return now_ms - duration_ms(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(f"--since {text!r} is not a time", "write 1h, 7d, or 2026-11-15T02:30") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _command() -> str:
    import shlex
    import sys

    return shlex.join(["ottla", *sys.argv[1:]])


def _session(
    master: str, out: Path, delta: bool, confs: tuple[str, ...], *, is_small: bool = False
) -> Callable[[], SparkSession]:
    """A function that starts Spark. Problems of this machine are reported at once."""
    from ottla.spark.pipeline.session import check_machine, pipeline_session

    check_machine(delta=delta)
    _quiet()
    out.mkdir(parents=True, exist_ok=True)
    conf = dict(key_and_value(each, "--conf") for each in confs)
    return lambda: pipeline_session(master, log=out / SPARK_LOG, delta=delta, is_small=is_small, conf=conf)


def _quiet() -> None:
    """Readers log to Spark's log only, not between the lines of the steps."""
    import logging

    log = logging.getLogger("ottla.spark.progress")
    log.addHandler(logging.NullHandler())
    log.propagate = False


class Written(NamedTuple):
    """A report on disk."""

    path: Path
    summary: str


def _report(out: Path, spark: SparkSession | None) -> Written:
    from ottla.spark.pipeline.report_files import write_report

    facts = write_report(out, spark)
    return Written(out / REPORT, _summary(facts.get("findings", ())))


def _summary(findings: Iterable[Mapping[str, object]]) -> str:
    """`findings 2 critical (resolved), 3 warning`."""
    parts: list[str] = []
    for severity in ("critical", "warning", "notice"):
        some = [each for each in findings if each.get("severity") == severity]
        open_count = sum(each.get("state") == "open" for each in some)
        if some:
            rest = "" if open_count == len(some) else " (resolved)" if not open_count else f" ({open_count} open)"
            parts.append(f"{len(some)} {severity}{rest}")
    return f"findings {', '.join(parts) or 'none'}"


def _end(steps: Steps, found: dict[str, Any], written: Written, is_opened: bool, as_json: bool) -> None:
    steps.say(f"✓ {len(found['tables'])} tables")
    for each in found["notes"]:
        note(f"note: {each}")
    if as_json:
        print_json({**found, "report": str(written.path), "seconds": round(steps.seconds, 1)})
    else:
        click.echo(f"report {written.path}  {written.summary}")
    if is_opened:
        _open(written.path)


def _open(path: Path) -> None:
    import webbrowser

    webbrowser.open(path.resolve().as_uri())


class Steps:
    """Prints a line for each step on standard error, and one once in a while during a long step."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._said = threading.Event()
        self._is_over = False
        self._is_quiet = is_quiet()
        self._thread = threading.Thread(target=self._breathe, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._said.set()
        self._thread.join()

    def _breathe(self) -> None:
        while not self._is_over:
            if not (self._said.wait(BREATH_S) or self._is_quiet) and not self._is_over:
                note(f"  … {self.seconds:.0f} s")
            self._said.clear()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began_s

    def say(self, text: str) -> None:
        self._said.set()
        note(text)


@contextmanager
def _one_line() -> Iterator[None]:
    """Turn errors of Spark into a Failure of one line."""
    from ottla.client.errors import ClientError
    from ottla.spark.errors import OttlaSparkError, explain_error

    try:
        yield
    except ClientError as error:
        raise failure_of(error) from None
    except OttlaSparkError as error:
        raise _failure(str(error)) from None
    except KeyboardInterrupt:
        raise click.Abort from None
    except Exception as error:
        if not _is_sparks(error):
            raise
        raise _failure(explain_error(error), EXIT_REFUSED) from None


def _failure(text: str, code: int = 2) -> Failure:
    problem, *advice = ADVICE.split(text, 1)
    if any(each in text for each in NOT_ALLOWED):
        code = EXIT_NOT_ALLOWED
    return Failure(problem, *advice, code=code)


def _is_sparks(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark", "py4j"))
