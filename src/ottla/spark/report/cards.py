"""The cards of findings: the sentence, the subject, the times, the evidence, why it matters, and next steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.draw.findings import TIERS, evidence
from ottla.draw.forms import span
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.phrases import plural, precision
from ottla.spark.report.html_table import fields, listing, permalink

__all__ = ["SIGNS", "anchor", "badge", "cards"]

SIGNS: Final = {
    "critical": "▲",
    "warning": "●",
    "notice": "○",
    "ok": "✓",
    "recovered": "◐",
    "none": "–",
    "unseen": "–",
    "open": "▸",
}
FOLDED: Final = 3
"""Up to so many findings of one rule have cards of their own; if there are more, one card lists all but the first."""

Finding = Mapping[str, Any]


def badge(kind: str, words: str | None = None) -> Markup:
    """A severity, shown by shape, word and colour."""
    return element("span", f"{SIGNS[kind]} {words or kind}", class_=f"badge light {kind}")


def cards(findings: Sequence[Finding]) -> Markup:
    """A card for each finding, or one card for a rule with many subjects."""
    by_rule: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault((finding["rule"], finding["state"], finding["severity"]), []).append(finding)
    found = []
    for alike in by_rule.values():
        if len(alike) > FOLDED:
            found.append(_card(alike[0], alike[1:]))
        else:
            found += [_card(each, ()) for each in alike]
    return joined(found)


def anchor(finding: Finding) -> str:
    kept = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "-_") else f".{ord(letter):x}"
        for letter in finding["id"]
    )
    return f"finding-{kept}"


def _card(finding: Finding, alike: Sequence[Finding]) -> Markup:
    head = element(
        "header",
        badge(finding["severity"]),
        badge(*_state(finding)),
        permalink(anchor(finding)),
        element("h3", _sentence(finding["sentence"])),
    )
    parts = [
        head,
        element("p", _when(finding), class_="when"),
        evidence(finding["evidence"]),
        element("p", element("b", "Why it matters: "), finding["why"]) if finding["why"] else NOTHING,
        _next(finding["next"]),
        _see(finding),
        _alike(finding, alike),
    ]
    kind = finding["severity"] if finding["state"] == "open" else f"{finding['severity']} over"
    return element("article", *parts, class_=f"finding {kind}", id=anchor(finding))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _state(finding: Finding) -> tuple[str, str]:
    return ("open", "Ongoing") if finding["state"] == "open" else ("ok", "Resolved")


def _when(finding: Finding) -> Markup:
    until = finding["until_ms"] if finding["state"] != "open" else None
    times = f", {finding['times']} times" if finding["times"] > 1 else ""
    times = f"{precision(finding['precision_ms'])}{times}"
    return joined([span(finding["since_ms"], until), times, " · rule ", element("code", finding["rule"]), " · Source: ",
                   TIERS.get(finding["tier"], "unknown")])  # fmt: skip


def _next(steps: Sequence[Mapping[str, Any]]) -> Markup:
    items = [element("li", step["text"], _command(step)) for step in steps]
    return element("div", element("b", "Next steps"), element("ol", *items), class_="next") if items else NOTHING


def _command(step: Mapping[str, Any]) -> Markup:
    return joined([": ", element("code", step["command"])]) if step.get("command") else NOTHING


def _see(finding: Finding) -> Markup:
    links = [element("a", each["text"], href=each["href"]) for each in finding["see"]]
    return element("p", element("b", "See "), joined(links, " · "), class_="see") if links else NOTHING


def _alike(finding: Finding, alike: Sequence[Finding]) -> Markup:
    """The other findings of the same rule."""
    if not alike:
        return NOTHING
    anchors = joined(element("span", id=anchor(each)) for each in alike[:2000])
    table = {"rows": [dict(each) for each in alike], "total": len(alike), "order": "oldest first"}
    columns = fields("sentence:text:what", "since_ms:time:since", "until_ms:time:until", "times:number")
    told = listing(
        f"alike-{finding['rule']}-{finding['state']}-{finding['severity']}",
        f"Other findings: {finding['rule']}",
        table,
        columns,
        "",
    )
    return element("details", element("summary", plural(len(alike), "more like this", "more like this")), anchors, told)
