"""All findings, open and resolved, and what each rule looks for."""

from __future__ import annotations

from collections import Counter

import msgspec

from ottla.console.addresses import href
from ottla.console.html.findings import SHAPES, finding_cards
from ottla.console.html.navigation import Choice, Text, every_one_of, filter_form
from ottla.console.html.parts import Column, badge, facts, link, more, nothing, numbers, section, table
from ottla.console.page import Content, NotFoundError, Page, PageContext, one_page
from ottla.draw.findings import TIERS
from ottla.draw.markup import Markup, element, joined
from ottla.health import RULES, Finding, Rule, Severity, State, Unseen
from ottla.health.coverage import NEEDS
from ottla.health.finding import by_urgency
from ottla.health.phrases import plural

KINDS = ("cluster", "topic", "group", "quorum", "lag", "configs", "log_dirs", "transactions")
FIELDS = (
    Choice("severity", "Severity", every_one_of(Severity)),
    Choice("state", "State", every_one_of(State)),
    Text("q", "Rule, subject or sentence contains"),
)


class RuleRow(msgspec.Struct, frozen=True):
    name: str
    severity: Severity
    condition: str
    open: int
    resolved: int
    unseen: str | None
    """Why it cannot be checked here."""


class Findings(msgspec.Struct, frozen=True):
    findings: list[Finding]
    by_severity: dict[str, int]
    """How many are open."""
    rules: list[RuleRow]


class RuleData(msgspec.Struct, frozen=True):
    name: str
    severity: Severity
    tier: str
    condition: str
    why: str
    thresholds: dict[str, float]
    """Those in force."""
    defaults: dict[str, float]
    needs: list[list[str]]
    """Of each list one kind of fact must be visible."""
    unseen: Unseen | None
    is_muted: bool
    findings: list[Finding]


async def load(context: PageContext) -> Content[Findings]:
    found = context.watcher.state.findings
    shown, next_name = one_page(_wanted(found, context), _place, context)
    data = Findings(
        findings=shown,
        by_severity={each.value: sum(one.is_open and one.severity is each for one in found) for each in Severity},
        rules=_rules(context),
    )
    return Content(data, "Findings", context.sources(*KINDS), context.hidden(*KINDS), live=("finding",), next=next_name)


def _wanted(found: list[Finding], context: PageContext) -> list[Finding]:
    severity = context.choice("severity", Severity)
    state = context.choice("state", State)
    text = context.query.get("q", "").casefold()
    return sorted(
        (
            each
            for each in found
            if severity in ("", each.severity)
            and state in ("", each.state)
            and text in f"{each.rule}\n{each.subject.name}\n{each.sentence}".casefold()
        ),
        key=_place,
    )


def _place(finding: Finding) -> str:
    """The order of urgency, as a text after which a list can go on."""
    is_over, severity, since_ms, rule, name, number = by_urgency(finding)
    return f"{is_over:d}{severity}{since_ms:015} {rule} {name} {number}"


def _rules(context: PageContext) -> list[RuleRow]:
    state = context.watcher.state
    unseen = {each.rule: each.why for each in state.evaluator.engine.unseen()}
    counts = Counter((each.rule, each.is_open) for each in state.findings)
    return [
        RuleRow(
            name, each.severity, each.condition, counts[name, True], counts[name, False],
            "muted" if name in state.evaluator.muted else unseen.get(name),
        )
        for name, each in RULES.items()
    ]  # fmt: skip


async def load_rule(context: PageContext) -> Content[RuleData]:
    name = context.names["rule"]
    one = RULES.get(name)
    if one is None:
        raise NotFoundError("rule", name, RULES, f"Rules: {', '.join(RULES)}.", section="findings")
    evaluator = context.watcher.state.evaluator
    found = sorted((each for each in context.watcher.state.findings if each.rule == name), key=_place)
    shown, next_name = one_page(found, _place, context)
    data = RuleData(
        name=name,
        severity=one.severity,
        tier=one.tier.value,
        condition=one.condition,
        why=one.why,
        thresholds=dict(evaluator.engine.limits(name)),
        defaults=dict(one.limits),
        needs=[list(either) for either in one.needs],
        unseen=next((each for each in evaluator.engine.unseen() if each.rule == name), None),
        is_muted=name in evaluator.muted,
        findings=shown,
    )
    return Content(data, name, context.sources(*_kinds(one)), live=("finding",), next=next_name)


def _kinds(one: Rule) -> list[str]:
    """The kinds of samples that a rule is checked after."""
    return [each for each in one.on if each in KINDS]


# --- the pages --------------------------------------------------------------------------------------------------------


def render(content: Content[Findings], context: PageContext) -> Markup:
    data, query = content.data, dict(context.query)
    found = (
        finding_cards(data.findings, context.now_ms)
        if data.findings
        else nothing("No findings match." if query else "No problems found.")
    )
    return joined(
        [
            element("p", f"Open: {_counts(data)}.", class_="lead"),
            filter_form("/findings", FIELDS, query),
            section("Findings", found, more(content.next, "/findings", query), anchor="found"),
            _rule_tables(data.rules),
        ]
    )


def _counts(data: Findings) -> str:
    """`1 critical, 2 warnings, no notices`."""
    words = {Severity.CRITICAL: "critical", Severity.WARNING: "warnings", Severity.NOTICE: "notices"}
    found = ((data.by_severity[each.value], each.value, many) for each, many in words.items())
    return ", ".join(f"{count or 'no'} {one if count == 1 else many}" for count, one, many in found)


def _rule_tables(rules: list[RuleRow]) -> Markup:
    checked = [each for each in rules if each.unseen is None]
    unseen = [each for each in rules if each.unseen is not None]
    rule = Column("rule", is_short=True)
    columns = (rule, Column("severity"), Column("condition"), *numbers("open", "resolved"))
    rows = [(_rule_link(each.name), _severity(each.severity), each.condition, each.open, each.resolved)
            for each in checked]  # fmt: skip
    why_columns = (rule, Column("severity"), Column("why it cannot be checked"))
    why = [(_rule_link(each.name), _severity(each.severity), each.unseen) for each in unseen]
    return section(
        "Rules",
        table(f"{plural(len(checked), 'rule')} that can be checked", columns, rows),
        table(f"{plural(len(unseen), 'rule')} that cannot be checked", why_columns, why) if why else "",
    )


def _rule_link(name: str) -> Markup:
    return link(name, "findings", name)


def _severity(severity: Severity) -> Markup:
    return badge(f"{SHAPES[severity]} {severity.value}", f"light {severity.value}")


def render_rule(content: Content[RuleData], context: PageContext) -> Markup:
    data = content.data
    return joined(
        [
            section("The rule", _about(data)),
            section("Thresholds", _thresholds(data)),
            section(
                "Findings", _instances(data, context), more(content.next, href("findings", data.name), context.query)
            ),
        ]
    )


def _about(data: RuleData) -> Markup:
    pairs = {
        "severity": _severity(data.severity),
        "opens when": data.condition,
        "why it matters": data.why,
        "source": TIERS[data.tier],
        "needs": "; ".join(" or ".join(map(_need, either)) for either in data.needs) or "nothing",
    }
    if data.is_muted:
        pairs["cannot be checked"] = "muted"
    elif data.unseen is not None:
        pairs["cannot be checked"] = data.unseen.why
    return facts(pairs)


def _need(what: str) -> str:
    return NEEDS.get(what, what).removeprefix("needs ")


def _thresholds(data: RuleData) -> Markup:
    if not data.thresholds:
        return nothing("This rule has no thresholds.")
    rows = [(key, f"{value:g}", f"{data.defaults[key]:g}") for key, value in data.thresholds.items()]
    columns = (Column("threshold"), Column("current", is_number=True), Column("default", is_number=True))
    example = f"--rule {data.name}.{rows[0][0]}={rows[0][1]}"
    return joined(
        [table("Thresholds of the rule", columns, rows), nothing("To change one, start the console with:", example)]
    )


def _instances(data: RuleData, context: PageContext) -> Markup:
    if not data.findings:
        return nothing("This rule cannot be checked here." if data.unseen else "No findings.")
    return joined(finding_cards([each], context.now_ms) for each in data.findings)


PAGE = Page(
    "findings", "/findings", Findings, load, render,
    query=frozenset({"severity", "state", "q", "after", "limit"}), section="overview",
)  # fmt: skip
RULE_PAGE = Page(
    "rule", "/findings/{rule}", RuleData, load_rule, render_rule,
    query=frozenset({"after", "limit"}), section="overview",
)  # fmt: skip
