"""Prints findings: one line when a finding opens or closes, and the whole state of a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from ottla.cli.cluster import with_options
from ottla.cli.colour import wanted
from ottla.cli.failure import Failure, nearest
from ottla.cli.printable import printable

if TYPE_CHECKING:
    from ottla.health import Change, Finding
    from ottla.health.evaluator import SampleEvaluator

T = TypeVar("T")

SEVERITIES: Final = ("critical", "warning", "notice")
MARKS: Final = {"critical": "▲", "warning": "△", "notice": "·"}
COLOURS: Final = {"critical": "red", "warning": "yellow", "notice": "cyan"}
RESOLVED: Final = "✓"
SECOND_MS: Final = 1000


class Rules(NamedTuple):
    """How the rules are applied."""

    thresholds: Mapping[str, float]
    muted: tuple[str, ...]


def rule_options(command: Callable[..., T]) -> Callable[..., T]:
    """The options of every command that applies the rules; the command gets them as one `rules`."""

    @wraps(command)
    def gathered(*, rule_thresholds: tuple[str, ...], muted: tuple[str, ...], **others: object) -> T:
        return command(rules=_rules(rule_thresholds, muted), **others)

    return with_options(gathered, *_RULE_OPTIONS)


_RULE_OPTIONS = (
    click.option(
        "--rule",
        "rule_thresholds",
        multiple=True,
        metavar="NAME.KEY=VALUE",
        help="Change a threshold of a rule, such as lag-growing.lag=5000; repeatable.",
    ),
    click.option("--mute", "muted", multiple=True, metavar="RULE", help="Skip a rule; repeatable."),
)
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    help="Exit with code 1 if there is a finding of this severity or worse.",
)


def _rules(texts: Iterable[str], muted: tuple[str, ...]) -> Rules:
    from ottla.health import RULES, ThresholdError, parse_thresholds

    for name in muted:
        if name not in RULES:
            raise Failure(f'unknown rule "{name}"', nearest(name, RULES) or f"known: {', '.join(RULES)}")
    try:
        return Rules(parse_thresholds(texts), muted)
    except ThresholdError as error:
        raise Failure(f"--rule: {error}") from None


def evaluator_of(
    rules: Rules,
    *,
    longest_hold_s: float | None = None,
    intervals_s: Mapping[str, float] | None = None,
    connection: str = "",
) -> SampleEvaluator:
    from ottla.health.evaluator import SampleEvaluator

    return SampleEvaluator(
        rules.thresholds, rules.muted, longest_hold_s=longest_hold_s, intervals_s=intervals_s, connection=connection
    )


def has_failed(evaluator: SampleEvaluator, fail_on: str | None, *, ever: bool) -> bool:
    """Whether there is a finding, or was at any time, that --fail-on speaks of."""
    from ottla.health import Severity

    return fail_on is not None and evaluator.has_finding(Severity(fail_on), ever=ever)


# --- lines ------------------------------------------------------------------------------------------------------------


def print_change(change: Change) -> None:
    """`02:58:10 ▲ redelivery-storm risk-checks: ...`; only opened and resolved findings get a line."""
    kind = change.what.value
    if kind == "changed":
        return
    finding = change.finding
    what = f"{finding.rule} {_subject(finding)}: {finding.sentence}"
    if kind == "resolved":
        _say(f"{_clock(change.at_ms)} {RESOLVED} {what} (resolved{_lasted(finding)})", "green")
    else:
        _say(f"{_clock(change.at_ms)} {MARKS[finding.severity]} {what}", COLOURS[finding.severity])


def _say(text: str, colour: str) -> None:
    click.secho(printable(text), fg=colour, color=wanted())


def change_json(change: Change) -> str:
    import msgspec

    return msgspec.json.encode({"at_ms": change.at_ms, "what": change.what, "finding": change.finding}).decode()


def _lasted(finding: Finding) -> str:
    from ottla.health.phrases import duration

    until = finding.until_ms
    return f" after {duration(until - finding.since_ms)}" if isinstance(until, int) and until > finding.since_ms else ""


def _subject(finding: Finding) -> str:
    partition = finding.subject.partition
    return f"{finding.subject.name}-{partition}" if isinstance(partition, int) else finding.subject.name


def _clock(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / SECOND_MS, UTC):%H:%M:%S}"


# --- the whole state --------------------------------------------------------------------------------------------------


def state_json(evaluator: SampleEvaluator, rules: Rules) -> dict[str, Any]:
    import msgspec

    return {
        "cluster": evaluator.cluster,
        "from_ms": evaluator.first_ms,
        "to_ms": evaluator.last_ms,
        "rows": msgspec.to_builtins(evaluator.engine.findings()),
        "healthy": evaluator.healthy,
        "muted": sorted(rules.muted),
        "unseen": msgspec.to_builtins(evaluator.engine.unseen()),
        "hidden": [{"what": each.what, "why": each.why} for each in evaluator.hidden],
    }


def print_state_json(evaluator: SampleEvaluator, rules: Rules, *, in_a_line: bool = False) -> None:
    click.echo(json.dumps(state_json(evaluator, rules), indent=None if in_a_line else 2, ensure_ascii=False))


def print_state(evaluator: SampleEvaluator, rules: Rules, note: str = "") -> None:
    """Print findings, the worst first; then what is healthy, and what is not visible."""
    findings = evaluator.engine.findings()
    click.echo(_headline(evaluator, findings))
    for each in findings:
        _print_finding(each)
    names = evaluator.healthy
    if names:
        click.echo()
        _print_wrapped(f"{RESOLVED} healthy ({len(names)} rules): ", ", ".join(names))
    if note:
        click.echo(f"  {note}")
    _print_unseen(evaluator)


def _headline(evaluator: SampleEvaluator, findings: list[Finding]) -> str:
    counts = [
        f"{sum(each.is_open and each.severity.value == severity for each in findings)} {severity}"
        for severity in SEVERITIES
    ]
    resolved = sum(not each.is_open for each in findings)
    span = f"{_clock(evaluator.first_ms)}–{_clock(evaluator.last_ms)} UTC" if evaluator.last_ms else "no samples"
    return f"cluster {evaluator.cluster or 'without id'}: {', '.join(counts)}, {resolved} resolved  ({span})"


def _print_finding(finding: Finding) -> None:
    from ottla.health.phrases import precision

    mark = MARKS[finding.severity] if finding.is_open else RESOLVED
    colour = COLOURS[finding.severity] if finding.is_open else "green"
    times = f", {finding.times} times" if finding.times > 1 else ""
    since = f"since {_clock(finding.since_ms)}{precision(finding.precision_ms)}"
    state = f"{since}{times}" if finding.is_open else f"resolved{_lasted(finding)}{times}"
    click.echo()
    _say(f"{mark} {finding.severity.value} {finding.rule}: {finding.sentence} ({state})", colour)
    for step in finding.next:
        command = f": {step.command}" if isinstance(step.command, str) else ""
        click.echo(printable(f"  → {step.text}{command}"))


def _print_unseen(evaluator: SampleEvaluator) -> None:
    unseen = evaluator.engine.unseen()
    given = {each.why for each in unseen}
    others = [(each.what, each.why or "") for each in evaluator.hidden if each.why not in given]
    if not unseen and not others:
        return
    click.echo()
    click.echo("not visible here:")
    reasons: dict[str, list[str]] = {}
    for each in unseen:
        reasons.setdefault(each.why, []).append(each.rule)
    for why, names in reasons.items():
        click.echo(f"  {', '.join(names)}: {why}")
    for what, why in others:
        click.echo(printable(f"  {what}: {why}"))


def _print_wrapped(first: str, text: str) -> None:
    from shutil import get_terminal_size
    from textwrap import fill

    width = max(40, get_terminal_size((100, 24)).columns)
    click.echo(fill(first + text, width=width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))
