"""Findings as cards: the sentence, since when, the evidence, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from ottla.console.html.parts import absent, badge, command, link
from ottla.draw.findings import TIERS, evidence
from ottla.draw.forms import moment
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import Finding, Severity
from ottla.health.phrases import duration, plural, precision

__all__ = ["finding_cards", "finding_line", "of_subject"]

SHAPES: Final = {Severity.CRITICAL: "▲", Severity.WARNING: "●", Severity.NOTICE: "○"}
RESOLVED: Final = "✓"


def finding_cards(findings: Iterable[Finding], now_ms: int) -> Markup:
    """Cards in the given order; the same rule on many subjects is one card with the others folded in."""
    cards = [_card(list(alike), now_ms) for _, alike in groupby(findings, key=_rule_and_state)]
    return joined(cards)


def _rule_and_state(finding: Finding) -> tuple[str, str, str]:
    return finding.severity.value, finding.rule, finding.state.value


def _card(alike: Sequence[Finding], now_ms: int) -> Markup:
    first, *others = alike
    tone = first.severity.value if first.is_open else "ok"
    header = element(
        "header",
        badge(f"{SHAPES[first.severity] if first.is_open else RESOLVED} {first.severity.value}", f"light {tone}"),
        link(first.rule, "findings", first.rule),
        element("h3", first.sentence),
    )
    return element(
        "article",
        header,
        element("p", _when(first, now_ms), f" · Source: {TIERS[first.tier]}", class_="when"),
        evidence(first.evidence),
        _next(first),
        _others(others, now_ms),
        class_=f"finding {tone}{'' if first.is_open else ' over'}",
        id=f"finding-{first.id}",
    )


def _when(finding: Finding, now_ms: int) -> Markup:
    times = f", {finding.times} times" if finding.times > 1 else ""
    exact, until = precision(finding.precision_ms), finding.until_ms
    if finding.is_open:
        return joined(["since ", moment(finding.since_ms), f"{exact} ({duration(now_ms - finding.since_ms)}){times}"])
    lasted = f", lasted {duration(until - finding.since_ms)}" if isinstance(until, int) else ""
    return joined(["resolved; began at ", moment(finding.since_ms), f"{exact}{lasted}{times}"])


def _next(finding: Finding) -> Markup:
    steps = [element("li", _step(each.text, each.href), _command(each.command)) for each in finding.next]
    return element("ol", *steps, class_="next") if steps else NOTHING


def _step(text: str, target: Any) -> Markup | str:  # noqa: ANN401 - a text, or unset
    return element("a", text, href=target) if isinstance(target, str) else text


def _command(text: Any) -> Markup:  # noqa: ANN401 - a text, or unset
    return joined([": ", command(text)]) if isinstance(text, str) else NOTHING


def _others(others: Sequence[Finding], now_ms: int) -> Markup:
    if not others:
        return NOTHING
    items = [element("li", each.sentence, " ", element("small", _when(each, now_ms))) for each in others]
    return element(
        "details", element("summary", plural(len(others), "more like this", "more like this")), element("ul", *items)
    )


def finding_line(findings: Iterable[Finding]) -> Markup:
    """The open findings of one subject in a cell of a table."""
    found = [
        element("span", _shape(each), " ", link(each.rule, "findings", each.rule), class_="short") for each in findings
    ]
    return joined(found, ", ") if found else absent("no open finding")


def _shape(finding: Finding) -> Markup:
    return element("span", SHAPES[finding.severity], class_=f"shape {finding.severity.value}")


def of_subject(findings: Iterable[Finding], kind: str) -> Mapping[str, list[Finding]]:
    """The open findings of each subject of a kind."""
    found: dict[str, list[Finding]] = {}
    for each in findings:
        if each.is_open and each.subject.kind == kind:
            found.setdefault(each.subject.name, []).append(each)
    return found
