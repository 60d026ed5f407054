"""Evaluates the health rules over the demo's samples, with Spark or without.

With Spark it runs `ottla pipeline run`, as a user would. Without Spark, the same rules check the same samples: there
are findings, but no tables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ottla import __version__
from ottla.cli.demo.children import Children
from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.journal import now_ms
from ottla.cli.demo.narrator import Narrator
from ottla.cli.demo.nodes import Nodes
from ottla.cli.doctor import java
from ottla.client import EARLIEST, LATEST, Client, fetch
from ottla.health.samples import OBSERVATIONS, Sample
from ottla.observe import read_topic
from ottla.spark.jobs.rule_evaluation import RuleEvaluator, finding_row
from ottla.spark.report import facts_of_findings, page
from ottla.wire import uuid_text
from ottla.wire.keyed import SHARE_TOPIC, decode_keyed

__all__ = ["PipelineFailed", "why_no_spark", "with_spark", "without_spark"]

Row = tuple[int, int, int, str, str | None, bytes | None, bytes | None]
"""Time, rank, number, kind, error, body and key: records come before samples of the same moment."""


class PipelineFailed(Exception):
    """The pipeline failed; the text has the last lines of its output."""


def why_no_spark() -> str | None:
    """The reason why Spark cannot run here, or None."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        return 'pyspark is not installed (pip install "ottla[spark]")'
    found = java()
    return None if found.state == "ok" else f"Spark needs Java 17 or newer: {found.found}"


async def with_spark(
    children: Children, data_dir: Path, directory: DemoDirectory, narrator: Narrator
) -> dict[str, Any]:
    """Run the pipeline over the data directory; returns the facts of its report."""
    command = [
        sys.executable,
        "-m",
        "ottla",
        "pipeline",
        "run",
        "--from-log",
        str(data_dir),
        "--out",
        str(directory.path),
    ]
    child = await children.start("pipeline", command)
    async with narrator.doing(lambda: child.tail(1) or "Spark is starting and reading the files of a node"):
        code = await child.wait()
    if code or not directory.report_json.exists():
        raise PipelineFailed(f"ottla pipeline run exited with code {code}; its output:\n{child.tail()}")
    facts: dict[str, Any] = json.loads(directory.report_json.read_text(encoding="utf-8"))
    return facts


async def without_spark(nodes: Nodes, directory: DemoDirectory) -> dict[str, Any]:
    """Run the rules over samples and the state of share groups; writes and returns the findings."""
    async with Client(nodes.bootstrap, client_id="demo") as client:
        samples = await read_topic(client, OBSERVATIONS)
        states = [row async for row in _share_states(client)]
        names = {uuid_text(topic.topic_id): name for name, topic in (await client.all_topics()).items()}
    facts = rule_results(samples, states, names)
    directory.report_json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    directory.report_html.write_text(page(facts), encoding="utf-8")
    return facts


class StateRecord(NamedTuple):
    """A record of `__share_group_state`."""

    timestamp_ms: int
    offset: int
    kind: str
    key: bytes
    value: bytes


async def _share_states(client: Client) -> AsyncIterator[StateRecord]:
    partitions = (await client.topics([SHARE_TOPIC]))[SHARE_TOPIC].partitions
    async for record in fetch(client, {(SHARE_TOPIC, number): EARLIEST for number in partitions}, until=LATEST):
        if record.key is not None and record.value is not None:
            kind = type(decode_keyed(SHARE_TOPIC, record.key, None).key).__name__.removesuffix("Key")
            yield StateRecord(record.timestamp_ms, record.offset, kind, record.key, record.value)


def rule_results(
    samples: Sequence[Sample], states: Sequence[StateRecord] = (), topic_names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The facts of a report with only findings.

    Brokers delete old records of share groups, and an observer misses the first ones, so both sources are used.
    """
    evaluator = RuleEvaluator({}, topic_names or {})
    times = [each.ts for each in samples]
    rows: list[Row] = [(each.timestamp_ms, 0, each.offset, each.kind, None, each.value, each.key) for each in states]
    rows += map(_sample_row, samples)
    for ts, _, number, kind, error, body, key in sorted(rows, key=lambda row: row[:3]):
        evaluator.take(ts, kind, error, body, key, number)
    cluster = samples[-1].cluster if samples else ""
    run = {
        "run_id": "without-spark",
        "versions": {"ottla": __version__},
        "clusters": [cluster],
        "range": {"from_ms": min(times, default=None), "to_ms": max(times, default=None)},
        "inputs": [{"name": "samples", "rows": len(samples)}, {"name": "records", "rows": len(states)}],
        "unseen": [{"rule": each.rule, "missing": each.needs, "why": each.why} for each in evaluator.unseen()],
        "notes": ["no tables: the rules were evaluated without Spark"],
    }
    return facts_of_findings((finding_row(cluster, each) for each in evaluator.findings()), run, now_ms())


def _sample_row(sample: Sample) -> Row:
    """A sample of a record has the record's time, so that it is in order among the records."""
    body = None if sample.body is None else json.dumps(sample.body).encode()
    if sample.kind != "share_state" or sample.body is None:
        return sample.ts, 1, sample.seq, sample.kind, sample.error, body, None
    written_ms, offset = sample.body.get("written_ms") or sample.ts, sample.body.get("offset", -1)
    return written_ms, 0, offset, sample.kind, None, body, None
