"""The truth: what really happened, from the journals of the workloads and of the story.

A report is compared with it. Nothing here comes from the observer or from the pipeline.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.journal import Entry, entries
from ottla.cli.demo.plan import BILLING, RISK_CHECKS, VICTIM, WORD_TOTALS, Plan

__all__ = ["Truth", "collect"]

Truth = dict[str, Any]


def collect(directory: DemoDirectory, plan: Plan) -> Truth:
    """The truth from the journals; times are in epoch ms."""
    story = _last_of_each(directory.journal_of("story"))
    found: Truth = {
        "v": 1,
        "seed": plan.seed,
        "speed": plan.speed,
        **{name: _facts(story[name]) for name in ("cluster", "streams") if name in story},
        "began_ms": story["began"]["at_ms"],
        "ended_ms": story["drained"]["at_ms"] if "drained" in story else None,
        "written": _written(directory),
        "poison": sorted([e["topic"], e["partition"], e["offset"]] for e in entries(_producers(directory), "poison")),
    }
    if "member-killed" in story:
        found["member_killed"] = _member_killed(directory, story)
    if "second-app" in story:
        settled_ms = story.get("member-killed", story["second-app"])["at_ms"]
        found["task_move"] = _task_move(directory, story["second-app"]["at_ms"], settled_ms)
    if "node-killed" in story:
        found["node_killed"] = _facts(story["node-killed"]) | {
            "at_ms": story["node-killed"]["at_ms"],
            "led_by_others_ms": story["led-by-others"]["at_ms"] if "led-by-others" in story else None,
            **_facts(story.get("node-back", {})),
        }
    if "storm" in story:
        found["storm"] = _storm(directory, story)
    return found


def _producers(directory: DemoDirectory) -> Path:
    return directory.journal_of("producers")


def _last_of_each(path: Path) -> dict[str, Entry]:
    return {entry["what"]: entry for entry in entries(path)}


def _facts(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in ("what", "at_ms")}


def _written(directory: DemoDirectory) -> dict[str, int]:
    total: Counter[str] = Counter()
    for entry in entries(_producers(directory), "written"):
        for topic, _, first, last in entry["ranges"]:
            total[topic] += last - first + 1
    return dict(total)


def _member_killed(directory: DemoDirectory, story: dict[str, Entry]) -> dict[str, Any]:
    """The killed member owned the partitions in its last journal entry."""
    owned = [entry for entry in entries(directory.journal_of(VICTIM), "owns")]
    return {
        "group": BILLING,
        "client": VICTIM,
        "member": owned[-1]["member"],
        "partitions": owned[-1]["partitions"],
        "at_ms": story["member-killed"]["at_ms"],
        "taken_over_ms": story["taken-over"]["at_ms"] if "taken-over" in story else None,
    }


def _task_move(directory: DemoDirectory, at_ms: int, settled_ms: int) -> dict[str, Any]:
    """The tasks of each process before the second one started, and when both had theirs."""
    return {
        "group": WORD_TOTALS,
        "at_ms": at_ms,
        "before": {name: _tasks(directory, name, at_ms) for name in _apps(directory)},
        "after": {name: _tasks(directory, name, settled_ms) for name in _apps(directory)},
    }


def _apps(directory: DemoDirectory) -> list[str]:
    return sorted(path.stem for path in directory.journal.glob(f"{WORD_TOTALS}-*.jsonl"))


def _tasks(directory: DemoDirectory, name: str, before_ms: int) -> list[str]:
    """The tasks that Kafka Streams reports; our own member's tasks are its partitions."""
    tasks: list[str] = []
    for entry in entries(directory.journal_of(name), "tasks", "owns"):
        if entry["at_ms"] > before_ms:
            break
        tasks = entry["tasks"] if "tasks" in entry else [f"0_{partition}" for _, partition in entry["partitions"]]
    return sorted(tasks)


def _storm(directory: DemoDirectory, story: dict[str, Entry]) -> dict[str, Any]:
    begin, end = story["storm"]["at_ms"], story["calm"]["at_ms"]
    counts: Counter[int] = Counter()
    for entry in entries(directory.journal_of(RISK_CHECKS), "delivered"):
        if begin <= entry["at_ms"] <= end:
            counts.update({int(count): number for count, number in entry["counts"].items()})
    return {"group": RISK_CHECKS, "from_ms": begin, "to_ms": end, "deliveries": dict(sorted(counts.items()))}


def write(truth: Truth, path: Path) -> None:
    path.write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
