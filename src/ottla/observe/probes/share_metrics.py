"""Probes that only ottla brokers answer: share-group counters on their metrics pages, and what is in flight."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ottla.client.inspect_listener import inspect_addresses, read_json, read_page, share_url
from ottla.health.facts import Coverage, ShareMetrics, ShareWindow
from ottla.observe.memory import ProbeContext
from ottla.observe.probe_result import ProbeResult, not_visible, probe_error, probe_result

__all__ = ["metrics_facts", "probe_share_metrics", "probe_share_windows", "window_facts"]

TIMEOUT_S: Final = 3.0
PREFIX: Final = "ottla_share_"
_LINE: Final = re.compile(r"([A-Za-z_:]\w*)(?:\{(.*)\})?\s+(\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES: Final = {"n": "\n"}
COUNTERS: Final = {
    "records_delivered_total": "delivered",
    "records_redelivered_total": "redelivered",
    "records_acknowledged_total:accept": "accepted",
    "records_acknowledged_total:release": "released",
    "records_acknowledged_total:reject": "rejected",
    "lock_expiries_total": "lock_expiries",
    "lock_seconds_count": "lock_count",
}


async def probe_share_metrics(ctx: ProbeContext) -> list[ProbeResult]:
    """A page does not name its node, so its number in the list stands for the node."""
    results: list[ProbeResult] = []
    if not ctx.metrics:
        return [not_visible("share_metrics", "needs the metrics of an ottla broker: --metrics URL")]
    for number, url in enumerate(ctx.metrics):
        try:
            facts = metrics_facts(await read_page(ctx.client, url, TIMEOUT_S), number)
        except OSError as error:
            results.append(probe_error("share_metrics", url, f"{type(error).__name__}: {error}"))
            continue
        results.append(probe_result("share_metrics", Coverage(what="share_metrics", visible=True)))
        known = ctx.memory.counted.get(url)
        for each in facts:
            if known is not None and each.group not in known:  # it had counted nothing until the last probe
                results.append(probe_result(f"{each.group}@{number}", ShareMetrics(group=each.group, node=number)))
            results.append(probe_result(f"{each.group}@{number}", each))
        ctx.memory.counted[url] = {each.group for each in facts}
    return results


def metrics_facts(page: str, number: int) -> list[ShareMetrics]:
    """The counters of each share group on a page in Prometheus' form."""
    groups: dict[str, dict[str, int]] = {}
    for name, labels, value in _lines(page):
        if not name.startswith(PREFIX) or "group" not in labels:
            continue
        counters = groups.setdefault(labels["group"], {})
        kind = f":{labels['type']}" if "type" in labels else ""
        field = COUNTERS.get(name.removeprefix(PREFIX) + kind)
        if field is not None:
            counters[field] = round(value)
        elif name == f"{PREFIX}lock_seconds_sum":
            counters["lock_ms"] = round(value * 1000)
    return [ShareMetrics(group=group, node=number, **counters) for group, counters in groups.items() if counters]


def _lines(page: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for line in page.splitlines():
        matched = _LINE.fullmatch(line.strip())
        if matched is None:
            continue  # a comment, or nothing that we know
        labels = {key: _unescaped(value) for key, value in _LABEL.findall(matched[2] or "")}
        try:
            yield matched[1], labels, float(matched[3])
        except ValueError:
            continue


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text)


async def probe_share_windows(ctx: ProbeContext) -> list[ProbeResult]:
    addresses = await inspect_addresses(ctx.client)
    if not addresses:
        return [not_visible("share_window", "needs an ottla broker with --inspect-port")]
    results = [probe_result("share_window", Coverage(what="share_window", visible=True))]
    groups = [each.group_id for each in ctx.memory.groups if each.type == "share"]
    for address in addresses:
        for group in groups:
            try:
                answer = await read_json(ctx.client, share_url(address, group))
            except OSError as error:
                results.append(probe_error("share_window", group, f"{type(error).__name__}: {error}"))
            else:
                results += [
                    probe_result(f"{each.group}:{each.topic}-{each.partition}", each) for each in window_facts(answer)
                ]
    return results


def window_facts(answer: Mapping[str, Any]) -> Iterable[ShareWindow]:
    for each in answer.get("partitions", ()):
        if each["topic"] is None or each["start_offset"] < 0:
            continue
        at_start = [
            some for some in each["ranges"] if some["first_offset"] <= each["start_offset"] <= some["last_offset"]
        ]
        yield ShareWindow(
            group=answer["group"],
            topic=each["topic"],
            partition=each["partition"],
            start=each["start_offset"],
            end=each["end_offset"],
            first_count=at_start[0]["delivery_count"] if at_start else None,
        )
