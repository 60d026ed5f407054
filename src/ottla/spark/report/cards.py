"""The cards of findings: the sentence, the subject, the times, the evidence, why it matters, and next steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.draw.forms import UNKNOWN, ago, identity, moment, number, percent, span
from ottla.draw.markup import NOTHING, Markup, element, escaped, joined
from ottla.health.phrases import offsets, plural
from ottla.spark.report.html_table import fields, listing

__all__ = ["SIGNS", "badge", "cards"]

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
TIERS: Final = {
    "A": "what the cluster answers to anybody",
    "S": "samples over time",
    "R": "records of internal topics",
    "O": "metrics of ottla’s brokers",
}
FOLDED: Final = 3
"""Up to so many findings of one rule have cards of their own; if there are more, one card lists all but the first."""
LISTED: Final = 6
EPOCH_MS: Final = 10**12
"""Numbers above this whose names end in _ms are times, not durations."""

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
        "header", badge(finding["severity"]), badge(*_state(finding)), element("h3", _sentence(finding["sentence"]))
    )
    parts = [
        head,
        element("p", _when(finding), class_="when"),
        _evidence(finding["evidence"]),
        element("p", element("b", "Why it matters. "), finding["why"]) if finding["why"] else NOTHING,
        _next(finding["next"]),
        _see(finding),
        _alike(finding, alike),
    ]
    kind = finding["severity"] if finding["state"] == "open" else f"{finding['severity']} over"
    return element("article", *parts, class_=f"finding {kind}", id=anchor(finding))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _state(finding: Finding) -> tuple[str, str]:
    return ("open", "still so at the end") if finding["state"] == "open" else ("ok", "over")


def _when(finding: Finding) -> Markup:
    until = finding["until_ms"] if finding["state"] != "open" else None
    times = f", {finding['times']} times" if finding["times"] > 1 else ""
    return joined([span(finding["since_ms"], until), times, " · rule ", element("code", finding["rule"]), " · seen in ",
                   TIERS.get(finding["tier"], "the data")])  # fmt: skip


def _evidence(evidence: Mapping[str, Any]) -> Markup:
    items = [
        element("div", element("dt", _label(name)), element("dd", _value(name, value)))
        for name, value in evidence.items()
    ]
    return element("dl", *items, class_="evidence") if items else NOTHING


def _label(name: str) -> str:
    for ending in ("_ms", "_percent", "_bytes"):
        name = name.removesuffix(ending)
    return name.replace("_", " ")


def _value(name: str, value: Any) -> Markup:
    match value:
        case None:
            return UNKNOWN
        case bool():
            return escaped("yes" if value else "no")
        case int() | float():
            return _number(name, value)
        case list():
            return _list(value)
        case dict():
            return joined([f"{key}: {each}" for key, each in list(value.items())[:LISTED]], ", ")
        case _:
            return identity(value)


def _number(name: str, value: float) -> Markup:
    if name.endswith("_ms"):
        return moment(round(value)) if value > EPOCH_MS else ago(value)
    if name.endswith("percent"):
        return percent(value)
    plain = any(word in name for word in ("epoch", "offset", "leader", "port", "node", "watermark"))
    return escaped(str(value)) if plain else number(value)


def _list(values: Sequence[Any]) -> Markup:
    if not values:
        return escaped("none")
    if all(isinstance(each, list) and len(each) == 3 for each in values):
        return escaped(_records(values))
    rest = len(values) - LISTED
    return escaped(", ".join(map(str, values[:LISTED])) + (f" and {rest:,} more" if rest > 0 else ""))


def _records(values: Sequence[Sequence[Any]]) -> str:
    """Records as `orders-0: 4, 7; orders-1: 9`."""
    places: dict[str, list[int]] = {}
    for topic, partition, offset in values:
        places.setdefault(f"{topic}-{partition}", []).append(offset)
    shown = [f"{where}: {offsets(found)}" for where, found in list(places.items())[:LISTED]]
    rest = len(places) - LISTED
    return "; ".join(shown) + (f" and {rest:,} more partitions" if rest > 0 else "")


def _next(steps: Sequence[Mapping[str, Any]]) -> Markup:
    items = [element("li", step["text"], _command(step)) for step in steps]
    return (
        element("div", element("b", "What to check next"), element("ol", *items), class_="next") if items else NOTHING
    )


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
        f"The same of others: {finding['rule']}",
        table,
        columns,
        "",
    )
    return element("details", element("summary", f"The same of {plural(len(alike), 'other')}"), anchors, told)
