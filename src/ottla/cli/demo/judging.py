"""Finding out what happened, from what the broker wrote and what the observer saw: with Spark, or without.

With Spark it is `ottla pipeline run`, as anybody would run it. Without, the same rules look at the same samples, and
there are findings, but no tables.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from typing import Any, Final

import msgspec

from ottla import __version__
from ottla.cli.demo.children import Children
from ottla.cli.demo.ground import Ground
from ottla.cli.demo.journal import now_ms
from ottla.cli.demo.narrator import Narrator
from ottla.cli.demo.node import Node
from ottla.cli.doctor import java
from ottla.client import Client
from ottla.health import Engine, Finding
from ottla.health.samples import OBSERVATIONS, Sample, fact_in
from ottla.observe import read_topic

__all__ = ["NotJudged", "why_no_spark", "with_spark", "without_spark"]

PIPELINE_S: Final = 600.0


class NotJudged(Exception):
    """The pipeline failed; the text has the end of what it said."""


def why_no_spark() -> str | None:
    """What Spark lacks here, or None if it can run."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        return 'pyspark is not installed (pip install "ottla[spark]")'
    found = java()
    return None if found.state == "ok" else f"Spark needs Java 17 or newer: {found.found}"


async def with_spark(children: Children, ground: Ground, narrator: Narrator) -> dict[str, Any]:
    """Run the pipeline over the data directory; gives the facts of its report."""
    command = [
        sys.executable,
        "-m",
        "ottla",
        "pipeline",
        "run",
        "--from-log",
        str(ground.data),
        "--out",
        str(ground.path),
    ]
    child = await children.start("pipeline", command)
    async with narrator.doing(lambda: child.tail(1) or "Spark starts, and reads the broker's files"):
        code = await child.wait()
    if code or not ground.report_json.exists():
        raise NotJudged(f"ottla pipeline run ended with exit code {code}; it said:\n{child.tail()}")
    facts: dict[str, Any] = json.loads(ground.report_json.read_text(encoding="utf-8"))
    return facts


async def without_spark(node: Node, ground: Ground) -> dict[str, Any]:
    """Let the rules look at the samples, and write what they find."""
    async with Client(node.bootstrap, client_id="demo") as client:
        samples = await read_topic(client, OBSERVATIONS)
    facts = judged(samples)
    ground.report_json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def judged(samples: list[Sample]) -> dict[str, Any]:
    """The facts of a report that has findings alone."""
    engine = Engine()
    for sample in samples:
        fact = fact_in(sample)
        if fact is not None:
            engine.take(sample.ts, fact)
    end_ms = samples[-1].ts if samples else 0
    engine.advance(end_ms)
    return {
        "v": 1,
        "generated": now_ms(),
        "range": {"from_ms": samples[0].ts if samples else None, "to_ms": end_ms},
        "clusters": sorted({sample.cluster for sample in samples}),
        "findings": [_as_dict(each) for each in engine.findings()],
        "unseen": [msgspec.to_builtins(each) for each in engine.unseen()],
        "run": {"versions": {"ottla": __version__}, "notes": ["no tables: the rules looked at samples, without Spark"]},
    }


def _as_dict(finding: Finding) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(finding)
    return {"until_ms": None} | found
